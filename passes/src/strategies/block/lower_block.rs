//! `lower-block`: a block computes one tile; every tile value that an apply reads lies in shared
//! memory, with barriers where one thread reads what another wrote.
//!
//! Source: Holewinski, Pouchet, Sadayappan, "High-Performance Code Generation for Stencil
//! Computations on GPU Architectures", section 4.3, algorithms 3 and 4. Here values whose lives do
//! not overlap take turns in one buffer, and a barrier stands only where there is a hazard.
//!
//! Needs: tile kernels of strategy `block`. Guarantees: a `gpu.func` for each; where
//! `split-interior` asks for it, tiles away from every rim run code without bounds checks.
//!
//! Cells outside the grid are neither loaded nor computed, and reads of them are sent to other
//! cells by the field's boundary rule (`evaluate.rs`). Only where a periodic field is read, tiles
//! go on beyond the grid: a cell there is loaded and computed as the one that it repeats, and not
//! stored.
//!
//! ```text
//! %interior = (tile and halo lie in the grid, and in the main piece of every apply)
//! scf.if %interior { <body without checks> } else { <body with checks> }
//!
//! body: for each cell of the loaded region, a cell a thread at a time { shared0[i] = A[origin + i] }
//!       gpu.barrier
//!       for each cell of the first apply's region { shared1[i] = heat(shared0[i + ...], ...) }
//!       gpu.barrier
//!       for each cell of the tile { A_next[origin + i] = heat(shared1[i + ...], ...) }
//! ```
//! With a fixed region, reads at the outer rim are clamped, and cells outside the grid hold zeros.
//!
//! Declines: tiles that need more shared memory or more threads than a block can have; fixed
//! regions with point functions that have no result for some operands.

use super::NAME;
use super::buffers::Buffers;
use super::tile_code::TileCode;
use crate::kernel::block_limits::{BlockLimits, Demand, MAX_SHARED, MAX_THREADS};
use crate::kernel::frame::Frame;
use crate::kernel::interior::Limits;
use crate::kernel::launch::FrameSpec;
use crate::kernel::pieces;
use crate::kernel::shared_memory;
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
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{self, Kernel, Region};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "lower-block",
    summary: "lower tile kernels of strategy block: tiles in shared memory",
    options: &[MAX_SHARED, MAX_THREADS],
    read: |options: &Options| Ok(Box::new(LowerBlock { limits: BlockLimits::read(options)? })),
};

/// The pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LowerBlock {
    /// Limits of a block.
    pub limits: BlockLimits,
}

impl Pass for LowerBlock {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        self.limits.options()
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let kernels = tile_kernels::of_strategy(module, NAME)?;
        tile_kernels::lower(module, &kernels, |subject, kernel| {
            lower(context, subject, kernel, &self.limits)
        })
    }
}

fn lower<'c>(
    context: &'c Context,
    subject: &Subject<'c, '_>,
    kernel: &Kernel<'c>,
    limits: &BlockLimits,
) -> Result<(), Error> {
    let (module, program) = (subject.module, subject.program);
    let schedule = &kernel.schedule;
    let threads = super::threads(kernel);
    if schedule.region == Region::Fixed {
        all_total(module, program, kernel)?;
    }
    let outer = Builder::new(context, kernel.op.location(), mlir::body(module));
    let buffers = Buffers::plan(&outer, program, kernel)?;
    let shared = shared_memory::shared_bytes(&buffers.types);
    let fewer_threads = "make the tile smaller or give a thread more cells";
    let demand = Demand { threads: &threads, shared, fewer_threads };
    limits.admit(subject.device, kernel, &demand)?;
    let spec = FrameSpec { shared: &buffers.types, ..FrameSpec::plain(kernel, &threads) };
    let frame = Frame::new(context, subject, &spec)?;
    let wraps = tiled::wraps(program, kernel)?;
    let lowering = TileCode { frame: &frame, kernel, buffers: &buffers, threads: &threads, wraps };
    let limits = Limits::of(&frame, kernel, |_, halo| Ok(halo.clone()))?;
    let interior = limits
        .map(|limits| limits.condition(&frame, &frame.builder, kernel, 0))
        .transpose()?
        .flatten();
    match interior {
        Some(interior) => {
            let body = |checked| {
                let lowering = &lowering;
                move |builder: &Builder<'c>| lowering.body(builder, checked).map(|()| Vec::new())
            };
            frame.builder.choose(interior, &[], body(false), body(true))?;
        }
        None => lowering.body(&frame.builder, true)?,
    }
    frame.finish()
}

/// Checks that all point functions have a result for the operands of cells at a tile's outer rim. A
/// single apply computes what is needed of it.
fn all_total<'c>(
    module: &Module<'c>,
    program: &Program<'c>,
    kernel: &Kernel<'c>,
) -> Result<(), Error> {
    if kernel.applies().count() <= 1 {
        return Ok(());
    }
    for apply in kernel.applies() {
        for piece in &apply.pieces {
            if !pieces::is_total(module, program, piece)? {
                return Err(Error::declined(
                    Decline::PartialFunction,
                    format!(
                        "a fixed region also computes cells from values that are not there, and \
                         @{} divides integers or reads a field at coordinates, which such values \
                         can break; take the region shrinking",
                        piece.function
                    ),
                )
                .at(mlir::place(apply.op.location())));
            }
        }
    }
    Ok(())
}
