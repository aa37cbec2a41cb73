//! `lower-stream`: a block computes one tile of a grid of two or three dimensions, walking along
//! the slowest with all steps of the launch in flight in registers.
//!
//! A *plane* is the part of a tile at one coordinate of the slowest dimension; in two dimensions it
//! is a row. A lane holds some neighbouring cells of a row, and in three dimensions of some rows.
//! Iteration `k` loads plane `k` of the fields and computes plane `k - lag(v)` of every other tile
//! value `v`, so a plane is read while it is still in registers. `pipeline.rs` finds how far each
//! value lags and how long its planes live.
//!
//! Neighbours along a row lie in the same lane. Those of its first and last cell come from the
//! lanes beside it by shuffles, once per row. In two dimensions a block is one warp, and this is
//! all. In three, parts of the block hold rows one above the other. They hand the outer ones to
//! each other through shared memory (`shared.rs`), with one barrier per iteration for all values.
//!
//! The loop's body holds several planes, so that planes change their names and not their registers.
//! Planes are loaded some iterations before their turn. Rows a few iterations later are prefetched
//! into the level 2 cache, which costs no registers.
//!
//! A stream without periodic fields records how many tile rows away a tile reads, and has the
//! launch's first row as an argument. Its launches can be cut into bands that overlap with those of
//! the next launch.
//!
//! In two dimensions, where the sizes are known, the tiles of the first and the last column are two
//! halves, with a block each: code with checks takes twice as long.
//!
//! Needs: tile kernels of strategy `stream` in two or three dimensions. Guarantees: a `gpu.func`
//! for each. Where the kernel has main pieces, tiles away from the rims of rows and columns run
//! code without checks, but for the planes at their ends. Every cell is computed by the operations
//! of its point function in their order, so results are those of `lower-naive` bit for bit.
//!
//! ```text
//! scf.if %interior { <loop without checks of rows and columns> } else { <loop with them> }
//!
//! loop: %planes = scf.for %k = ... step 3 iter_args(two planes of each value, three loaded planes) {
//!         %new = vector.load A[%k + 3, ...]                   // three planes ahead
//!         memref.prefetch A[%k + 7, ...]                      // of two dimensions
//!         %left = gpu.shuffle up %a1[3]; %right = gpu.shuffle down %a1[0]
//!         %above = vector.load %shared_a[1 - %k % 2, ...]     // of three dimensions
//!         %b0[i] = heat(%a2[i], %a1[i - 1], %a1[i], %a1[i + 1], %a0[i])   // step 0, plane %k - 1
//!         %c0[i] = heat(%b2[i], ...)                                      // step 1, plane %k - 2
//!         scf.if (cells and plane lie in the tile) { vector.store %c0, A_next[%k - 2, ...] }
//!         vector.store %a0, %shared_a[%k % 2, ...]; gpu.barrier           // of three dimensions
//!         ...                                                 // planes %k + 1 and %k + 2
//!         scf.yield
//!       }
//! ```
//! With checks, a cell that no piece covers keeps its value, a cell outside the grid reads the
//! nearest inside in its place (no covered cell depends on it), and nothing is stored there. A read
//! that a boundary rule sends elsewhere selects among the cells that it may be, all of which are in
//! flight. Where a field is periodic the tile goes on beyond the grid as the grid repeated: its
//! cells are loaded and computed as those that they repeat.
//!
//! Declines: grids of one dimension; tiles that are no multiple of the cells a lane, or wider with
//! their halo than a warp; blocks of more threads or more shared memory than a device has; reads so
//! far along the slowest dimension, and boundary rules that send the reads of a lane to so many
//! cells, that registers would not hold what is in flight (`layout.rs`).

use super::layout::Layout;
use super::walk::Walk;
use super::{NAME, registers, shared};
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
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir;
use stencil_dialects::tiled::{Kernel, TileOp};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "lower-stream",
    summary: "lower tile kernels of strategy stream: steps in flight in registers",
    options: &[
        ("ahead", "planes loaded ahead of their turn (default: 2 or 3)"),
        (
            "prefetch",
            "planes beyond those brought into the level 2 cache (default: 4 rows of one or two \
             fields)",
        ),
        ("unroll", "planes of the loop's body (default: by the planes in flight)"),
        MAX_SHARED,
        MAX_THREADS,
        ("registers", "registers that a thread may take (default: by the planes in flight)"),
    ],
    read: |options: &Options| {
        Ok(Box::new(LowerStream {
            ahead: options.integer("ahead", 1..=64)?,
            prefetch: options.integer("prefetch", 0..=64)?,
            unroll: options.integer("unroll", 1..=64)?,
            registers: options.integer("registers", 16..=u32::MAX.into())?,
            limits: BlockLimits::read(options)?,
        }))
    },
};

