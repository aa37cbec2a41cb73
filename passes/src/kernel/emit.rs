//! What the lowerings share: the kernel's frame, and a field's buffer as a memref of the grid's
//! shape. The tile's place in the grid is found by `tile_place.rs`, the shared buffers are made by
//! `shared_memory.rs`.

use super::shared_memory::{self, BUFFER_ALIGNMENT, STATIC_SHARED_LIMIT, shared_bytes};
use super::tile_place::{self, Place};
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
use stencil_dialects::tiled::{self, Bands, Binding, Kernel, Schedule, TileOp};

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
    /// Planes of the tile, where it may have fewer than the schedule says.
    planes: Option<Val<'c>>,
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
    /// Cells at both ends of the grid per dimension that the first and the last tile take beside
    /// their own, if the grid's size is known; empty for none. A negative number before the first
    /// dimension makes its first tile smaller.
    pub margin: &'s [[i64; 2]],
    /// The most registers that a thread may take, where the lowering knows.
    pub registers: Option<i64>,
    /// Rows of tiles away whose cells a tile may read, where the launch may be cut between them:
    /// see [`tiled::Bands`].
    pub reach: Option<i64>,
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
                Binding::Param(_) | Binding::Row => outer.index_type(),
                Binding::Epoch => outer.integer_type(32),
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
        let held = spec
            .kernel
            .tiles()
            .map(|tile| program.grid_of(tile.field))
            .collect::<Result<Vec<_>, _>>()?;
        let margin = tile_place::margin(&hull, &held, spec.margin);
        let tiles = tile_place::tile_counts(context, &hull, &spec.kernel.schedule, &margin)?;
        let all_tiles = tiles
            .iter()
            .copied()
            .reduce(|product, count| product * count)
            .ok_or_else(|| Error::internal("a grid of no dimensions"))?;
        let halves = tile_place::halves(&hull, spec);
        let blocks = match spec.warps {
            Some(warps) => AffineExpr::ceil_div(all_tiles, AffineExpr::constant(context, warps)),
            None if halves => match tiles.as_slice() {
                [rows, columns] => {
                    *rows * (*columns + AffineExpr::constant(context, tile_place::HALVES))
                }
                _ => all_tiles,
            },
            None => all_tiles,
        };
        let map =
            |count| stencil_dialects::affine::symbolic(context, program.params.len(), &[count]);
        let bands =
            spec.reach.zip(tiles.first()).map(|(reach, rows)| Bands { rows: map(*rows), reach });
        let mut block = [1_i32; 3];
        for (axis, threads) in block.iter_mut().zip(spec.threads.iter().rev()) {
            *axis = i32::try_from(*threads).unwrap_or(i32::MAX);
        }
        if let Some(warps) = spec.warps {
            block = [i32::try_from(warps.saturating_mul(WARP)).unwrap_or(i32::MAX), 1, 1];
        }
        let mut attributes =
            tiled::launch_attributes(&outer, (map(blocks), bands), block, &spec.kernel.schedule);
        attributes.extend(tiled::rotations_attribute(spec.kernel.op));
        attributes.push(("sym_name", attribute::string(context, spec.kernel.name)));
        attributes
            .push(("function_type", attribute::ty(FunctionType::new(context, &types, &[]).into())));
        attributes.push(("arg_attrs", attribute::array(context, &arguments)));
        attributes.push(("gpu.kernel", Attribute::unit(context)));
        attributes.push((
            "workgroup_attributions",
            attribute::integer(context, attributions.len() as i64),
        ));
        // Without a stated alignment LLVM's load vectoriser assumes more than the PTX declares.
        let aligned = attribute::dictionary(
            context,
            &[("llvm.align", attribute::integer(context, BUFFER_ALIGNMENT))],
        );
        attributes.push((
            "workgroup_attrib_attrs",
            attribute::array(context, &vec![aligned; attributions.len()]),
        ));
        if let Some(registers) = spec.registers {
            attributes.push(("nvvm.maxnreg", attribute::integer(context, registers)));
        } else if !spec.shared.is_empty() {
            attributes.push((
                "nvvm.minctasm",
                attribute::integer(context, shared_memory::resident_blocks(spec)),
            ));
        }
        let op = outer.op_with_regions("gpu.func", &[], &[], &attributes, vec![region])?;

        let builder = outer.at(entry);
        let values = mlir::arguments(entry);
        let (values, attributed) = values.split_at(types.len().min(values.len()));
        let shared = if dynamic {
            shared_memory::dynamic_shared(&builder, op, spec.shared)?
        } else {
            attributed.to_vec()
        };
        let params: Vec<_> = bindings
            .iter()
            .zip(values)
            .filter(|(binding, _)| matches!(binding, Binding::Param(_)))
            .map(|(_, value)| *value)
            .collect();
        let (mut sources, mut targets, mut scalars) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (mut step, mut row) = (None, None);
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
                Binding::Param(_) | Binding::Epoch => {}
                Binding::Scalar(name) => {
                    scalars.insert(*name, *value);
                }
                Binding::Step => step = Some(*value),
                Binding::Row => row = Some(*value),
            }
        }
        let Place { origin, planes, thread, exists } = tile_place::place_of_tile(
            &builder,
            &hull,
            (&tiles, all_tiles),
            &margin,
            (&params, row, halves),
            spec,
        )?;
        let step = step.ok_or_else(|| Error::internal("a kernel without a step argument"))?;
        Ok(Self {
            builder,
            op,
            program,
            params,
            shared,
            hull,
            origin,
            planes,
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

    /// The frame with the origin of the block's tile, and how many planes the tile has: as many as
    /// the schedule says, or fewer.
    pub fn of_tile(&self, schedule: &Schedule) -> Result<(Self, Val<'c>), Error> {
        let builder = &self.builder;
        let ([first, rest @ ..], [[before, _], ..]) =
            (self.origin.as_slice(), self.margin.as_slice())
        else {
            return Err(Error::internal("a tile of no dimensions"));
        };
        let most = schedule.tile.first().copied().unwrap_or(1);
        let planes = self.planes.map_or_else(|| builder.index(most), Ok)?;
        if *before >= 0 {
            return Ok((self.clone(), planes));
        }
        // The first tile begins with the grid.
        let lower = self.bounds(builder, self.hull.lower)?.first().copied();
        let lower = lower.ok_or_else(|| Error::internal("a grid of no dimensions"))?;
        let end = builder.add(*first, planes)?;
        let first = builder.binary("arith.maxsi", *first, lower)?;
        let left = builder.binary(
            "arith.maxsi",
            builder.binary("arith.subi", end, first)?,
            builder.index(0)?,
        )?;
        let planes = builder.binary("arith.minsi", planes, left)?;
        Ok((Self { origin: [&[first], rest].concat(), ..self.clone() }, planes))
    }

    /// The current buffer of a field, shaped like its grid.
    pub fn source(&self, field: &str) -> Result<Val<'c>, Error> {
        self.sources
            .get(field)
            .copied()
            .ok_or_else(|| Error::internal(format!("no buffer of @{field} to read")))
    }

    /// The next buffer of a field, shaped like its grid.
    pub fn target(&self, field: &str) -> Result<Val<'c>, Error> {
        self.targets
            .get(field)
            .copied()
            .ok_or_else(|| Error::internal(format!("no buffer of @{field} to write")))
    }

    /// Ends the kernel.
    pub fn finish(&self) -> Result<(), Error> {
        self.builder.op("gpu.return", &[], &[], &[])?;
        stencil::gathers(self.op)?.into_iter().try_for_each(|gather| self.load_gathered(&gather))
    }

    /// Puts a load from global memory in the place of an absolute read.
    fn load_gathered(&self, gather: &Gather<'c>) -> Result<(), Error> {
        let region = Region::new();
        let builder = Builder {
            location: gather.op.location(),
            ..self.builder.at(mlir::append_block(&region, &[]))
        };
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
    pub fn cell(
        &self,
        builder: &Builder<'c>,
        field: &str,
        point: &[Val<'c>],
    ) -> Result<Vec<Val<'c>>, Error> {
        let lower = self.bounds(builder, self.program.grid_of(field)?.lower)?;
        point
            .iter()
            .zip(lower)
            .map(|(coordinate, first)| builder.binary("arith.subi", *coordinate, first))
            .collect()
    }
}

