//! The condition that a tile needs no checks: the cells that it loads lie in the grid, and those
//! that it computes in the one piece of their apply.

use super::emit::Frame;
use melior::ir::AffineMap;
use stencil_dialects::affine::Linear;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::tiled::{Halo, Kernel, TileOp};

/// The condition; none where an apply has several pieces, and so no tile goes without checks.
/// `reach` says which cells an operation touches, given those that the tile kernel wants of it.
pub fn condition<'c>(
    frame: &Frame<'c, '_>,
    builder: &Builder<'c>,
    kernel: &Kernel<'c>,
    reach: impl Fn(&TileOp<'c>, &Halo) -> Halo,
) -> Result<Option<Val<'c>>, Error> {
    let mut lowers: Vec<(AffineMap<'c>, Vec<i64>)> = Vec::new();
    let mut uppers: Vec<(AffineMap<'c>, Vec<i64>)> = Vec::new();
    let mut within = |lower: AffineMap<'c>, upper: AffineMap<'c>, halo: Halo| {
        tighten(&mut lowers, lower, halo.lower, i64::min);
        tighten(&mut uppers, upper, halo.upper, i64::max);
    };
    for op in &kernel.body {
        match op {
            TileOp::Load { field, tile, .. } => {
                let grid = frame.program.grid_of(field)?;
                within(grid.lower, grid.upper, reach(op, &kernel.tile(*tile)?.halo));
            }
            TileOp::Apply(apply) => {
                let [piece] = apply.pieces.as_slice() else { return Ok(None) };
                within(piece.lower, piece.upper, reach(op, &apply.halo));
            }
            TileOp::Store { .. } => {}
        }
    }
    let mut conditions = Vec::new();
    for (map, halo) in lowers {
        for ((origin, reach), bound) in frame.origin.iter().zip(halo).zip(frame.bounds(builder, map)?) {
            conditions.push(builder.compare(Compare::Ge, builder.add_constant(*origin, reach)?, bound)?);
        }
    }
    for (map, halo) in uppers {
        let last = kernel.schedule.tile.iter().zip(halo).map(|(tile, reach)| tile - 1 + reach);
        for ((origin, reach), bound) in frame.origin.iter().zip(last).zip(frame.bounds(builder, map)?) {
            conditions.push(builder.compare(Compare::Le, builder.add_constant(*origin, reach)?, bound)?);
        }
    }
    builder.all(&conditions)
}

/// Keeps one bound for maps that differ by a constant, the tightest.
fn tighten<'c>(
    bounds: &mut Vec<(AffineMap<'c>, Vec<i64>)>,
    map: AffineMap<'c>,
    reach: Vec<i64>,
    pick: fn(i64, i64) -> i64,
) {
    for (known, farthest) in bounds.iter_mut() {
        // Reaches that leave 64 bits keep their own bound.
        let moved = difference(map, *known).and_then(|gap| {
            reach.iter().zip(gap).map(|(reach, gap)| reach.checked_sub(gap)).collect::<Option<Vec<_>>>()
        });
        if let Some(moved) = moved {
            for (farthest, moved) in farthest.iter_mut().zip(moved) {
                *farthest = pick(*farthest, moved);
            }
            return;
        }
    }
    bounds.push((map, reach));
}

/// `map - other` per dimension, where it is a constant in all of them.
pub fn difference(map: AffineMap, other: AffineMap) -> Option<Vec<i64>> {
    let (map, other) = (Linear::of_map(map)?, Linear::of_map(other)?);
    map.iter()
        .zip(&other)
        .map(|(map, other)| map.minus(other).filter(Linear::is_constant).map(|gap| gap.constant))
        .collect()
}
