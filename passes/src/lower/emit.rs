//! What the lowerings share: the kernel's frame, a field's buffer as a memref of the grid's shape, and
//! the tile's place in the grid.

use crate::analysis::hull::{self, Hull};
use crate::analysis::index_width::constant_extents;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::{FunctionType, MemRefType};
use melior::ir::{AffineExpr, AffineMap, Attribute, Module, Region, Type, ValueLike};
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::attribute;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::stencil::{self, Gather, Program};
use stencil_dialects::tiled::{self, Binding, Kernel, Schedule, TileOp};

/// The name of the module that holds the kernels.
pub const GPU_MODULE: &str = "kernels";

/// A `gpu.func` under construction.
#[derive(Clone)]
pub struct Frame<'c, 'p> {
    /// Builds at the end of the kernel's body.
    pub builder: Builder<'c>,
    /// The `gpu.func`.
    pub op: Op<'c>,
    /// The declarations.
    pub program: &'p Program<'c>,
    /// Run-time sizes, as `index`.
    pub params: Vec<Val<'c>>,
    /// The shared buffers, in the order in which they were asked for.
    pub shared: Vec<Val<'c>>,
    /// What the tiles cut: the hull of the stored fields' grids.
    pub hull: Hull<'c>,
    /// First coordinate of the tile per dimension, slowest first, as `index`.
    pub origin: Vec<Val<'c>>,
    /// The margin that tiles have, per dimension: see [`FrameSpec::margin`].
    pub margin: Vec<[i64; 2]>,
    /// The thread's position in the block per dimension, slowest first; where each warp has a tile
    /// of its own, the lane's position in the warp alone.
    pub thread: Vec<Val<'c>>,
    /// Whether the tile exists; none if it always does. The last block may have warps to spare.
    pub exists: Option<Val<'c>>,
    /// Run-time scalars.
    pub scalars: BTreeMap<&'c str, Val<'c>>,
    /// The number of the launch's first step.
    pub step: Val<'c>,
    sources: BTreeMap<&'c str, Val<'c>>,
    targets: BTreeMap<&'c str, Val<'c>>,
}

/// What a frame is made for.
pub struct FrameSpec<'c, 's> {
    /// The tile kernel.
    pub kernel: &'s Kernel<'c>,
    /// Threads of a block per dimension, slowest first; the fastest becomes x.
    pub threads: &'s [i64],
    /// Types of the shared buffers.
    pub shared: &'s [MemRefType<'c>],
    /// Whether the kernel updates its fields in place.
    pub in_place: bool,
    /// Warps of a block, where each warp has a tile of its own and `threads` is for one of them.
    pub warps: Option<i64>,
    /// Whether tiles at a rim, which take longer, have the lowest numbers.
    pub rim_first: bool,
    /// Cells at both ends of the grid per dimension that the first and the last tile take beside their
    /// own, if the grid's size is known; empty for none.
    pub margin: &'s [[i64; 2]],
    /// The most registers that a thread may take, where the lowering knows.
    pub registers: Option<i64>,
}

/// Threads of a warp.
pub const WARP: i64 = 32;

