//! `lower-naive`: one thread a point, straight from and to global memory. The baseline that every
//! other strategy is measured against.
//!
//! Needs: tile kernels of strategy `naive`, each with one apply. Guarantees: a `gpu.func` for each.
//! A kernel that reads its updated fields at the point alone works in place; else it writes the
//! other buffer, and points that no piece covers are copied.
//!
//! ```text
//! %i, %j = origin + thread
//! scf.if (%i, %j in grid) {
//!   scf.if (%i, %j in piece) { store heat(load A[%i - 1, %j], ...), A_next[%i, %j] }
//!   else                     { store (load A[%i, %j]), A_next[%i, %j] }
//! }
//! ```

use super::emit::{self, Frame, FrameSpec};
use crate::options::Options;
use crate::pass::Pass;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::Module;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::{Piece, Program};
use stencil_dialects::tiled::{self, Apply, Kernel, TileOp};

use crate::analysis::footprint;

/// The pass.
pub const PASS: Pass =
    Pass { name: "lower-naive", summary: "lower tile kernels of strategy naive: one thread a point", options: &[], run };

fn run<'c>(context: &'c Context, module: &mut Module<'c>, _: &Options) -> Result<(), Error> {
    let program = Program::read(module)?;
    for kernel in tiled::kernels(module)?.iter().filter(|kernel| kernel.schedule.strategy == "naive") {
        lower(context, module, &program, kernel)?;
        emit::erase_kernel(kernel);
    }
    emit::erase_point_functions(module)
}

fn lower<'c>(context: &'c Context, module: &Module<'c>, program: &Program<'c>, kernel: &Kernel<'c>) -> Result<(), Error> {
    let applies: Vec<_> = kernel.body.iter().filter_map(|op| if let TileOp::Apply(apply) = op { Some(apply) } else { None }).collect();
    let [apply] = applies.as_slice() else {
        let place = mlir::place(kernel.op.location());
        return Err(Error::new(place, format!("a tile kernel of strategy naive has one tiled.apply, and @{} has {}", kernel.name, applies.len())));
    };
    let reads = footprint::of_pieces(module, &apply.pieces)?;
    let updated = |field: &str| apply.outputs.iter().any(|(name, _)| *name == field);
    let in_place = reads.iter().all(|read| !updated(read.field) || read.offset.iter().all(|offset| *offset == 0));
    let threads = &kernel.schedule.tile;
    let spec = FrameSpec { kernel, threads, shared: &[], in_place, warps: None, registers: None };
    let frame = Frame::new(context, module, program, &spec)?;
    let builder = Builder { location: apply.op.location(), ..frame.builder };
    let point: Vec<_> =
        frame.origin.iter().zip(&frame.thread).map(|(origin, thread)| builder.add(*origin, *thread)).collect::<Result<_, _>>()?;
    let field = apply.outputs.first().map(|(field, _)| *field).unwrap_or_default();
    let grid = program.grid_of(field)?;
    let in_grid = frame.inside(&builder, &point, grid.lower, grid.upper)?;
    builder.when(in_grid, |builder| {
        let cell = frame.cell(builder, field, &point)?;
        write_piece(&frame, builder, module, apply, &apply.pieces, &point, &cell, in_place)
    })?;
    frame.finish()
}

#[expect(clippy::too_many_arguments, reason = "one recursion over pieces with all that a point has")]
fn write_piece<'c>(
    frame: &Frame<'c, '_>,
    builder: &Builder<'c>,
    module: &Module<'c>,
    apply: &Apply<'c>,
    pieces: &[Piece<'c>],
    point: &[Val<'c>],
    cell: &[Val<'c>],
    in_place: bool,
) -> Result<(), Error> {
    let Some((piece, rest)) = pieces.split_first() else {
        if !in_place {
            for (field, _) in &apply.outputs {
                builder.store(builder.load(frame.source(field)?, cell)?, frame.target(field)?, cell)?;
            }
        }
        return Ok(());
    };
    let in_piece = frame.inside(builder, point, piece.lower, piece.upper)?;
    let write = |builder: &Builder<'c>| {
        let values = frame.evaluate(builder, module, piece, point, apply.step, |builder, field, offset| {
            let at: Vec<_> =
                cell.iter().zip(offset).map(|(index, offset)| builder.add_constant(*index, *offset)).collect::<Result<_, _>>()?;
            builder.load(frame.source(field)?, &at)
        })?;
        for ((field, _), value) in apply.outputs.iter().zip(values) {
            builder.store(value, frame.target(field)?, cell)?;
        }
        Ok(Vec::new())
    };
    let otherwise = |builder: &Builder<'c>| {
        write_piece(frame, builder, module, apply, rest, point, cell, in_place).map(|()| Vec::new())
    };
    builder.choose(in_piece, &[], write, otherwise).map(|_| ())
}
