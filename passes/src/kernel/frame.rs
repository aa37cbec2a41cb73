//! The frame of a lowered kernel: a `gpu.func` up to its tile's origin, made of a signature
//! (`signature.rs`), a launch (`launch.rs`), shared buffers (`shared_memory.rs`) and the tile's
//! place (`tile_place.rs`).

use super::launch::{self, FrameSpec};
use super::scope::Scope;
use super::shared_memory::{self, BUFFER_ALIGNMENT, shared_bytes};
use super::signature::Signature;
use super::tile_kernels;
use super::tile_place::{self, ThreadTile};
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::FunctionType;
use melior::ir::{Attribute, Location, Module, Region, Type};
use std::collections::BTreeMap;
use stencil_dialects::attribute;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::stencil::{self, Gather};
use stencil_dialects::tiled::Schedule;

/// The name of the module that holds the kernels, unless a declaration has it.
const GPU_MODULE: &str = "kernels";

/// A `gpu.func` under construction.
#[derive(Clone)]
pub struct Frame<'c, 'p> {
    /// Builds at the end of the kernel's body.
    pub builder: Builder<'c>,
    /// The `gpu.func`.
    pub op: Op<'c>,
    /// The names that its code can use.
    pub scope: Scope<'c, 'p>,
    /// The shared buffers, in the order in which they were asked for.
    pub shared: Vec<Val<'c>>,
    /// First coordinate of the tile per dimension, slowest first, as `index`.
    pub origin: Vec<Val<'c>>,
    /// Planes of the tile, where it may have fewer than the schedule has.
    planes: Option<Val<'c>>,
    /// The margin that tiles have, per dimension: see [`FrameSpec::margin`].
    pub margin: Vec<[i64; 2]>,
    /// The thread's position in the block per dimension, slowest first; where each warp has a tile
    /// of its own, the lane's position in the warp alone.
    pub thread: Vec<Val<'c>>,
    /// Whether the tile exists; none if it always does. The last block may have warps to spare.
    pub exists: Option<Val<'c>>,
    sources: BTreeMap<&'c str, Val<'c>>,
    targets: BTreeMap<&'c str, Val<'c>>,
}

impl<'c, 'p> Frame<'c, 'p> {
    /// Builds the kernel's `gpu.func` in the module's `gpu.module`, up to the tile's origin.
    pub fn new(
        context: &'c Context,
        subject: &Subject<'c, 'p>,
        spec: &FrameSpec<'c, '_>,
    ) -> Result<Self, Error> {
        let (module, program) = (subject.module, subject.program);
        let location = spec.kernel.op.location();
        let outer = Builder::new(context, location, gpu_module(context, module, location)?);
        let rows = spec.row_distance.is_some();
        let signature = Signature::of(&outer, module, program, spec.kernel, (spec.in_place, rows))?;
        let hull = tile_kernels::hull(context, program, spec.kernel)?;
        let held = spec.kernel.tiles().map(|tile| program.grid_of(tile.field));
        let held = held.collect::<Result<Vec<_>, _>>()?;
        let margin = tile_place::margin(&hull, &held, spec.margin);
        let tiles = tile_place::Tiles::of(context, &hull, spec, &margin)?;

        let static_limit = subject.device.static_shared_per_block;
        let dynamic = u64::try_from(shared_bytes(spec.shared)).is_ok_and(|all| all > static_limit);
        let attributions: Vec<Type> =
            if dynamic { Vec::new() } else { spec.shared.iter().map(|ty| (*ty).into()).collect() };
        let region = Region::new();
        let all: Vec<_> =
            signature.types.iter().chain(&attributions).map(|ty| (*ty, location)).collect();
        let entry = mlir::append_block(&region, &all);
        let mut attributes = launch::attributes(&outer, subject, spec, &tiles);
        let ty = FunctionType::new(context, &signature.types, &[]);
        attributes.push(("function_type", attribute::ty(ty.into())));
        attributes.push(("arg_attrs", attribute::array(context, &signature.attributes)));
        let count = attribute::integer(context, attributions.len() as i64);
        attributes.push(("workgroup_attributions", count));
        // Without a stated alignment LLVM's load vectoriser assumes more than the PTX declares.
        let alignment = attribute::integer(context, BUFFER_ALIGNMENT);
        let aligned = attribute::dictionary(context, &[("llvm.align", alignment)]);
        let aligned = attribute::array(context, &vec![aligned; attributions.len()]);
        attributes.push(("workgroup_attrib_attrs", aligned));
        let op = outer.op_with_regions("gpu.func", &[], &[], &attributes, vec![region])?;

        let builder = outer.at(entry);
        let values = mlir::arguments(entry);
        let (values, attributed) = values.split_at(signature.types.len().min(values.len()));
        let shared = if dynamic {
            shared_memory::dynamic_shared(&builder, op, spec.shared)?
        } else {
            attributed.to_vec()
        };
        let arguments = signature.arguments(&builder, program, values)?;
        let (params, row) = (&arguments.params, arguments.row);
        let place =
            tile_place::place_of_tile(&builder, &hull, &tiles, &margin, (params, row), spec)?;
        let ThreadTile { origin, planes, thread, exists } = place;
        let scope = Scope {
            module,
            program,
            hull,
            params: arguments.params,
            scalars: arguments.scalars,
            step: arguments.step,
        };
        let (sources, targets) = (arguments.sources, arguments.targets);
        Ok(Self {
            builder,
            op,
            scope,
            shared,
            origin,
            planes,
            margin,
            thread,
            exists,
            sources,
            targets,
        })
    }

    /// The same kernel some steps later; `steps` is an `index`.
    pub fn later(&self, builder: &Builder<'c>, steps: Val<'c>) -> Result<Self, Error> {
        Ok(Self { scope: self.scope.later(builder, steps)?, ..self.clone() })
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
        let lower = self.scope.bounds(builder, self.scope.hull.lower)?.first().copied();
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
        let cell = self.scope.cell(&builder, gather.field, &point)?;
        let value = builder.load(self.source(gather.field)?, &cell)?;
        mlir::move_all_before(builder.block, gather.op);
        for result in mlir::results(gather.op) {
            mlir::replace_uses(result, value);
        }
        mlir::erase(gather.op);
        Ok(())
    }
}

/// The body of the module's `gpu.module`, made where there is none.
fn gpu_module<'c>(
    context: &'c Context,
    module: &Module<'c>,
    location: Location<'c>,
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
        &[("sym_name", attribute::string(context, &stencil::unused_name(module, GPU_MODULE)))],
        vec![region],
    )?;
    Ok(block)
}