/// The body of the module's `gpu.module`, made where there is none.
fn gpu_module<'c>(
    context: &'c Context,
    module: &Module<'c>,
    location: melior::ir::Location<'c>,
) -> Result<mlir::Blk<'c>, Error> {
    let builder = Builder::new(context, location, mlir::body(module));
    let existing =
        mlir::operations(builder.block).into_iter().find(|op| mlir::name(*op) == "gpu.module");
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

/// Arguments in a fixed order: buffers to read, buffers to write, sizes, scalars, step, first row
/// of tiles.
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
    let stored = |name: &str| {
        spec.kernel
            .body
            .iter()
            .any(|op| matches!(op, TileOp::Store { field, .. } if *field == name))
    };
    let names = || program.fields.iter().map(|field| field.name);
    let mut all = Vec::new();
    for name in names().filter(|name| loaded(name)) {
        all.push(if spec.in_place && stored(name) {
            Binding::ReadWrite(name)
        } else {
            Binding::Read(name)
        });
    }
    let rotations = tiled::rotations(spec.kernel.op)?;
    let handed_on = |name: &str| rotations.iter().any(|list| list.last() == Some(&name));
    // A field that no block loads is written where it lies, unless its buffer is handed on.
    for name in names().filter(|name| stored(name) && !(spec.in_place && loaded(name))) {
        let writes = loaded(name) || handed_on(name);
        all.push(if writes { Binding::Write(name) } else { Binding::ReadWrite(name) });
    }
    all.extend(program.params.iter().map(|name| Binding::Param(name)));
    all.extend(program.scalars.iter().map(|scalar| Binding::Scalar(scalar.name)));
    all.push(Binding::Step);
    all.extend(spec.reach.map(|_| Binding::Row));
    Ok(all)
}