impl<'c, 'p> Frame<'c, 'p> {
    /// Builds the kernel's `gpu.func` in the module's `gpu.module`, up to the tile's origin.
    pub fn new(
        context: &'c Context,
        module: &Module<'c>,
        program: &'p Program<'c>,
        spec: &FrameSpec<'c, '_>,
    ) -> Result<Self, Error> {
        let location = spec.kernel.op.location();
        let outer = Builder::new(context, location, gpu_module(context, module, location)?);
        let bindings = bindings(module, program, spec)?;
        let hull = hull_of_kernel(context, program, spec.kernel)?;

        let memref = |element| -> Type<'c> { MemRefType::new(element, &[], None, None).into() };
        let mut types = Vec::new();
        let mut arguments = Vec::new();
        for binding in &bindings {
            let mut named = tiled::binding_attributes(&outer, binding);
            types.push(match binding {
                Binding::Read(name) | Binding::Write(name) | Binding::ReadWrite(name) => {
                    named.push(("llvm.noalias", Attribute::unit(context)));
                    if matches!(binding, Binding::Read(_)) {
                        named.push(("llvm.readonly", Attribute::unit(context)));
                    }
                    memref(program.field(name)?.element)
                }
                Binding::Param(_) => outer.index_type(),
                Binding::Scalar(name) => scalar_type(program, name)?,
                Binding::Step => outer.integer_type(64),
            });
            arguments.push(attribute::dictionary(context, &named));
        }

        let dynamic = shared_bytes(spec.shared) > STATIC_SHARED_LIMIT;
        let attributions: Vec<Type> =
            if dynamic { Vec::new() } else { spec.shared.iter().map(|ty| (*ty).into()).collect() };
        let region = Region::new();
        let all: Vec<_> = types.iter().chain(&attributions).map(|ty| (*ty, location)).collect();
        let entry = mlir::append_block(&region, &all);
        let margin = margin(&hull, spec.margin);
        let tiles = tile_counts(context, &hull, &spec.kernel.schedule, &margin)?;
        let all_tiles = tiles
            .iter()
            .copied()
            .reduce(|product, count| product * count)
            .ok_or_else(|| Error::internal("a grid of no dimensions"))?;
        let blocks = match spec.warps {
            Some(warps) => AffineExpr::ceil_div(all_tiles, AffineExpr::constant(context, warps)),
            None => all_tiles,
        };
        let map = stencil_dialects::affine::symbolic(context, program.params.len(), &[blocks]);
        let mut block = [1_i32; 3];
        for (axis, threads) in block.iter_mut().zip(spec.threads.iter().rev()) {
            *axis = i32::try_from(*threads).unwrap_or(i32::MAX);
        }
        if let Some(warps) = spec.warps {
            block = [i32::try_from(warps.saturating_mul(WARP)).unwrap_or(i32::MAX), 1, 1];
        }
        let mut attributes = tiled::launch_attributes(&outer, map, block, &spec.kernel.schedule);
        attributes.push(("sym_name", attribute::string(context, spec.kernel.name)));
        attributes.push(("function_type", attribute::ty(FunctionType::new(context, &types, &[]).into())));
        attributes.push(("arg_attrs", attribute::array(context, &arguments)));
        attributes.push(("gpu.kernel", Attribute::unit(context)));
        attributes.push(("workgroup_attributions", attribute::integer(context, attributions.len() as i64)));
        // Without a stated alignment LLVM's load vectoriser assumes more than the PTX declares.
        let aligned = attribute::dictionary(context, &[("llvm.align", attribute::integer(context, BUFFER_ALIGNMENT))]);
        attributes.push(("workgroup_attrib_attrs", attribute::array(context, &vec![aligned; attributions.len()])));
        if let Some(registers) = spec.registers {
            attributes.push(("nvvm.maxnreg", attribute::integer(context, registers)));
        } else if !spec.shared.is_empty() {
            attributes.push(("nvvm.minctasm", attribute::integer(context, resident_blocks(spec))));
        }
        let op = outer.op_with_regions("gpu.func", &[], &[], &attributes, vec![region])?;

        let builder = outer.at(entry);
        let values = mlir::arguments(entry);
        let (values, attributed) = values.split_at(types.len().min(values.len()));
        let shared = if dynamic { dynamic_shared(&builder, op, spec.shared)? } else { attributed.to_vec() };
        let params: Vec<_> = bindings
            .iter()
            .zip(values)
            .filter(|(binding, _)| matches!(binding, Binding::Param(_)))
            .map(|(_, value)| *value)
            .collect();
        let (mut sources, mut targets, mut scalars, mut step) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), None);
        for (binding, value) in bindings.iter().zip(values) {
            match binding {
                Binding::Read(name) => {
                    sources.insert(*name, whole_grid(&builder, program, name, *value, &params)?);
                }
                Binding::Write(name) => {
                    targets.insert(*name, whole_grid(&builder, program, name, *value, &params)?);
                }
                Binding::ReadWrite(name) => {
                    let buffer = whole_grid(&builder, program, name, *value, &params)?;
                    sources.insert(*name, buffer);
                    targets.insert(*name, buffer);
                }
                Binding::Param(_) => {}
                Binding::Scalar(name) => {
                    scalars.insert(*name, *value);
                }
                Binding::Step => step = Some(*value),
            }
        }
        let Place { origin, thread, exists } =
            place_of_tile(&builder, &hull, (&tiles, all_tiles), &margin, &params, spec)?;
        let step = step.ok_or_else(|| Error::internal("a kernel without a step argument"))?;
        Ok(Self {
            builder,
            op,
            program,
            params,
            shared,
            hull,
            origin,
            margin,
            thread,
            exists,
            sources,
            targets,
            scalars,
            step,
        })
    }

    /// The same kernel some steps later; `steps` is an `index`.
    pub fn later(&self, builder: &Builder<'c>, steps: Val<'c>) -> Result<Self, Error> {
        let steps = builder.value("arith.index_cast", &[steps], self.step.r#type(), &[])?;
        Ok(Self { step: builder.add(self.step, steps)?, ..self.clone() })
    }

    /// The current buffer of a field, shaped like its grid.
    pub fn source(&self, field: &str) -> Result<Val<'c>, Error> {
        self.sources.get(field).copied().ok_or_else(|| Error::internal(format!("no buffer of @{field} to read")))
    }

    /// The next buffer of a field, shaped like its grid.
    pub fn target(&self, field: &str) -> Result<Val<'c>, Error> {
        self.targets.get(field).copied().ok_or_else(|| Error::internal(format!("no buffer of @{field} to write")))
    }

    /// Ends the kernel.
    pub fn finish(&self) -> Result<(), Error> {
        self.builder.op("gpu.return", &[], &[], &[])?;
        stencil::gathers(self.op)?.into_iter().try_for_each(|gather| self.load_gathered(&gather))
    }

    /// Puts a load from global memory in the place of an absolute read.
    fn load_gathered(&self, gather: &Gather<'c>) -> Result<(), Error> {
        let region = Region::new();
        let builder = Builder { location: gather.op.location(), ..self.builder.at(mlir::append_block(&region, &[])) };
        let point: Vec<_> = gather
            .at
            .iter()
            .map(|at| builder.value("arith.index_cast", &[*at], builder.index_type(), &[]))
            .collect::<Result<_, _>>()?;
        let cell = self.cell(&builder, gather.field, &point)?;
        let value = builder.load(self.source(gather.field)?, &cell)?;
        mlir::move_all_before(builder.block, gather.op);
        for result in mlir::results(gather.op) {
            mlir::replace_uses(result, value);
        }
        mlir::erase(gather.op);
        Ok(())
    }

    /// The bounds of a map of run-time sizes as values.
    pub fn bounds(&self, builder: &Builder<'c>, map: AffineMap<'c>) -> Result<Vec<Val<'c>>, Error> {
        (0..map.result_count())
            .map(|index| {
                builder.affine(
                    map.result(index).map_err(|error| Error::internal(error.to_string()))?,
                    &[],
                    &self.params,
                )
            })
            .collect()
    }

    /// Conditions that a point lies in a box, both ends inclusive.
    pub fn inside(
        &self,
        builder: &Builder<'c>,
        point: &[Val<'c>],
        lower: AffineMap<'c>,
        upper: AffineMap<'c>,
    ) -> Result<Val<'c>, Error> {
        let mut conditions = Vec::new();
        for ((coordinate, lower), upper) in
            point.iter().zip(self.bounds(builder, lower)?).zip(self.bounds(builder, upper)?)
        {
            conditions.push(builder.compare(Compare::Ge, *coordinate, lower)?);
            conditions.push(builder.compare(Compare::Le, *coordinate, upper)?);
        }
        builder.all(&conditions)?.ok_or_else(|| Error::internal("a box of no dimensions"))
    }

    /// Indices of a point in a field's buffer: its coordinates less the grid's first point.
    pub fn cell(&self, builder: &Builder<'c>, field: &str, point: &[Val<'c>]) -> Result<Vec<Val<'c>>, Error> {
        let lower = self.bounds(builder, self.program.grid_of(field)?.lower)?;
        point.iter().zip(lower).map(|(coordinate, first)| builder.binary("arith.subi", *coordinate, first)).collect()
    }
}

