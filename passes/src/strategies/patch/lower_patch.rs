//! `lower-patch`: a block computes one tile of a grid of two or three dimensions, all of which lies
//! in the registers of its threads for all steps of the launch.
//!
//! A lane holds some rows of some neighbouring columns of each field, from the load to the store;
//! in three dimensions of some planes. The lanes of a row are lanes of one warp, which hand each
//! other columns by shuffles. The parts of a block hold rows one above the other, and planes one
//! behind the other, and hand each other their outer rows through shared memory (`hand_over.rs`),
//! with one barrier a step. Nothing waits for device memory between the
//! steps, so a tile takes little longer than its arithmetic: this is for grids that are too small
//! for long streams.
//!
//! Needs: tile kernels of strategy `patch` in two or three dimensions. Guarantees: a `gpu.func` for
//! each. Where the kernel has main pieces, tiles at no rim run code without checks. In other tiles,
//! lanes whose rows lie at no rim check few columns (`rims.rs`). Every cell is computed by the
//! operations of its point function in their order, so results are those of `lower-naive` bit for
//! bit.
//!
//! ```text
//! scf.if %interior { <code without checks> } else { <code with checks> }
//!
//! code: %a0[i], ... = vector.load A[...]                     // the lane's rows
//!       vector.store %a0, %a1, %shared0[part, ...]           // the first and the last of them
//!       gpu.barrier
//!       %above = vector.load %shared0[part - 1, 1, ...]; %below = ...
//!       %left = gpu.shuffle up %a0[3]; %right = gpu.shuffle down %a0[0]; ...
//!       %b0[i] = heat(%above[i], %a0[i - 1], %a0[i], %a0[i + 1], %a1[i]); ...      // step 0
//!       vector.store %b0, %b1, %shared1[part, ...]
//!       gpu.barrier
//!       ...                                                  // step 1
//!       scf.if (row and lane lie in the tile) { vector.store %c0, A_next[...] }; ...
//! ```
//! With checks, a cell that no piece covers keeps its value, a cell outside the grid is loaded from
//! the nearest inside (no covered cell depends on it), and nothing is stored there. A read that a
//! boundary rule sends elsewhere selects among the cells that it may be, all of which are in
//! registers. Where a field is periodic the tile goes on beyond the grid as the grid repeated.
//!
//! Declines: grids of one dimension; tiles that are no multiple of a lane's columns, or
//! wider with their halo than a warp; blocks of more threads or more shared memory than a device
//! has; lanes that hold, or by boundary rules select among, too many cells (`layout.rs`).

use super::NAME;
use super::hand_over::{HandOver, Rows};
use super::layout::Layout;
use super::place::Place;
use super::tile_code::TileCode;
use crate::kernel::block_limits::{BlockLimits, Demand, MAX_SHARED, MAX_THREADS};
use crate::kernel::frame::Frame;
use crate::kernel::interior::Limits;
use crate::kernel::launch::{FrameSpec, loads};
use crate::kernel::shared_memory;
use crate::kernel::tile_ends::Ends;
use crate::kernel::tile_kernels;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::subject::Subject;
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir;
use stencil_dialects::tiled::Kernel;
use stencil_runtime::model::{self, Work};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "lower-patch",
    summary: "lower tile kernels of strategy patch: tiles in registers of a block",
    options: &[MAX_SHARED, MAX_THREADS],
    read: |options: &Options| Ok(Box::new(LowerPatch { limits: BlockLimits::read(options)? })),
};

/// The pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LowerPatch {
    /// Limits of a block.
    pub limits: BlockLimits,
}

impl Pass for LowerPatch {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        self.limits.options()
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let kernels = tile_kernels::of_strategy(module, NAME)?;
        tile_kernels::lower(module, &kernels, |subject, kernel| {
            lower(context, subject, kernel, &self.limits, None)
        })
    }
}