/// What the tiles cut: the hull of the stored fields' grids. It is alike where all fields that the
/// kernel computes lie on it.
fn hull_of_kernel<'c>(
    context: &'c Context,
    program: &Program<'c>,
    kernel: &Kernel<'c>,
) -> Result<Hull<'c>, Error> {
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

/// Cells per dimension, slowest first, as expressions in the run-time sizes.
pub fn extents<'c>(
    context: &'c Context,
    lower: AffineMap<'c>,
    upper: AffineMap<'c>,
) -> Result<Vec<AffineExpr<'c>>, Error> {
    (0..lower.result_count())
        .map(|dimension| {
            let bound = |map: AffineMap<'c>| {
                map.result(dimension).map_err(|error| Error::internal(error.to_string()))
            };
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
            for (dimension, extent) in
                extents(builder.context, grid.lower, grid.upper)?.into_iter().enumerate().rev()
            {
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

/// The tile kernels of a strategy.
pub fn kernels_of<'c>(module: &Module<'c>, strategy: &str) -> Result<Vec<Kernel<'c>>, Error> {
    Ok(tiled::kernels(module)?
        .into_iter()
        .filter(|kernel| kernel.schedule.strategy == strategy)
        .collect())
}

/// Erases tile kernels that are lowered, and the point functions that nothing uses any more.
pub fn erase_kernels(module: &Module, lowered: &[Kernel]) -> Result<(), Error> {
    let functions = |kernel: &Kernel| -> Vec<String> {
        kernel
            .applies()
            .flat_map(|apply| &apply.pieces)
            .map(|piece| piece.function.to_owned())
            .collect()
    };
    let used: BTreeSet<String> = lowered.iter().flat_map(functions).collect();
    for kernel in lowered {
        mlir::erase(kernel.op);
    }
    let waiting: BTreeSet<String> = tiled::kernels(module)?.iter().flat_map(functions).collect();
    let applied = Program::read(module)?.applies;
    let applied: BTreeSet<&str> =
        applied.iter().flat_map(|apply| &apply.pieces).map(|piece| piece.function).collect();
    for name in used.difference(&waiting).filter(|name| !applied.contains(name.as_str())) {
        mlir::erase(stencil::function(module, name)?);
    }
    Ok(())
}
