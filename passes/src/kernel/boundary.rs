//! Boundary rules: the coordinate inside the grid that one outside stands for.

use super::scope::Scope;
use crate::analysis::crossed::Crossed;
use melior::ir::{AffineMap, ValueLike};
use stencil_dialects::affine::Linear;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::{Field, Grid, Piece};

/// The grid's first and last coordinate along a dimension, and which of them reads may cross.
pub struct Edges<'c> {
    first: Val<'c>,
    last: Val<'c>,
    crossed: Crossed,
    /// Cells between first and last, where they are known.
    length: Option<i64>,
}

impl<'c> Edges<'c> {
    /// For reads of a field at an offset from the points of a piece.
    pub fn new(
        scope: &Scope<'c, '_>,
        builder: &Builder<'c>,
        piece: &Piece<'c>,
        field: &Field<'c>,
        dimension: usize,
        offset: i64,
    ) -> Result<Self, Error> {
        let grid = scope.program.grid_of(field.name)?;
        let edge = |map: AffineMap<'c>| {
            let bound = scope.bounds(builder, map)?.get(dimension).copied();
            bound.ok_or_else(|| Error::internal("a bound beyond the rank"))
        };
        Ok(Self {
            first: edge(grid.lower)?,
            last: edge(grid.upper)?,
            crossed: Crossed::of(piece, grid, dimension, offset),
            length: length(grid, dimension),
        })
    }

    /// For any coordinate along a dimension of a grid.
    pub fn of_grid(
        scope: &Scope<'c, '_>,
        builder: &Builder<'c>,
        grid: &Grid<'c>,
        dimension: usize,
    ) -> Result<Self, Error> {
        let edge = |map: AffineMap<'c>| {
            let bound = scope.bounds(builder, map)?.get(dimension).copied();
            bound.ok_or_else(|| Error::internal("a bound beyond the rank"))
        };
        let (first, last) = (edge(grid.lower)?, edge(grid.upper)?);
        let crossed = Crossed { below: true, above: true };
        Ok(Self { first, last, crossed, length: length(grid, dimension) })
    }

    /// The grid's first coordinate.
    pub fn first(&self) -> Val<'c> {
        self.first
    }

    /// The grid's last coordinate.
    pub fn last(&self) -> Val<'c> {
        self.last
    }

    /// Whether reads may leave the grid.
    pub fn crossed(&self) -> bool {
        self.crossed.any()
    }

    /// Conditions of which one holds where a coordinate lies outside.
    pub fn outside(&self, builder: &Builder<'c>, at: Val<'c>) -> Result<Vec<Val<'c>>, Error> {
        let mut conditions = Vec::new();
        if self.crossed.below {
            conditions.push(builder.compare(Compare::Lt, at, self.first)?);
        }
        if self.crossed.above {
            conditions.push(builder.compare(Compare::Gt, at, self.last)?);
        }
        Ok(conditions)
    }

    /// The nearest coordinate inside.
    pub fn nearest(&self, builder: &Builder<'c>, mut at: Val<'c>) -> Result<Val<'c>, Error> {
        if self.crossed.above {
            at = builder.binary("arith.minsi", at, self.last)?;
        }
        if self.crossed.below {
            at = builder.binary("arith.maxsi", at, self.first)?;
        }
        Ok(at)
    }

    /// The nearest coordinate from which `length` coordinates lie inside.
    pub fn nearest_of(
        &self,
        builder: &Builder<'c>,
        at: Val<'c>,
        length: i64,
    ) -> Result<Val<'c>, Error> {
        let last = builder.add_constant(self.last, 1 - length)?;
        builder.binary("arith.maxsi", builder.binary("arith.minsi", at, last)?, self.first)
    }

    /// The coordinate inside of a grid that repeats. Divisions take long: they stand in a branch.
    pub fn repeated(&self, builder: &Builder<'c>, at: Val<'c>) -> Result<Val<'c>, Error> {
        self.where_outside(builder, at, |builder| repeated(builder, at, self.first, self.last))
    }

    /// The coordinate inside of a grid that is mirrored at its edges.
    pub fn mirrored(
        &self,
        builder: &Builder<'c>,
        at: Val<'c>,
        offset: i64,
    ) -> Result<Val<'c>, Error> {
        let minus = |builder: &Builder<'c>, a, b| builder.binary("arith.subi", a, b);
        let zero = builder.index(0)?;
        let magnitude = |builder: &Builder<'c>, value| {
            builder.binary("arith.maxsi", value, minus(builder, zero, value)?)
        };
        if self.length.is_some_and(|length| offset.saturating_abs() <= length) {
            // One bounce is enough.
            let mut at = at;
            if self.crossed.below {
                at = builder
                    .add(self.first, magnitude(builder, minus(builder, at, self.first)?)?)?;
            }
            if self.crossed.above {
                at =
                    minus(builder, self.last, magnitude(builder, minus(builder, self.last, at)?)?)?;
            }
            return Ok(at);
        }
        self.where_outside(builder, at, |builder| {
            // Counted from the first cell, both sides are alike; every stretch from edge to edge,
            // of an odd number, runs backwards. A single cell has stretches of no length.
            let from_first = magnitude(builder, minus(builder, at, self.first)?)?;
            let length = minus(builder, self.last, self.first)?;
            let divisor = builder.binary("arith.maxsi", length, builder.index(1)?)?;
            let stretch = builder.binary("arith.divui", from_first, divisor)?;
            let within =
                minus(builder, from_first, builder.binary("arith.muli", stretch, divisor)?)?;
            let odd = builder.binary("arith.andi", stretch, builder.index(1)?)?;
            let odd = builder.compare(Compare::Ne, odd, zero)?;
            builder.add(self.first, builder.select(odd, minus(builder, length, within)?, within)?)
        })
    }

    fn where_outside(
        &self,
        builder: &Builder<'c>,
        at: Val<'c>,
        mapped: impl FnOnce(&Builder<'c>) -> Result<Val<'c>, Error>,
    ) -> Result<Val<'c>, Error> {
        let Some(outside) = any(builder, &self.outside(builder, at)?)? else { return Ok(at) };
        let values = builder.choose(
            outside,
            &[at.r#type()],
            |builder| Ok(vec![mapped(builder)?]),
            |_| Ok(vec![at]),
        )?;
        values.first().copied().ok_or_else(|| Error::internal("scf.if without a result"))
    }
}

