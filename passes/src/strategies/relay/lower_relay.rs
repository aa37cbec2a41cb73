//! `lower-relay`: a block computes one tile of a grid of two dimensions, walking along the slowest.
//! Its warps are stages of time.
//!
//! A warp holds whole rows of the tile with its halo, each lane some neighbouring cells, and
//! computes some steps as a stream does. It hands each row of its last step to the next warp
//! through shared memory, so a launch takes as many steps as all warps together. All threads of the
//! block load the rows of the first warp and store those of the last.
//!
//! The halo of a launch is paid once for the steps of all warps, in rows that are as wide as the
//! registers of a warp allow. A stream of one warp has either wide rows or many steps.
//!
//! Needs: tile kernels of strategy `relay` in two dimensions. Guarantees: a `gpu.func` for each.
//! Where the kernel has main pieces, tiles at no rim run code without checks. Every cell is
//! computed by the operations of its point function in their order, so results are those of
//! `lower-naive` bit for bit.
//!
//! ```text
//! scf.if %interior { <loop without checks> } else { <loop with checks> }
//!
//! loop: scf.for %beat = ... iter_args(two rows of each value) {
//!         %put = %beat % 2; %take = 1 - %put
//!         %done = load %rings[warps, %take, thread]   // a part of a row that is done
//!         %next = load A[...]                         // a part of the next row
//!         scf.if (row and column lie in the tile) { store %done, A_next[...] }
//!         %a0[i] = load %rings[warp, %take, 13 * lane + i]
//!         %b0[i] = heat(%a2[i], %a1[i - 1], ...)     // the warp's first step
//!         %c0[i] = heat(%b2[i], ...)                 // its second step
//!         store %c0[i], %rings[warp + 1, %put, 13 * lane + i]
//!         store %next, %rings[0, %put, thread]
//!         gpu.barrier
//!       }
//! ```
//! A row that one warp hands over is the next warp's an iteration later, so each ring has two slots
//! and one barrier an iteration is enough. With an odd number of cells a lane no banks conflict.
//!
//! Declines: functions of several fields; tiles wider with their halo than a warp; steps that are
//! no multiple of the warps that they need registers of; blocks of more threads or more shared
//! memory than a device has.

use super::NAME;
use super::layout::Layout;
use super::rings;
use super::walk::Walk;
use crate::analysis::footprint;
use crate::kernel::block_limits::{self, BlockLimits, Demand, MAX_SHARED, MAX_THREADS};
use crate::kernel::frame::Frame;
use crate::kernel::launch::{FrameSpec, loads};
use crate::kernel::shared_memory;
use crate::kernel::tile_kernels;
use crate::options::{Options, given};
use crate::pass::{Info, Pass};
use crate::subject::Subject;
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::tiled::Kernel;

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "lower-relay",
    summary: "lower tile kernels of strategy relay: warps as stages of time",
    options: &[
        ("rows", "rows between two barriers (default: 1)"),
        (
            "prefetch",
            "rows beyond those brought into the level 2 cache (default: 4; 0 on several devices)",
        ),
        ("warps", "the most warps of a block (default: 4, or more where registers lack)"),
        MAX_SHARED,
        MAX_THREADS,
        ("registers", "registers that a thread may take (default: by the rows in flight)"),
    ],
    read: |options: &Options| {
        Ok(Box::new(LowerRelay {
            rows: options.integer("rows", 1..=64)?,
            prefetch: options.integer("prefetch", 0..=64)?,
            warps: options.integer("warps", 1..=64)?,
            registers: options.integer("registers", 16..=u32::MAX.into())?,
            limits: BlockLimits::read(options)?,
        }))
    },
};

/// The pass. Options that are left open follow from the rows in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LowerRelay {
    /// Rows between two barriers.
    pub rows: Option<i64>,
    /// Rows beyond those that are loaded which are brought into the level 2 cache.
    pub prefetch: Option<i64>,
    /// The most warps of a block; the steps are shared among as many as they are a multiple of.
    pub warps: Option<i64>,
    /// Registers that a thread may take.
    pub registers: Option<i64>,
    /// Limits of a block.
    pub limits: BlockLimits,
}

impl Pass for LowerRelay {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let own = [
            ("rows", self.rows),
            ("prefetch", self.prefetch),
            ("warps", self.warps),
            ("registers", self.registers),
        ];
        given(own).chain(self.limits.options()).collect()
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let kernels = tile_kernels::of_strategy(module, NAME)?;
        tile_kernels::lower(module, &kernels, |subject, kernel| {
            self.lower(context, subject, kernel)
        })
    }
}

impl LowerRelay {
    fn lower<'c>(
        &self,
        context: &'c Context,
        subject: &Subject<'c, '_>,
        kernel: &Kernel<'c>,
    ) -> Result<(), Error> {
        let rows = self.rows.unwrap_or(1);
        let mut layout = Layout::plan(subject, kernel, (rows, self.warps))?;
        layout.prefetch = self.prefetch.unwrap_or(layout.prefetch);
        layout.limit = block_limits::registers(self.registers, layout.limit, subject.device)?;
        let threads = layout.threads();
        let outer = Builder::new(context, kernel.op.location(), mlir::body(subject.module));
        let shared = [rings::ty(&outer, &layout)?];
        let fewer_threads = "make the pyramid height smaller";
        let bytes = shared_memory::shared_bytes(&shared);
        let demand = Demand { threads: &threads, shared: bytes, fewer_threads };
        self.limits.admit(subject.device, kernel, &demand)?;
        let margin = layout.margin(kernel);
        let loads = loads(kernel, |_| Ok(layout.loaded(kernel)))?;
        let far = layout.above.max(layout.below);
        let tile = kernel.schedule.tile.first().copied().unwrap_or(1).max(1);
        let spec = FrameSpec {
            loads,
            shared: &shared,
            rim_first: true,
            margin: &margin,
            registers: Some(layout.limit),
            estimate: layout.estimate,
            row_distance: match layout.stage.wraps
                || footprint::gathers_own(subject.module, kernel)?
            {
                true => None,
                false => Some((far + tile - 1) / tile),
            },
            ..FrameSpec::plain(kernel, &threads)
        };
        let frame = Frame::new(context, subject, &spec)?;
        let (tile, rows) = frame.of_tile(&kernel.schedule)?;
        Walk::new(&tile, kernel, &layout, rows)?.tile()?;
        frame.finish()
    }
}
