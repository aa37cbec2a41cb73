//! `lower-plane`: a block walks along the slowest dimension, one step a launch, and keeps every
//! cell that it has loaded until no plane needs it any more.
//!
//! A thread computes a segment of neighbouring cells of each plane. Its own cells of the planes
//! around lie in registers; cells of others lie in shared memory, in a ring of the planes whose
//! rows and columns are read (`held.rs`). Threads load the halo of the tile beside their own cells.
//! Loads are one or two planes ahead, whole segments at a time, and one barrier a plane serves all
//! fields.
//!
//! Needs: tile kernels of strategy `plane` in two or three dimensions, each with one apply.
//! Guarantees: a `gpu.func` for each. Every cell is computed by the operations of its point
//! function in their order, so results are those of `lower-naive` bit for bit.
//!
//! ```text
//! scf.for %k = ... iter_args(planes %k - 4 to %k + 5 of the thread's segment, %halo, two slots) {
//!   %new = vector.load U[%k + 6, ...]; %next = vector.load U[%k + 2, beside the tile]
//!   %left = vector.load %ring[%slot0, ...]; ...          // plane %k
//!   %u[i] = wave(%planes[...], %left, ...)
//!   scf.if (cells lie in the grid) { vector.store %u, U_next[%k, ...] }
//!   vector.store %planes[5], %ring[%slot1, ...]; vector.store %halo, ...    // plane %k + 1
//!   gpu.barrier
//!   scf.yield
//! }
//! ```
//! A cell outside the grid is loaded as its boundary rule has it (`source.rs`), so no read has to
//! follow the rule. A cell that no piece covers keeps its value.
//!
//! Declines: several applies; tiles that no number of segments fills; blocks of more threads or
//! more shared memory than a device has; more planes than registers; boundary rules that divide
//! integers, whose value is computed beyond the cells that are read.

use super::NAME;
use super::layout::Layout;
use super::walk::Walk;
use crate::analysis::footprint;
use crate::kernel::block_limits::{BlockLimits, Demand, MAX_SHARED, MAX_THREADS};
use crate::kernel::frame::Frame;
use crate::kernel::lanes;
use crate::kernel::launch::{FrameSpec, loads};
use crate::kernel::pieces;
use crate::kernel::shared_memory;
use crate::kernel::tile_kernels;
use crate::options::{Options, given};
use crate::pass::{Info, Pass};
use crate::subject::Subject;
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir;
use stencil_dialects::tiled::{self, Halo, Kernel, TileOp};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "lower-plane",
    summary: "lower tile kernels of strategy plane: planes in registers and shared memory",
    options: &[
        ("ahead", "planes loaded before their turn (default: 2, or 1 where registers are short)"),
        ("unroll", "planes of the loop's body (default: 1)"),
        MAX_SHARED,
        MAX_THREADS,
        ("registers", "registers that a thread may take (default: by the planes that it holds)"),
    ],
    read: |options: &Options| {
        let registers = options.integer("registers", 16..=255)?;
        let ahead = options.integer("ahead", 1..=16)?;
        let unroll = options.integer("unroll", 1..=64)?;
        Ok(Box::new(LowerPlane { ahead, unroll, limits: BlockLimits::read(options)?, registers }))
    },
};

/// The pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LowerPlane {
    /// Planes loaded before their turn.
    pub ahead: Option<i64>,
    /// Planes of the loop's body.
    pub unroll: Option<i64>,
    /// Limits of a block.
    pub limits: BlockLimits,
    /// Registers that a thread may take.
    pub registers: Option<i64>,
}

impl Pass for LowerPlane {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let own = [("ahead", self.ahead), ("unroll", self.unroll), ("registers", self.registers)];
        given(own).chain(self.limits.options()).collect()
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let kernels = tile_kernels::of_strategy(module, NAME)?;
        tile_kernels::lower(module, &kernels, |subject, kernel| {
            self.lower(context, subject, kernel)
        })
    }
}

impl LowerPlane {
    fn lower<'c>(
        &self,
        context: &'c Context,
        subject: &Subject<'c, '_>,
        kernel: &Kernel<'c>,
    ) -> Result<(), Error> {
        let applies: Vec<_> = kernel.applies().collect();
        let [apply] = applies.as_slice() else {
            let message = format!(
                "a tile kernel of strategy {NAME} has one tiled.apply, and @{} has {}",
                kernel.name,
                applies.len()
            );
            return Err(decline(kernel, Decline::Applies, message));
        };
        for (field, _) in &apply.inputs {
            if !pieces::rule_is_total(subject.module, subject.program, field)? {
                let message = format!(
                    "the boundary rule of @{field} divides integers, and the strategy {NAME} also \
                     computes it where no function reads it and a divisor may be 0; choose another \
                     strategy"
                );
                return Err(decline(kernel, Decline::PartialFunction, message));
            }
        }
        let layout = Layout::plan(subject, (kernel, apply), (self.ahead, self.unroll))?;
        let threads = layout.block(kernel.schedule.tile.len());
        let outer = Builder::new(context, kernel.op.location(), mlir::body(subject.module));
        let buffers = layout.buffers(&outer)?;
        let shared = shared_memory::shared_bytes(&buffers);
        let demand = Demand { threads: &threads, shared, fewer_threads: "make the tile smaller" };
        self.limits.admit(subject.device, kernel, &demand)?;
        let whole = tiled::wraps(subject.program, kernel)?
            || footprint::gathers_own(subject.module, kernel)?;
        let loads = loads(kernel, |op| loaded(kernel, op, &layout))?;
        let spec = FrameSpec {
            loads,
            shared: &buffers,
            registers: Some(self.registers.unwrap_or(layout.limit)),
            estimate: layout.estimate,
            row_distance: if whole { None } else { Some(row_distance(kernel)?) },
            ..FrameSpec::plain(kernel, &threads)
        };
        let frame = Frame::new(context, subject, &spec)?;
        Walk::new(&frame, (kernel, apply), &layout)?.tile()?;
        frame.finish()
    }
}

/// The cells around a tile that a load touches: the tile itself too, planes before their turn, and
/// whole segments of a row.
fn loaded<'c>(kernel: &Kernel<'c>, load: &TileOp<'c>, layout: &Layout) -> Result<Halo, Error> {
    let none = Halo::none(kernel.schedule.tile.len());
    let TileOp::Load { tile, .. } = load else { return Ok(none) };
    let mut all = kernel.tile(*tile)?.halo.hull(&none);
    if let Some(last) = all.upper.first_mut() {
        *last += layout.ahead.max(1) + layout.unroll;
    }
    if let (Some(west), Some(east)) = (all.lower.last_mut(), all.upper.last_mut()) {
        (*west, *east) = (-lanes::whole(-*west, layout.width), lanes::whole(*east, layout.width));
    }
    Ok(all)
}

/// How many tiles away along the slowest dimension a tile reads at offsets.
fn row_distance(kernel: &Kernel) -> Result<i64, Error> {
    let mut farthest = 0;
    for tile in kernel.tiles() {
        farthest = tile.halo.lower.first().map_or(farthest, |before| farthest.max(-before));
        farthest = tile.halo.upper.first().map_or(farthest, |after| farthest.max(*after));
    }
    let tile = kernel.schedule.tile.first().copied().unwrap_or(1).max(1);
    Ok((farthest + tile - 1) / tile)
}

/// A decline at the tile kernel.
pub fn decline(kernel: &Kernel, reason: Decline, message: impl Into<String>) -> Error {
    Error::declined(reason, message.into()).at(mlir::place(kernel.op.location()))
}