/// Bytes of static shared memory that every device gives without being asked (CUDA C++ Programming
/// Guide, technical specifications per compute capability).
const STATIC_SHARED_LIMIT: i64 = 48 * 1024;

/// Blocks that a multiprocessor runs at once (CUDA C++ Programming Guide, table of compute capabilities).
const MOST_RESIDENT: i64 = 32;

/// Blocks that should fit on a multiprocessor at once: as many as its shared memory (227 KB) has
/// room for, and at most 1,024 threads together, so that each may have 64 of the 65,536 registers.
/// Without a word ptxas saves registers for blocks that can't come, and spills.
fn resident_blocks(spec: &FrameSpec) -> i64 {
    let threads = spec.threads.iter().product::<i64>().max(1);
    let room = 232_448 / shared_bytes(spec.shared).max(1);
    (1024 / threads).min(room).clamp(1, MOST_RESIDENT)
}

/// Bytes to which every shared buffer is aligned: those of the widest access.
const BUFFER_ALIGNMENT: i64 = 16;

/// Bytes of all shared buffers, each aligned.
pub fn shared_bytes(buffers: &[MemRefType]) -> i64 {
    buffers.iter().map(buffer_bytes).fold(0, i64::saturating_add)
}

fn buffer_bytes(ty: &MemRefType) -> i64 {
    use melior::ir::ShapedTypeLike;
    let element = i64::from(mlir::bit_width(ty.element()).unwrap_or(64).div_ceil(8));
    let cells = mlir::static_cells((*ty).into()).unwrap_or(i64::MAX);
    cells.saturating_mul(element).saturating_add(BUFFER_ALIGNMENT - 1) / BUFFER_ALIGNMENT * BUFFER_ALIGNMENT
}