/// Cells between the first and the last of a grid along a dimension, where they are known.
fn length(grid: &Grid, dimension: usize) -> Option<i64> {
    let linear = |map| Linear::of_map(map)?.get(dimension).cloned();
    let length = linear(grid.upper)?.minus(&linear(grid.lower)?)?;
    length.is_constant().then_some(length.constant)
}

/// The coordinate from `first` to `last` that a coordinate stands for where the grid repeats.
pub fn repeated<'c>(
    builder: &Builder<'c>,
    at: Val<'c>,
    first: Val<'c>,
    last: Val<'c>,
) -> Result<Val<'c>, Error> {
    // A grid without points has no cells to repeat; nobody reads what is found there.
    let extent = builder.add_constant(builder.binary("arith.subi", last, first)?, 1)?;
    let extent = builder.binary("arith.maxsi", extent, builder.index(1)?)?;
    let from_first = builder.binary("arith.subi", at, first)?;
    let rest = builder.binary("arith.remsi", from_first, extent)?;
    let negative = builder.compare(Compare::Lt, rest, builder.index(0)?)?;
    let rest = builder.select(negative, builder.add(rest, extent)?, rest)?;
    builder.add(first, rest)
}

/// Whether one of some conditions holds; none for no conditions.
pub fn any<'c>(builder: &Builder<'c>, conditions: &[Val<'c>]) -> Result<Option<Val<'c>>, Error> {
    let Some((first, rest)) = conditions.split_first() else { return Ok(None) };
    rest.iter()
        .try_fold(*first, |any, condition| builder.binary("arith.ori", any, *condition))
        .map(Some)
}
