//! When a tile needs no checks: loaded cells lie in the grid, computed cells in the main piece.
//! Then no read leaves the grid either: all cells that it may take are loaded or computed.

use super::frame::Frame;
use melior::ir::AffineMap;
use stencil_dialects::affine::Linear;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::tiled::{Halo, Kernel, TileOp};

/// The boxes that a kernel's cells must lie in, each with the cells that reach farthest: one end a
/// dimension, in terms of [`Halo`].
pub struct Limits<'c> {
    lowers: Vec<(AffineMap<'c>, Vec<i64>)>,
    uppers: Vec<(AffineMap<'c>, Vec<i64>)>,
}

impl<'c> Limits<'c> {
    /// The limits; none where nothing is to go without checks.
    /// `touched` gives the cells that an operation touches, from those that the tile kernel needs
    /// of it.
    pub fn of(
        frame: &Frame<'c, '_>,
        kernel: &Kernel<'c>,
        touched: impl Fn(&TileOp<'c>, &Halo) -> Result<Halo, Error>,
    ) -> Result<Option<Self>, Error> {
        if !kernel.split {
            return Ok(None);
        }
        let mut limits = Self { lowers: Vec::new(), uppers: Vec::new() };
        let mut within = |lower: AffineMap<'c>, upper: AffineMap<'c>, halo: Halo| {
            tighten(&mut limits.lowers, lower, halo.lower, i64::min);
            tighten(&mut limits.uppers, upper, halo.upper, i64::max);
        };
        for op in &kernel.body {
            match op {
                TileOp::Load { field, tile, .. } => {
                    let grid = frame.scope.program.grid_of(field)?;
                    within(grid.lower, grid.upper, touched(op, &kernel.tile(*tile)?.halo)?);
                }
                TileOp::Apply(apply) => {
                    let piece =
                        apply.main.ok_or_else(|| Error::internal("an apply of no main piece"))?;
                    within(piece.lower, piece.upper, touched(op, &apply.halo)?);
                }
                TileOp::Store { .. } => {}
            }
        }
        Ok(Some(limits))
    }

    /// Whether the tile keeps to the limits in the dimensions from `first` on.
    pub fn condition(
        &self,
        frame: &Frame<'c, '_>,
        builder: &Builder<'c>,
        kernel: &Kernel<'c>,
        first: usize,
    ) -> Result<Option<Val<'c>>, Error> {
        let mut conditions = Vec::new();
        let ends = [(&self.lowers, Compare::Ge), (&self.uppers, Compare::Le)];
        for (map, halo, compare) in ends
            .into_iter()
            .flat_map(|(all, compare)| all.iter().map(move |(map, halo)| (map, halo, compare)))
        {
            let bounds = frame.scope.bounds(builder, *map)?;
            for (dimension, ((origin, cells), bound)) in
                frame.origin.iter().zip(halo).zip(bounds).enumerate().skip(first)
            {
                let tile = kernel.schedule.tile.get(dimension).copied().unwrap_or(1);
                let last = if compare == Compare::Le { tile - 1 } else { 0 };
                conditions.push(builder.compare(
                    compare,
                    builder.add_constant(*origin, cells + last)?,
                    bound,
                )?);
            }
        }
        builder.all(&conditions)
    }

    /// The first and the last coordinate along the slowest dimension from which on the cells keep
    /// to the limits; the last is below the first where there is none.
    pub fn range(
        &self,
        frame: &Frame<'c, '_>,
        builder: &Builder<'c>,
    ) -> Result<[Val<'c>; 2], Error> {
        let end = |all: &[(AffineMap<'c>, Vec<i64>)], pick| {
            let mut end: Option<Val<'c>> = None;
            for (map, cells) in all {
                let bounds = frame.scope.bounds(builder, *map)?;
                let (Some(bound), Some(cells)) = (bounds.first(), cells.first()) else { continue };
                let bound = builder.add_constant(*bound, -cells)?;
                end = Some(end.map_or(Ok(bound), |end| builder.binary(pick, end, bound))?);
            }
            end.ok_or_else(|| Error::internal("a kernel without limits"))
        };
        Ok([end(&self.lowers, "arith.maxsi")?, end(&self.uppers, "arith.minsi")?])
    }
}

/// Keeps one bound for maps that differ by a constant, the tightest.
fn tighten<'c>(
    bounds: &mut Vec<(AffineMap<'c>, Vec<i64>)>,
    map: AffineMap<'c>,
    cells: Vec<i64>,
    pick: fn(i64, i64) -> i64,
) {
    for (known, farthest) in bounds.iter_mut() {
        // Distances that leave 64 bits keep their own bound.
        let moved = difference(map, *known).and_then(|gap| {
            cells
                .iter()
                .zip(gap)
                .map(|(cells, gap)| cells.checked_sub(gap))
                .collect::<Option<Vec<_>>>()
        });
        if let Some(moved) = moved {
            for (farthest, moved) in farthest.iter_mut().zip(moved) {
                *farthest = pick(*farthest, moved);
            }
            return;
        }
    }
    bounds.push((map, cells));
}

/// `map - other` per dimension, where it is a constant in all of them.
pub fn difference(map: AffineMap, other: AffineMap) -> Option<Vec<i64>> {
    let (map, other) = (Linear::of_map(map)?, Linear::of_map(other)?);
    map.iter()
        .zip(&other)
        .map(|(map, other)| map.minus(other).filter(Linear::is_constant).map(|gap| gap.constant))
        .collect()
}