/// `memref<extents x element, #gpu.address_space<workgroup>>`; extents in cells, `i64::MIN` for one that
/// is not static.
pub fn shared_type<'c>(builder: &Builder<'c>, extents: &[i64], element: Type<'c>) -> Result<MemRefType<'c>, Error> {
    let space = Attribute::parse(builder.context, "#gpu.address_space<workgroup>")
        .ok_or_else(|| Error::internal("the gpu dialect is not loaded"))?;
    Ok(MemRefType::new(element, extents, None, Some(space)))
}

/// Cuts the buffers out of one dynamic shared buffer.
fn dynamic_shared<'c>(
    builder: &Builder<'c>,
    kernel: Op<'c>,
    buffers: &[MemRefType<'c>],
) -> Result<Vec<Val<'c>>, Error> {
    tiled::set_dynamic_shared(builder, kernel, shared_bytes(buffers));
    let bytes = shared_type(builder, &[i64::MIN], builder.integer_type(8))?;
    let all = builder.value("gpu.dynamic_shared_memory", &[], bytes.into(), &[])?;
    let mut offset = 0;
    let mut views = Vec::new();
    for ty in buffers {
        let start = builder.index(offset)?;
        views.push(builder.value("memref.view", &[all, start], (*ty).into(), &[])?);
        offset += buffer_bytes(ty);
    }
    Ok(views)
}

