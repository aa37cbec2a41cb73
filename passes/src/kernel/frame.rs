//! The frame of a lowered kernel: a `gpu.func` up to its tile's origin, made of a signature
//! (`signature.rs`), a launch (`launch.rs`), the function (`function.rs`) and the tile's place
//! (`tile_place.rs`).

use super::function::{self, KernelFunction};
use super::launch::{self, FrameSpec};
use super::scope::Scope;
use super::signature::Signature;
use super::tile_kernels;
use super::tile_place::{self, ThreadTile};
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use std::collections::BTreeMap;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{Op, Val};
use stencil_dialects::tiled::{Binding, Schedule};

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
    /// The flags of the kernel and what they stand at, where a launch has several rounds.
    pub flags: Option<[Val<'c>; 2]>,
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
        let outer = function::container(context, module, location)?;
        let row = spec.row_distance.map(|_| Binding::Row);
        let more: &[Binding] = match spec.kernel.wave.sweeps {
            Some(_) => &[Binding::Flags, Binding::Epoch],
            None => row.as_slice(),
        };
        let signature = Signature::of(&outer, module, program, spec.kernel, spec.in_place, more)?;
        let hull = tile_kernels::hull(context, program, spec.kernel)?;
        let held = spec.kernel.tiles().map(|tile| program.grid_of(tile.field));
        let held = held.collect::<Result<Vec<_>, _>>()?;
        let margin = tile_place::margin(&hull, &held, spec.margin);
        let tiles = tile_place::Tiles::of(context, &hull, spec, &margin)?;
        let place = (&hull, &tiles, margin.as_slice());
        let attributes = launch::attributes(&outer, subject, spec, place)?;
        let KernelFunction { builder, op, arguments, shared } =
            function::build(&outer, subject, &signature, attributes, spec.shared)?;
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
        let flags = arguments.flags.zip(arguments.epoch).map(<[Val<'c>; 2]>::from);
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
            flags,
            sources,
            targets,
        })
    }

    /// The same kernel where the buffers of each field that is read and written are exchanged.
    pub fn exchanged(&self) -> Self {
        let mut other = self.clone();
        for (field, target) in &self.targets {
            if let Some(source) = other.sources.insert(field, *target) {
                other.targets.insert(field, source);
            }
        }
        other
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
        function::load_gathered(&self.builder, &self.scope, self.op, &self.sources)
    }
}
