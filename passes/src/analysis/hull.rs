//! The hull of several grids: a box that holds them all, for any sizes.
//!
//! Sizes are at least 0, so a bound with smaller constant and coefficients is never larger. The
//! hull takes the smallest and the largest of them one by one. Where the grids' bounds differ by
//! constants it is the smallest box; else it may be larger.

use melior::Context;
use melior::ir::AffineMap;
use stencil_dialects::affine::Linear;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::{Grid, Program};

/// Grids that differ by at most so many cells on each side are tiled together: those of staggered
/// fields differ by one or two.
const NEAR: i64 = 64;

/// A box that holds the grids of some fields, both ends inclusive.
#[derive(Clone, Copy, Debug)]
pub struct Hull<'c> {
    /// First point; one result a dimension, one symbol a run-time size.
    pub lower: AffineMap<'c>,
    /// Last point.
    pub upper: AffineMap<'c>,
    /// Whether all fields lie on the same points.
    pub alike: bool,
    /// Whether tiles over it waste no more than the rims by which the grids differ.
    pub tight: bool,
}

impl Hull<'_> {
    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.lower.result_count()
    }

    /// Whether it is a grid, whose points are then there for every tile.
    pub fn has_points_of(&self, grid: &Grid) -> bool {
        (self.lower, self.upper) == (grid.lower, grid.upper)
    }

    /// Whether a grid is known to have no point beside it.
    pub fn holds(&self, grid: &Grid) -> bool {
        let below = |first: AffineMap, second: AffineMap| {
            let (Some(first), Some(second)) = (Linear::of_map(first), Linear::of_map(second))
            else {
                return false;
            };
            let mut pairs = first.iter().zip(&second);
            first.len() == second.len()
                && pairs.all(|(first, second)| {
                    second.minus(first).is_some_and(|gap| gap.is_never_negative())
                })
        };
        below(self.lower, grid.lower) && below(grid.upper, self.upper)
    }
}

/// The hull of the fields' grids; none where they have different ranks.
///
/// # Errors
/// A field that is not declared, no fields at all, or bounds that are not linear.
pub fn of<'c>(
    context: &'c Context,
    program: &Program<'c>,
    fields: &[&str],
) -> Result<Option<Hull<'c>>, Error> {
    let grids = fields.iter().map(|field| program.grid_of(field)).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = grids.first() else { return Err(Error::internal("the hull of no grids")) };
    if grids.iter().any(|grid| grid.rank() != first.rank()) {
        return Ok(None);
    }
    let linear = |map| {
        Linear::of_map(map).ok_or_else(|| Error::internal("a grid whose bounds are not linear"))
    };
    let (mut lower, mut upper) = (linear(first.lower)?, linear(first.upper)?);
    let (mut alike, mut tight) = (true, true);
    for grid in &grids {
        let bounds = (linear(grid.lower)?, linear(grid.upper)?);
        let same = (&lower, &upper) == (&bounds.0, &bounds.1);
        alike &= same;
        if !same {
            for (all, own, pick) in [
                (&mut lower, bounds.0, i64::min as fn(i64, i64) -> i64),
                (&mut upper, bounds.1, i64::max),
            ] {
                for (all, own) in all.iter_mut().zip(own) {
                    let gap = all.minus(&own).filter(Linear::is_constant);
                    tight &=
                        gap.is_some_and(|gap| gap.constant.unsigned_abs() <= NEAR.unsigned_abs());
                    *all = all.each(&own, pick);
                }
            }
        }
    }
    if alike {
        return Ok(Some(Hull { lower: first.lower, upper: first.upper, alike, tight }));
    }
    let map = |bounds: &[Linear]| Linear::map(context, program.params.len(), bounds);
    Ok(Some(Hull { lower: map(&lower), upper: map(&upper), alike, tight }))
}