/// The body of the module's `gpu.module`, made where there is none.
fn gpu_module<'c>(
    context: &'c Context,
    module: &Module<'c>,
    location: melior::ir::Location<'c>,
) -> Result<mlir::Blk<'c>, Error> {
    let builder = Builder::new(context, location, mlir::body(module));
    let existing = mlir::operations(builder.block).into_iter().find(|op| mlir::name(*op) == "gpu.module");
    if let Some(block) = existing.and_then(mlir::entry) {
        return Ok(block);
    }
    mlir::set_attribute(mlir::module_op(module), "gpu.container_module", Attribute::unit(context));
    let region = Region::new();
    let block = mlir::append_block(&region, &[]);
    builder.op_with_regions(
        "gpu.module",
        &[],
        &[],
        &[("sym_name", attribute::string(context, GPU_MODULE))],
        vec![region],
    )?;
    Ok(block)
}

fn scalar_type<'c>(program: &Program<'c>, name: &str) -> Result<Type<'c>, Error> {
    let scalar = program.scalars.iter().find(|scalar| scalar.name == name);
    scalar.map(|scalar| scalar.element).ok_or_else(|| Error::internal(format!("no scalar @{name}")))
}

/// Arguments in a fixed order: buffers to read, buffers to write, sizes, scalars, step.
fn bindings<'c>(
    module: &Module<'c>,
    program: &Program<'c>,
    spec: &FrameSpec<'c, '_>,
) -> Result<Vec<Binding<'c>>, Error> {
    let mut read = BTreeSet::new();
    for op in &spec.kernel.body {
        match op {
            TileOp::Load { field, .. } => drop(read.insert(*field)),
            TileOp::Apply(apply) => {
                for piece in &apply.pieces {
                    let gathers = stencil::gathers(stencil::function(module, piece.function)?)?;
                    read.extend(gathers.into_iter().map(|gather| gather.field));
                }
            }
            TileOp::Store { .. } => {}
        }
    }
    let loaded = |name: &str| read.contains(name);
    let stored =
        |name: &str| spec.kernel.body.iter().any(|op| matches!(op, TileOp::Store { field, .. } if *field == name));
    let names = || program.fields.iter().map(|field| field.name);
    let mut all = Vec::new();
    for name in names().filter(|name| loaded(name)) {
        all.push(if spec.in_place && stored(name) { Binding::ReadWrite(name) } else { Binding::Read(name) });
    }
    for name in names().filter(|name| stored(name) && !(spec.in_place && loaded(name))) {
        all.push(Binding::Write(name));
    }
    all.extend(program.params.iter().map(|name| Binding::Param(name)));
    all.extend(program.scalars.iter().map(|scalar| Binding::Scalar(scalar.name)));
    all.push(Binding::Step);
    Ok(all)
}

/// What the tiles cut: the hull of the stored fields' grids. It is alike where all fields that the
/// kernel computes lie on it.
fn hull_of_kernel<'c>(context: &'c Context, program: &Program<'c>, kernel: &Kernel<'c>) -> Result<Hull<'c>, Error> {
    let (mut stored, mut computed) = (Vec::new(), Vec::new());
    for op in &kernel.body {
        match op {
            TileOp::Store { field, .. } => stored.push(*field),
            TileOp::Apply(apply) => computed.extend(apply.outputs.iter().map(|(field, _)| *field)),
            TileOp::Load { .. } => {}
        }
    }
    let refuse = |message| Error::new(mlir::place(kernel.op.location()), message);
    if stored.is_empty() {
        return Err(refuse("the tile kernel stores nothing"));
    }
    let different = || refuse("the tile kernel updates fields of different ranks");
    let all = hull::of(context, program, &computed)?.ok_or_else(different)?;
    let hull = hull::of(context, program, &stored)?.ok_or_else(different)?;
    Ok(Hull { alike: all.alike, ..hull })
}

