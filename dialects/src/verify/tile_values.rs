//! Values of tiles: every cell that is read or stored has a value, and it is the newest.

use super::at;
use super::tiled::extent_text;
use crate::cover::Defined;
use crate::error::Error;
use crate::mlir;
use crate::stencil::{Argument, Program};
use crate::tiled::{self, Halo, Kernel, TileOp};
use std::collections::{BTreeMap, BTreeSet};

/// Checks that tiles which go on beyond the grid have one grid to repeat. An apply that computes
/// the tile alone needs no cells there.
pub(super) fn wraps<'c>(program: &Program<'c>, kernel: &Kernel<'c>) -> Result<(), Error> {
    if !kernel.applies().any(tiled::Apply::reaches_beyond) || !tiled::wraps(program, kernel)? {
        return Ok(());
    }
    let mut first = None;
    for op in &kernel.body {
        let (TileOp::Load { op, field, .. } | TileOp::Store { op, field, .. }) = op else {
            continue;
        };
        let grid = program.grid_of(field)?;
        if *first.get_or_insert((grid.lower, grid.upper)) != (grid.lower, grid.upper) {
            return Err(at(
                *op,
                format!(
                    "@{field} lies on other points than the first field, and @{} reads a periodic \
                     field and computes more than the tile",
                    kernel.name
                ),
            ));
        }
    }
    Ok(())
}

/// Checks that absolute reads see fields as they were before the launch: no apply before has
/// updated them.
pub(super) fn gathered<'c>(program: &Program<'c>, kernel: &Kernel<'c>) -> Result<(), Error> {
    let partial: BTreeSet<usize> =
        kernel.applies().filter_map(|apply| apply.partial.map(mlir::key)).collect();
    let mut updated = BTreeSet::new();
    for apply in kernel.applies() {
        let gathered = program.gathered_by(&apply.pieces)?;
        if let Some(field) = gathered.intersection(&updated).next() {
            return Err(at(
                apply.op,
                format!(
                    "@{field} is read at computed places, and an apply before it in @{} updates \
                     it; the reads need the whole field, so put the apply into a kernel of its own",
                    kernel.name
                ),
            ));
        }
        // A part of a value is not the new one yet.
        let whole = apply.outputs.iter().filter(|(_, tile)| !partial.contains(&mlir::key(*tile)));
        updated.extend(whole.map(|(field, _)| *field));
    }
    Ok(())
}

/// Checks that every cell which is read or stored has a value. A tile that is loaded has them all;
/// the result of an apply has those of its pieces, and of its operand of the same field where it
/// has one.
pub(super) fn defined<'c>(program: &Program<'c>, kernel: &Kernel<'c>) -> Result<(), Error> {
    let mut defined: BTreeMap<usize, Defined> = BTreeMap::new();
    for op in &kernel.body {
        match op {
            TileOp::Load { tile, .. } => drop(defined.insert(mlir::key(*tile), Defined::All)),
            TileOp::Apply(apply) => {
                for piece in &apply.pieces {
                    for argument in program.arguments(piece.function)? {
                        let Argument::Read { field, offset } = argument else { continue };
                        let known =
                            apply.input(field).and_then(|tile| defined.get(&mlir::key(tile)));
                        let held = known.is_none_or(|known| {
                            program
                                .field(field)
                                .is_ok_and(|field| known.holds_read(program, piece, field, offset))
                        });
                        if !held {
                            return Err(at(
                                apply.op,
                                format!(
                                    "@{} reads @{field} at {offset:?} where it may have no value: \
                                     the apply that makes the tile has no \
                                     operand of @{field} for the cells that its pieces leave out",
                                    piece.function
                                ),
                            ));
                        }
                    }
                }
                for (field, tile) in &apply.outputs {
                    let before =
                        apply.kept(field).and_then(|tile| defined.get(&mlir::key(tile)).cloned());
                    let after = before.unwrap_or_else(|| Defined::Pieces(Vec::new()));
                    let after = after.and(program, program.grid_of(field)?, &apply.pieces);
                    defined.insert(mlir::key(*tile), after);
                }
            }
            TileOp::Store { op, field, tile } => {
                if defined.get(&mlir::key(*tile)).is_some_and(|known| !known.is_whole()) {
                    return Err(at(
                        *op,
                        format!(
                            "tiled.store of @{field} needs a value in every cell, and the pieces \
                             of its apply may leave some out; \
                             give the apply an operand of @{field}"
                        ),
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Checks that stored cells come from cells that the tiles hold. All cells of a load are valid. A
/// cell of an apply is valid if it reads valid cells only, and keeps a valid cell if it keeps one.
pub(super) fn valid<'c>(program: &Program<'c>, kernel: &Kernel<'c>) -> Result<(), Error> {
    let mut valid: BTreeMap<usize, Halo> = BTreeMap::new();
    for op in &kernel.body {
        match op {
            TileOp::Load { tile, .. } => {
                drop(valid.insert(mlir::key(*tile), kernel.tile(*tile)?.halo.clone()))
            }
            TileOp::Apply(apply) => {
                let rank = apply.halo.lower.len();
                let mut reads: Vec<_> =
                    apply.outputs.iter().map(|(field, _)| (*field, Halo::none(rank))).collect();
                for piece in &apply.pieces {
                    for argument in program.arguments(piece.function)? {
                        if let Argument::Read { field, offset } = argument {
                            reads.push((field, Halo::of_read(program.field(field)?, offset)));
                        }
                    }
                }
                let mut cells = apply.halo.clone();
                for (field, reach) in reads {
                    if let Some(held) =
                        apply.input(field).and_then(|tile| valid.get(&mlir::key(tile)))
                    {
                        cells = cells.whose_reach_is_in(&reach, held);
                    }
                }
                valid.extend(
                    apply.outputs.iter().map(|(_, tile)| (mlir::key(*tile), cells.clone())),
                );
            }
            TileOp::Store { op, field, tile } => {
                let Some(cells) = valid.get(&mlir::key(*tile)) else { continue };
                if !cells.contains(&Halo::none(cells.lower.len())) {
                    return Err(at(
                        *op,
                        format!(
                            "tiled.store of @{field} needs the whole tile, and what comes from \
                             cells that tiles hold {}",
                            extent_text(cells)
                        ),
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Checks that an apply reads, and a store writes, the newest tile of each field: an update that
/// nothing goes on with is lost. The tile of a partial result is none of its field until another
/// apply has completed it.
pub(super) fn newest(kernel: &Kernel) -> Result<(), Error> {
    let partial: BTreeSet<_> =
        kernel.applies().filter_map(|apply| apply.partial.map(mlir::key)).collect();
    let mut updated: BTreeMap<&str, usize> = BTreeMap::new();
    for op in &kernel.body {
        let (op, uses, made) = match op {
            TileOp::Load { .. } => continue,
            TileOp::Apply(apply) => (apply.op, apply.inputs.clone(), apply.outputs.clone()),
            TileOp::Store { op, field, tile } => (*op, vec![(*field, *tile)], Vec::new()),
        };
        for (field, tile) in uses {
            if updated.get(field).is_some_and(|newest| *newest != mlir::key(tile)) {
                return Err(at(
                    op,
                    format!(
                        "an old tile of @{field} is used here, and an earlier tiled.apply has \
                         updated the field; use its result"
                    ),
                ));
            }
        }
        let made = made.into_iter().map(|(field, tile)| (field, mlir::key(tile)));
        updated.extend(made.filter(|(_, tile)| !partial.contains(tile)));
    }
    Ok(())
}
