//! Checks of tiles at a rim. Which of a lane's columns lie in a box is the same for all rows and is
//! found before the loop; which rows do is the same for all lanes, and a branch in the loop.

use super::super::emit::Frame;
use melior::ir::AffineMap;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::Grid;

/// A box of cells, cut to what a lane holds of it.
pub struct Cut<'c> {
    /// For each cell of the lane whether its column lies in the box.
    pub columns: Vec<Val<'c>>,
    first_row: Val<'c>,
    rows: Val<'c>,
}

impl<'c> Cut<'c> {
    /// Cuts the box between two maps, both ends inclusive, to a lane's columns.
    pub fn new(
        frame: &Frame<'c, '_>,
        builder: &Builder<'c>,
        (lower, upper): (AffineMap<'c>, AffineMap<'c>),
        columns: &[Val<'c>],
    ) -> Result<Self, Error> {
        let [[first_row, first], [last_row, last]] =
            [corner(&frame.bounds(builder, lower)?)?, corner(&frame.bounds(builder, upper)?)?];
        let within = |column: &Val<'c>| {
            let after = builder.compare(Compare::Ge, *column, first)?;
            builder.binary("arith.andi", after, builder.compare(Compare::Le, *column, last)?)
        };
        let rows = builder.add_constant(builder.binary("arith.subi", last_row, first_row)?, 1)?;
        Ok(Self {
            columns: columns.iter().map(within).collect::<Result<_, _>>()?,
            first_row,
            rows: builder.binary("arith.maxsi", rows, builder.index(0)?)?,
        })
    }

    /// Whether a row lies in the box.
    pub fn row(&self, builder: &Builder<'c>, row: Val<'c>) -> Result<Val<'c>, Error> {
        builder.compare(Compare::Below, builder.binary("arith.subi", row, self.first_row)?, self.rows)
    }
}

/// Rows and columns of a grid, to replace those outside by the nearest inside.
pub struct Clamp<'c> {
    first_row: Val<'c>,
    last_row: Val<'c>,
    /// The lane's columns, each the nearest inside.
    pub columns: Vec<Val<'c>>,
    /// Whether the grid has a cell, where there may be tiles though it has none.
    pub some: Option<Val<'c>>,
}

impl<'c> Clamp<'c> {
    /// For a grid, and a lane's columns.
    pub fn new(
        frame: &Frame<'c, '_>,
        builder: &Builder<'c>,
        grid: &Grid<'c>,
        columns: &[Val<'c>],
    ) -> Result<Self, Error> {
        let [[first_row, first], [last_row, last]] =
            [corner(&frame.bounds(builder, grid.lower)?)?, corner(&frame.bounds(builder, grid.upper)?)?];
        let columns = columns.iter().map(|column| nearest(builder, *column, first, last)).collect::<Result<_, _>>()?;
        let some = if frame.hull.has_points_of(grid) {
            None
        } else {
            let rows = builder.compare(Compare::Le, first_row, last_row)?;
            Some(builder.binary("arith.andi", rows, builder.compare(Compare::Le, first, last)?)?)
        };
        Ok(Self { first_row, last_row, columns, some })
    }

    /// The nearest row inside.
    pub fn row(&self, builder: &Builder<'c>, row: Val<'c>) -> Result<Val<'c>, Error> {
        nearest(builder, row, self.first_row, self.last_row)
    }
}

fn nearest<'c>(builder: &Builder<'c>, value: Val<'c>, first: Val<'c>, last: Val<'c>) -> Result<Val<'c>, Error> {
    builder.binary("arith.maxsi", builder.binary("arith.minsi", value, last)?, first)
}

fn corner<'c>(values: &[Val<'c>]) -> Result<[Val<'c>; 2], Error> {
    <[Val<'c>; 2]>::try_from(values).map_err(|_| Error::internal("a box that has not two dimensions"))
}