/// Tiles per dimension, as expressions in the run-time sizes.
fn tile_counts<'c>(
    context: &'c Context,
    hull: &Hull<'c>,
    schedule: &Schedule,
    margin: &[[i64; 2]],
) -> Result<Vec<AffineExpr<'c>>, Error> {
    extents(context, hull.lower, hull.upper)?
        .into_iter()
        .zip(schedule.tile.iter().zip(margin))
        .map(|(extent, (tile, [before, after]))| {
            let own = extent + AffineExpr::constant(context, -before - after);
            Ok(AffineExpr::ceil_div(own, AffineExpr::constant(context, *tile)))
        })
        .collect()
}

/// The margin, where the grid is known to be larger; none elsewhere.
fn margin(hull: &Hull, wanted: &[[i64; 2]]) -> Vec<[i64; 2]> {
    let extents = constant_extents(hull.lower, hull.upper).unwrap_or_default();
    let wide = |(dimension, [before, after]): (usize, &[i64; 2])| {
        extents.get(dimension).is_some_and(|extent| *extent > before + after)
    };
    if wanted.len() == hull.rank() && wanted.iter().enumerate().all(wide) {
        wanted.to_vec()
    } else {
        vec![[0, 0]; hull.rank()]
    }
}

/// Cells per dimension, slowest first, as expressions in the run-time sizes.
pub fn extents<'c>(
    context: &'c Context,
    lower: AffineMap<'c>,
    upper: AffineMap<'c>,
) -> Result<Vec<AffineExpr<'c>>, Error> {
    (0..lower.result_count())
        .map(|dimension| {
            let bound = |map: AffineMap<'c>| map.result(dimension).map_err(|error| Error::internal(error.to_string()));
            let constant = |value| AffineExpr::constant(context, value);
            Ok(bound(upper)? + bound(lower)? * constant(-1) + constant(1))
        })
        .collect()
}

/// A field's buffer, shaped like its grid.
fn whole_grid<'c>(
    builder: &Builder<'c>,
    program: &Program<'c>,
    field: &str,
    buffer: Val<'c>,
    params: &[Val<'c>],
) -> Result<Val<'c>, Error> {
    let grid = program.grid_of(field)?;
    let element = program.field(field)?.element;
    let rank = grid.rank();
    let (mut static_sizes, mut static_strides) = (vec![i64::MIN; rank], vec![i64::MIN; rank]);
    let (mut sizes, mut strides) = (Vec::new(), Vec::new());
    let constants = constant_extents(grid.lower, grid.upper);
    if let Some(last) = static_strides.last_mut() {
        *last = 1;
    }
    match &constants {
        Some(extents) => {
            let mut stride = 1_i64;
            for (dimension, extent) in extents.iter().enumerate().rev() {
                static_sizes[dimension] = *extent;
                static_strides[dimension] = stride;
                stride = stride.saturating_mul((*extent).max(1));
            }
        }
        None => {
            let mut stride: Option<Val> = None;
            for (dimension, extent) in extents(builder.context, grid.lower, grid.upper)?.into_iter().enumerate().rev() {
                let extent = builder.affine(extent, &[], params)?;
                sizes.push(extent);
                strides.extend(stride);
                if dimension > 0 {
                    stride = Some(match stride {
                        Some(stride) => builder.binary("arith.muli", stride, extent)?,
                        None => extent,
                    });
                }
            }
            sizes.reverse();
            strides.reverse();
        }
    }
    let context = builder.context;
    let layout = melior::ir::attribute::StridedLayoutAttribute::new(context, 0, &static_strides);
    let ty = MemRefType::new(element, &static_sizes, Some(layout.into()), None);
    let segments = [1, 0, sizes.len() as i32, strides.len() as i32];
    let operands = [&[buffer], sizes.as_slice(), strides.as_slice()].concat();
    builder.value(
        "memref.reinterpret_cast",
        &operands,
        ty.into(),
        &[
            ("static_offsets", attribute::integers(context, &[0])),
            ("static_sizes", attribute::integers(context, &static_sizes)),
            ("static_strides", attribute::integers(context, &static_strides)),
            ("operandSegmentSizes", attribute::integers32(context, &segments)),
        ],
    )
}