/// The pass. Options that are left open follow from the planes in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LowerStream {
    /// Planes loaded ahead of their turn.
    pub ahead: Option<i64>,
    /// Planes beyond those that are brought into the level 2 cache.
    pub prefetch: Option<i64>,
    /// Planes of the loop's body.
    pub unroll: Option<i64>,
    /// Registers that a thread may take.
    pub registers: Option<i64>,
    /// Limits of a block.
    pub limits: BlockLimits,
}

impl Pass for LowerStream {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let own = [
            ("ahead", self.ahead),
            ("prefetch", self.prefetch),
            ("unroll", self.unroll),
            ("registers", self.registers),
        ];
        given(own).chain(self.limits.options()).collect()
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let kernels = tile_kernels::with_partial_sums(module, NAME)?;
        tile_kernels::lower(module, &kernels, |subject, kernel| {
            self.lower(context, subject, kernel)
        })
    }
}

impl LowerStream {
    fn lower<'c>(
        &self,
        context: &'c Context,
        subject: &Subject<'c, '_>,
        kernel: &Kernel<'c>,
    ) -> Result<(), Error> {
        let mut layout = Layout::plan(subject, kernel)?;
        let pipeline = &mut layout.pipeline;
        pipeline.unroll = self.unroll.unwrap_or(pipeline.unroll);
        pipeline.ahead = self.ahead.unwrap_or(pipeline.ahead);
        let prefetch = registers::prefetch_of_devices(pipeline.prefetch, &subject.devices);
        pipeline.prefetch = self.prefetch.unwrap_or(prefetch);
        layout.limit = block_limits::registers(self.registers, layout.limit, subject.device)?;
        let threads = layout.threads(kernel);
        let outer = Builder::new(context, kernel.op.location(), mlir::body(subject.module));
        let buffers = shared::types(&outer, &layout)?;
        let fewer_threads = "make the tile smaller or give a thread more cells";
        let shared = shared_memory::shared_bytes(&buffers);
        let demand = Demand { threads: &threads, shared, fewer_threads };
        self.limits.admit(subject.device, kernel, &demand)?;
        let margin = layout.margin(kernel);
        let loads = loads(kernel, |op| layout.loaded(kernel, op))?;
        let spec = FrameSpec {
            loads,
            shared: &buffers,
            rim_first: true,
            halves: true,
            margin: &margin,
            registers: Some(layout.limit),
            estimate: layout.pipeline.registers,
            row_distance: match layout.wraps || footprint::gathers_own(subject.module, kernel)? {
                true => None,
                false => Some(row_distance(kernel)?),
            },
            ..FrameSpec::plain(kernel, &threads)
        };
        let frame = Frame::new(context, subject, &spec)?;
        let (tile, planes) = frame.of_tile(&kernel.schedule)?;
        Walk::new(&tile, kernel, &layout, planes)?.tile()?;
        frame.finish()
    }
}

/// How many tiles away along the slowest dimension a tile reads at offsets.
fn row_distance(kernel: &Kernel) -> Result<i64, Error> {
    let mut farthest = 0;
    for op in &kernel.body {
        if let TileOp::Load { tile, .. } = op {
            let halo = &kernel.tile(*tile)?.halo;
            farthest = halo.lower.first().map_or(farthest, |before| farthest.max(-before));
            farthest = halo.upper.first().map_or(farthest, |after| farthest.max(*after));
        }
    }
    let tile = kernel.schedule.tile.first().copied().unwrap_or(1).max(1);
    Ok((farthest + tile - 1) / tile)
}

/// A decline at the tile kernel.
pub fn decline(kernel: &Kernel, reason: Decline, message: String) -> Error {
    Error::declined(reason, message).at(mlir::place(kernel.op.location()))
}