/// The code of a tile, with checks or without.
pub type Body<'c, 'b> = dyn Fn(&TileCode<'c, '_>, &Builder<'c>, bool) -> Result<(), Error> + 'b;

/// What a launch of several rounds has in the place of others' code.
pub struct Several<'c, 'b> {
    /// Blocks of a launch, which must all be on the device at once.
    pub blocks: i64,
    /// The code of a tile for all rounds.
    pub body: &'b Body<'c, 'b>,
}

/// Lowers a kernel of one round, or of several.
pub fn lower<'c>(
    context: &'c Context,
    subject: &Subject<'c, '_>,
    kernel: &Kernel<'c>,
    limits: &BlockLimits,
    several: Option<&Several<'c, '_>>,
) -> Result<(), Error> {
    let mut layout = Layout::plan(subject, kernel)?;
    if let Some(several) = several {
        layout.make_room(several.blocks, subject.device);
    }
    let threads = layout.threads();
    let outer = Builder::new(context, kernel.op.location(), mlir::body(subject.module));
    let hand_over = HandOver::plan(&outer, subject.program, kernel, &layout)?;
    let shared = shared_memory::shared_bytes(&hand_over.types);
    let fewer_threads = "make the tile smaller or give a thread more cells";
    limits.admit(subject.device, kernel, &Demand { threads: &threads, shared, fewer_threads })?;
    if let Some(several) = several {
        check_resident(subject, kernel, (&layout, several.blocks, shared))?;
    }
    let margin = layout.margin(kernel)?;
    let loads = loads(kernel, |_| layout.block(kernel))?;
    let spec = FrameSpec {
        loads,
        shared: &hand_over.types,
        margin: &margin,
        registers: Some(layout.limit),
        estimate: layout.registers,
        ..FrameSpec::plain(kernel, &threads)
    };
    let frame = Frame::new(context, subject, &spec)?;
    let place = Place::new(&frame, kernel, &layout)?;
    let rows = Rows::new(&frame, &hand_over, &layout)?;
    let code = TileCode {
        frame: &frame,
        kernel,
        layout: &layout,
        hand_over: &hand_over,
        rows: &rows,
        place: &place,
    };
    let builder = &frame.builder;
    let body = |code: &TileCode<'c, '_>, builder: &Builder<'c>, checked| match several {
        Some(several) => (several.body)(code, builder, checked),
        None => code.body(builder, checked),
    };
    let limits = Limits::of(&frame, kernel, |op, halo| layout.touched(kernel, op, halo))?;
    // Without checks all cells of the block are computed, those beyond the halo too.
    let mut conditions = Vec::new();
    if let Some(limits) = limits.filter(|_| layout.all_total()) {
        conditions.extend(limits.condition(&frame, builder, kernel, 0)?);
        conditions.extend(Ends::off_margin(&place.ends, builder)?);
    }
    match builder.all(&conditions)? {
        Some(interior) => {
            let side = |checked| {
                let (code, body) = (&code, &body);
                move |builder: &Builder<'c>| body(code, builder, checked).map(|()| Vec::new())
            };
            builder.choose(interior, &[], side(false), side(true))?;
        }
        None => body(&code, builder, true)?,
    }
    frame.finish()
}

/// Declines more blocks than are on the device at once.
fn check_resident<'c>(
    subject: &Subject<'c, '_>,
    kernel: &Kernel<'c>,
    (layout, blocks, shared): (&Layout<'c>, i64, i64),
) -> Result<(), Error> {
    let threads = layout.threads().iter().product::<i64>();
    let work = Work {
        threads: u32::try_from(threads).unwrap_or(u32::MAX),
        registers: u32::try_from(layout.limit).unwrap_or(u32::MAX),
        shared: u64::try_from(shared).unwrap_or(u64::MAX),
        ..Work::default()
    };
    let device = subject.device;
    let room = u64::from(model::resident_blocks(&work, device)) * u64::from(device.multiprocessors);
    if u64::try_from(blocks).is_ok_and(|blocks| blocks <= room) {
        return Ok(());
    }
    let message = format!(
        "blocks that wait for each other must all be on the device at once, which has room for \
         {room}, and the grid has {blocks} tiles; make the tile larger, or choose another strategy"
    );
    Err(Error::declined(Decline::Sync, message).at(mlir::place(kernel.op.location())))
}