/// Where a thread works.
struct Place<'c> {
    origin: Vec<Val<'c>>,
    thread: Vec<Val<'c>>,
    exists: Option<Val<'c>>,
}

/// The tile's first coordinate and the thread's position, per dimension. Tiles are numbered in
/// row-major order, and blocks along x alone, because only x may count more than 65,535 of them.
fn place_of_tile<'c>(
    builder: &Builder<'c>,
    hull: &Hull<'c>,
    (tiles, all_tiles): (&[AffineExpr<'c>], AffineExpr<'c>),
    margin: &[[i64; 2]],
    params: &[Val<'c>],
    spec: &FrameSpec<'c, '_>,
) -> Result<Place<'c>, Error> {
    let identity = |kind: &str, axis: &str| {
        let dimension = Attribute::parse(builder.context, &format!("#gpu<dim {axis}>"))
            .ok_or_else(|| Error::internal("the gpu dialect is not loaded"))?;
        builder.value(kind, &[], builder.index_type(), &[("dimension", dimension)])
    };
    let mut rest = identity("gpu.block_id", "x")?;
    let (mut thread, mut exists) = (Vec::new(), None);
    if let Some(warps) = spec.warps {
        let mut lane = identity("gpu.thread_id", "x")?;
        if warps > 1 {
            let warp = builder.binary("arith.divui", lane, builder.index(WARP)?)?;
            lane = builder.binary("arith.remui", lane, builder.index(WARP)?)?;
            rest = builder.add(builder.binary("arith.muli", rest, builder.index(warps)?)?, warp)?;
            exists = Some(builder.compare(Compare::Lt, rest, builder.affine(all_tiles, &[], params)?)?);
        }
        thread.push(lane);
    } else {
        for axis in ["x", "y", "z"].iter().take(hull.rank()).rev() {
            thread.push(identity("gpu.thread_id", axis)?);
        }
    }
    let counts: Vec<_> = tiles.iter().map(|count| builder.affine(*count, &[], params)).collect::<Result<_, _>>()?;
    let numbers = match (spec.rim_first, counts.as_slice()) {
        (true, [rows, columns]) => rim_first(builder, rest, *rows, *columns)?.to_vec(),
        (true, [planes, rows, columns]) => {
            let plane = builder.binary("arith.remui", rest, *planes)?;
            rest = builder.binary("arith.divui", rest, *planes)?;
            let [row, column] = rim_first(builder, rest, *rows, *columns)?;
            vec![plane, row, column]
        }
        _ => {
            let mut numbers = Vec::new();
            for (position, count) in counts.iter().enumerate().rev() {
                if position == 0 {
                    numbers.push(rest);
                } else {
                    numbers.push(builder.binary("arith.remui", rest, *count)?);
                    rest = builder.binary("arith.divui", rest, *count)?;
                }
            }
            numbers.reverse();
            numbers
        }
    };
    let mut origin = Vec::new();
    for (position, (number, tile)) in numbers.into_iter().zip(&spec.kernel.schedule.tile).enumerate() {
        let lower = hull.lower.result(position).map_err(|error| Error::internal(error.to_string()))?;
        let first = builder.binary("arith.muli", number, builder.index(*tile)?)?;
        let first = builder.add_constant(first, margin.get(position).map_or(0, |[before, _]| *before))?;
        origin.push(builder.add(first, builder.affine(lower, &[], params)?)?);
    }
    Ok(Place { origin, thread, exists })
}

