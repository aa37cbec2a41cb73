//! `lower-warp`: a warp computes one tile of a grid of one dimension, all steps of the launch in
//! its registers. No shared memory and no barrier.
//!
//! A lane holds some neighbouring cells of each field, from the load to the store. A step reads the
//! cells beside them from the lanes beside by shuffles, so it costs as many shuffles as its
//! footprint is wide, however many cells a lane holds. The cells that are right shrink by the
//! footprint a step, from both ends of the warp's cells to the tile. Steps that are alike are the
//! body of a loop.
//!
//! Needs: tile kernels of strategy `warp` in one dimension. Guarantees: a `gpu.func` for each;
//! tiles away from every rim run code without checks; every cell is computed by the operations of
//! its point function in their order, so results are those of `lower-naive` bit for bit.
//!
//! ```text
//! scf.if %interior { <code without checks> } else { <code with checks> }
//!
//! code: %a = vector.load A[...]                                // the lane's cells
//!       %b = scf.for %step = ... iter_args(%a) {
//!         %left = gpu.shuffle up %a[31]; %right = gpu.shuffle down %a[0]
//!         scf.yield heat(%left, %a[0], %a[1]), heat(%a[0], %a[1], %a[2]), ...
//!       }
//!       scf.if (the lane's cells lie in the tile) { vector.store %b, A_next[...] }
//! ```
//! With checks, a cell that no piece covers keeps its value, a cell outside the grid reads the
//! nearest inside in its place (no covered cell depends on it), and nothing is stored there. A read
//! that a boundary rule sends elsewhere selects among the cells that it may be, which the lane
//! holds anyway. Where a field is periodic the tile goes on beyond the grid as the grid repeated:
//! its cells are loaded and computed as those that they repeat.
//!
//! Declines: grids of two or three dimensions; tiles that are no multiple of the cells a
//! lane, or longer with their halo than a warp.

use super::NAME;
use super::cells::LaneSegment;
use crate::kernel::block_limits::{BlockLimits, Demand, steps_per_launch};
use crate::kernel::frame::Frame;
use crate::kernel::interior::Limits;
use crate::kernel::lanes::{self, WARP};
use crate::kernel::launch::{FrameSpec, loads};
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
use stencil_dialects::tiled::{Halo, Kernel, TileOp};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "lower-warp",
    summary: "lower tile kernels of strategy warp: one dimension, steps in registers",
    options: &[
        ("warps", "tiles per block, a warp each (default 4)"),
        ("unroll", "steps of the loop's body (default 4)"),
    ],
    read: |options: &Options| {
        let warps = options.integer("warps", 1..=u32::MAX.into())?;
        Ok(Box::new(LowerWarp { warps, unroll: options.integer("unroll", 1..=64)? }))
    },
};

/// The pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LowerWarp {
    /// Tiles per block, a warp each.
    pub warps: Option<i64>,
    /// Steps of the loop's body.
    pub unroll: Option<i64>,
}

/// Warps of a block, so that blocks enough for all registers can be resident.
const WARPS: i64 = 4;
/// Steps of the loop's body.
const UNROLL: i64 = 4;

impl Pass for LowerWarp {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let options = [("warps", self.warps), ("unroll", self.unroll)];
        given(options).collect()
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let kernels = tile_kernels::of_strategy(module, NAME)?;
        tile_kernels::lower(module, &kernels, |subject, kernel| {
            self.lower(context, subject, kernel)
        })
    }
}

impl LowerWarp {
    fn lower<'c>(
        &self,
        context: &'c Context,
        subject: &Subject<'c, '_>,
        kernel: &Kernel<'c>,
    ) -> Result<(), Error> {
        let (warps, unroll) = (self.warps.unwrap_or(WARPS), self.unroll.unwrap_or(UNROLL));
        let segment = Segment::plan(kernel)?;
        let threads = [warps.saturating_mul(WARP)];
        let demand = Demand { threads: &threads, shared: 0, fewer_threads: "make warps smaller" };
        BlockLimits::default().admit(subject.device, kernel, &demand)?;
        let none = Halo::none(kernel.schedule.tile.len());
        let loads = loads(kernel, |op| Ok(segment.touched(kernel, op, &none)))?;
        let spec = FrameSpec { warps: Some(warps), loads, ..FrameSpec::plain(kernel, &[]) };
        let frame = Frame::new(context, subject, &spec)?;
        let tile = |builder: &Builder<'c>| {
            let cells = LaneSegment::new(&frame, builder, kernel, &segment)?;
            let limits =
                Limits::of(&frame, kernel, |op, halo| Ok(segment.touched(kernel, op, halo)))?;
            let condition = limits
                .map(|limits| limits.condition(&frame, builder, kernel, 0))
                .transpose()?
                .flatten();
            match condition.filter(|_| cells.all_total()) {
                Some(condition) => {
                    let version = |unroll, checked| {
                        let cells = &cells;
                        move |builder: &Builder<'c>| {
                            super::steps::run(cells, builder, unroll, checked).map(|()| Vec::new())
                        }
                    };
                    // Tiles at a rim are few: a short body takes fewer registers.
                    builder
                        .choose(condition, &[], version(unroll, false), version(1, true))
                        .map(|_| ())
                }
                None => super::steps::run(&cells, builder, 1, true),
            }
        };
        match frame.exists {
            Some(exists) => frame.builder.when(exists, tile)?,
            None => tile(&frame.builder)?,
        }
        frame.finish()
    }
}

/// The cells of a warp.
pub struct Segment {
    /// Cells a lane.
    pub width: i64,
    /// Cells of the tile.
    pub tile: i64,
    /// Cells of the warp before the tile's first, a multiple of `width`.
    pub left: i64,
}

impl Segment {
    fn plan(kernel: &Kernel) -> Result<Self, Error> {
        let refuse = |message: String| {
            let place = mlir::place(kernel.op.location());
            Err(Error::declined(Decline::TileShape, message).at(place))
        };
        let schedule = &kernel.schedule;
        let ([tile], [width]) = (schedule.tile.as_slice(), schedule.per_thread.as_slice()) else {
            return refuse(format!(
                "the strategy warp needs a grid of one dimension, and tiles here have {}",
                schedule.tile.len()
            ));
        };
        let (mut left, mut right) = (0, 0);
        for halo in kernel.tiles().map(|tile| &tile.halo) {
            left = halo.lower.iter().fold(left, |left, lower| left.max(-lower));
            right = halo.upper.iter().copied().fold(right, i64::max);
        }
        let left = lanes::whole(left, *width);
        let (needed, cells) = (left + tile + right, WARP * width);
        if tile % width != 0 {
            return refuse(format!(
                "a tile's cells must be a multiple of the {width} cells per lane, and {tile} are \
                 not"
            ));
        }
        if needed > cells {
            return refuse(format!(
                "a tile of {tile} cells with {} needs {needed} cells with its halo, and a warp \
                 with {width} cells per lane has {cells}",
                steps_per_launch(schedule)
            ));
        }
        Ok(Self { width: *width, tile: *tile, left })
    }

    /// The cells that a tile without checks touches: it loads those of the whole warp.
    fn touched(&self, kernel: &Kernel, op: &TileOp, halo: &Halo) -> Halo {
        match op {
            TileOp::Load { .. } => {
                let right =
                    WARP * self.width - self.left - kernel.schedule.tile.iter().sum::<i64>();
                Halo { lower: vec![-self.left], upper: vec![right] }
            }
            _ => halo.clone(),
        }
    }
}
