//! `lower-stream`: a warp computes one tile of a grid of two dimensions, walking down its rows with
//! all steps of the launch in flight in registers. No shared memory and no barrier.
//!
//! A lane holds some neighbouring cells of a row. Iteration `k` loads row `k` of the fields and
//! computes row `k - lag(v)` of every other tile value `v`, so a row is read while it is still in
//! registers; `analysis/stream_pipeline` says how far each value lags and how long its rows live.
//! Neighbours along a row lie in the same lane but for its first and last cells, which come from
//! the lanes beside it by shuffles, once a row. The loop's body holds several rows, so that rows
//! change their names and not their registers. Rows are loaded some iterations before their turn.
//!
//! Needs: tile kernels of strategy `stream` in two dimensions. Guarantees: a `gpu.func` for each;
//! tiles away from every rim run code without checks; every cell is computed by the operations of
//! its point function in their order, so results are those of `lower-naive` bit for bit.
//!
//! ```text
//! scf.if %interior { <loop without checks> } else { <loop with checks> }
//!
//! loop: %rows = scf.for %k = ... step 3 iter_args(two rows of each value, three loaded rows) {
//!         %new = vector.load A[%k + 3, ...]                   // three rows ahead
//!         %left = gpu.shuffle up %a1[3]; %right = gpu.shuffle down %a1[0]
//!         %b0[i] = heat(%a2[i], %a1[i - 1], %a1[i], %a1[i + 1], %a0[i])   // step 0, row %k - 1
//!         %c0[i] = heat(%b2[i], ...)                                      // step 1, row %k - 2
//!         scf.if (lane and row lie in the tile) { vector.store %c0, A_next[%k - 2, ...] }
//!         ...                                                 // rows %k + 1 and %k + 2
//!         scf.yield
//!       }
//! ```
//! With checks, a cell that no piece covers keeps its value, a row or column outside the grid reads
//! the nearest cell inside in its place (no covered cell depends on it), and nothing is stored there.
//!
//! Declines: grids of one or three dimensions; tiles that are no multiple of the cells a
//! lane, or wider with their halo than a warp.

mod checks;
mod in_flight;
mod strip;
mod walk;

use super::emit::{self, Frame, FrameSpec};
use super::interior;
use crate::analysis::stream_pipeline;
use crate::options::Options;
use crate::pass::Pass;
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::Kernel;
use strip::Strip;

/// The pass.
pub const PASS: Pass = Pass {
    name: "lower-stream",
    summary: "lower tile kernels of strategy stream: steps in flight in registers",
    options: &[
        ("warps", "tiles a block, a warp each (default 1)"),
        ("slack", "iterations that a computed row waits for its readers (default 0)"),
        ("ahead", "rows loaded ahead of their turn (default: 2 or 3)"),
        ("unroll", "rows of the loop's body (default: by the rows in flight)"),
        ("registers", "registers that a thread may take (default: by the rows in flight)"),
    ],
    run,
};

/// Warps that a block can have.
const MOST_WARPS: i64 = 32;

fn run<'c>(context: &'c Context, module: &mut Module<'c>, options: &Options) -> Result<(), Error> {
    let warps = options.integer("warps", 1..=MOST_WARPS)?.unwrap_or(1);
    let slack = options.integer("slack", 0..=8)?.unwrap_or(0);
    let (ahead, unroll) = (options.integer("ahead", 1..=64)?, options.integer("unroll", 1..=64)?);
    let registers = options.integer("registers", 16..=255)?;
    let program = Program::read(module)?;
    let kernels = emit::kernels_of(module, &program, "stream")?;
    for kernel in &kernels {
        let mut strip = Strip::plan(module, &program, kernel, slack)?;
        strip.pipeline.unroll = unroll.unwrap_or(strip.pipeline.unroll);
        strip.pipeline.ahead = ahead.unwrap_or(strip.pipeline.ahead);
        let registers = registers.unwrap_or_else(|| stream_pipeline::register_limit(strip.pipeline.registers));
        let spec = FrameSpec {
            kernel,
            threads: &[],
            shared: &[],
            in_place: false,
            warps: Some(warps),
            registers: Some(registers),
        };
        let frame = Frame::new(context, module, &program, &spec)?;
        let tile = |builder: &Builder<'c>| tile(&frame, builder, module, kernel, &strip);
        match frame.exists {
            Some(exists) => frame.builder.when(exists, tile)?,
            None => tile(&frame.builder)?,
        }
        frame.finish()?;
    }
    emit::erase_kernels(module, &kernels)
}

/// The code of one tile: a version without checks for most tiles, and one with.
fn tile<'c>(
    frame: &Frame<'c, '_>,
    builder: &Builder<'c>,
    module: &Module<'c>,
    kernel: &Kernel<'c>,
    strip: &Strip<'c>,
) -> Result<(), Error> {
    let walk = walk::Walk::new(frame, builder, module, kernel, strip)?;
    match interior::condition(frame, builder, kernel, |op, halo| strip.reach(kernel, op, halo))? {
        Some(condition) => {
            let version = |checked| {
                let walk = &walk;
                move |builder: &Builder<'c>| walk.rows(builder, checked).map(|()| Vec::new())
            };
            builder.choose(condition, &[], version(false), version(true)).map(|_| ())
        }
        None => walk.rows(builder, true),
    }
}

/// An error at the tile kernel.
fn refuse(kernel: &Kernel, message: String) -> Error {
    Error::new(mlir::place(kernel.op.location()), message)
}