/// Tiles at a rim are slower than others; they come first, so that the last tiles to end are fast
/// ones. Rows and columns of tiles are turned by two, so that the last two and the first lead; then
/// the leading rows are numbered through, then the leading columns of the other rows, then the rest.
fn rim_first<'c>(
    builder: &Builder<'c>,
    number: Val<'c>,
    rows: Val<'c>,
    columns: Val<'c>,
) -> Result<[Val<'c>; 2], Error> {
    let (zero, one) = (builder.index(0)?, builder.index(1)?);
    let lead = |count| builder.binary("arith.minui", count, builder.index(3)?);
    let (lead_rows, lead_columns) = (lead(rows)?, lead(columns)?);
    let minus = |a, b| builder.binary("arith.subi", a, b);
    let times = |a, b| builder.binary("arith.muli", a, b);
    // Three rectangles in turn, each with its first number, corner and width.
    let second = times(lead_rows, columns)?;
    let third = builder.add(second, times(minus(rows, lead_rows)?, lead_columns)?)?;
    let in_first = builder.compare(Compare::Below, number, second)?;
    let in_third = builder.compare(Compare::Ge, number, third)?;
    let pick = |first, second, third| builder.select(in_first, first, builder.select(in_third, third, second)?);
    let within = minus(number, pick(zero, second, third)?)?;
    let width = pick(columns, lead_columns, minus(columns, lead_columns)?)?;
    let width = builder.binary("arith.maxui", width, one)?;
    let row = builder.add(builder.binary("arith.divui", within, width)?, pick(zero, lead_rows, lead_rows)?)?;
    let column = builder.add(builder.binary("arith.remui", within, width)?, pick(zero, zero, lead_columns)?)?;
    let turned = |value, count| {
        let back = minus(count, builder.binary("arith.minui", count, builder.index(2)?)?)?;
        builder.binary("arith.remui", builder.add(value, back)?, count)
    };
    Ok([turned(row, rows)?, turned(column, columns)?])
}

/// The tile kernels of a strategy.
pub fn kernels_of<'c>(module: &Module<'c>, strategy: &str) -> Result<Vec<Kernel<'c>>, Error> {
    Ok(tiled::kernels(module)?.into_iter().filter(|kernel| kernel.schedule.strategy == strategy).collect())
}

/// Refuses kernels that read fields with a boundary rule.
///
/// # Errors
/// There is one: the lowering of this strategy does not know the rules.
pub fn refuse_rules(program: &Program, kernels: &[Kernel]) -> Result<(), Error> {
    for kernel in kernels {
        for op in &kernel.body {
            if let TileOp::Load { op, field, .. } = op
                && program.field(field)?.boundary.is_some()
            {
                let strategy = &kernel.schedule.strategy;
                return Err(Error::new(
                    mlir::place(op.location()),
                    format!(
                        "@{field} has a boundary rule, which the strategy {strategy} does not support yet; choose naive or block"
                    ),
                ));
            }
        }
    }
    Ok(())
}

/// Erases tile kernels that are lowered, and the point functions that nothing uses any more.
pub fn erase_kernels(module: &Module, lowered: &[Kernel]) -> Result<(), Error> {
    let functions = |kernel: &Kernel| -> Vec<String> {
        let pieces = kernel.body.iter().flat_map(|op| match op {
            TileOp::Apply(apply) => apply.pieces.as_slice(),
            _ => &[],
        });
        pieces.map(|piece| piece.function.to_owned()).collect()
    };
    let used: BTreeSet<String> = lowered.iter().flat_map(functions).collect();
    for kernel in lowered {
        mlir::erase(kernel.op);
    }
    let waiting: BTreeSet<String> = tiled::kernels(module)?.iter().flat_map(functions).collect();
    let applied = Program::read(module)?.applies;
    let applied: BTreeSet<&str> = applied.iter().flat_map(|apply| &apply.pieces).map(|piece| piece.function).collect();
    for name in used.difference(&waiting).filter(|name| !applied.contains(name.as_str())) {
        mlir::erase(stencil::function(module, name)?);
    }
    Ok(())
}
