//! Checks of tiles at a rim. What is the same for all rows is computed before the loop: which of a
//! lane's columns lie in a box becomes a first column and a count, so that a check in the loop is
//! one comparison of small integers.

use super::super::emit::Frame;
use melior::ir::AffineMap;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

/// A box of cells, cut to what a lane holds of it.
pub struct Cut<'c> {
    /// The box's first row.
    first_row: Val<'c>,
    /// Its rows.
    rows: Val<'c>,
    /// For each cell of the lane its number among those in the box, as an unsigned `i32`.
    numbers: Vec<Val<'c>>,
    /// Cells of the lane in the box, `i32`.
    count: Val<'c>,
}

impl<'c> Cut<'c> {
    /// Cuts the box between two maps, both ends inclusive, to a lane of `width` cells from `column`.
    pub fn new(
        frame: &Frame<'c, '_>,
        builder: &Builder<'c>,
        (lower, upper): (AffineMap<'c>, AffineMap<'c>),
        column: Val<'c>,
        width: i64,
    ) -> Result<Self, Error> {
        let corners = [frame.bounds(builder, lower)?, frame.bounds(builder, upper)?];
        let [[first_row, first], [last_row, last]] = [corner(&corners[0])?, corner(&corners[1])?];
        let (none, all) = (builder.index(0)?, builder.index(width)?);
        let clamp = |value: Val<'c>| builder.binary("arith.minsi", builder.binary("arith.maxsi", value, none)?, all);
        let first = clamp(builder.binary("arith.subi", first, column)?)?;
        let end = clamp(builder.add_constant(builder.binary("arith.subi", last, column)?, 1)?)?;
        let count = builder.binary("arith.maxsi", builder.binary("arith.subi", end, first)?, none)?;
        let rows = builder.add_constant(builder.binary("arith.subi", last_row, first_row)?, 1)?;
        let word = builder.integer_type(32);
        let first = builder.value("arith.index_cast", &[first], word, &[])?;
        let number = |cell| builder.binary("arith.subi", builder.constant(word, cell)?, first);
        Ok(Self {
            first_row,
            rows: builder.binary("arith.maxsi", rows, none)?,
            numbers: (0..width).map(number).collect::<Result<_, _>>()?,
            count: builder.value("arith.index_cast", &[count], word, &[])?,
        })
    }

    /// For each cell of the lane whether it lies in the box in the given row, and `further` holds.
    pub fn row(&self, builder: &Builder<'c>, row: Val<'c>, further: Option<Val<'c>>) -> Result<Vec<Val<'c>>, Error> {
        let mut within = builder.compare(Compare::Below, builder.binary("arith.subi", row, self.first_row)?, self.rows)?;
        if let Some(further) = further {
            within = builder.binary("arith.andi", within, further)?;
        }
        let count = builder.select(within, self.count, builder.constant(builder.integer_type(32), 0)?)?;
        self.numbers.iter().map(|number| builder.compare(Compare::Below, *number, count)).collect()
    }
}

/// Rows and columns of a grid, to replace those outside by the nearest inside.
pub struct Clamp<'c> {
    first_row: Val<'c>,
    last_row: Val<'c>,
    /// The lane's columns, each the nearest inside.
    pub columns: Vec<Val<'c>>,
}

impl<'c> Clamp<'c> {
    /// For a grid between two maps, and a lane's columns.
    pub fn new(
        frame: &Frame<'c, '_>,
        builder: &Builder<'c>,
        (lower, upper): (AffineMap<'c>, AffineMap<'c>),
        columns: &[Val<'c>],
    ) -> Result<Self, Error> {
        let corners = [frame.bounds(builder, lower)?, frame.bounds(builder, upper)?];
        let [[first_row, first], [last_row, last]] = [corner(&corners[0])?, corner(&corners[1])?];
        let columns = columns.iter().map(|column| nearest(builder, *column, first, last)).collect::<Result<_, _>>()?;
        Ok(Self { first_row, last_row, columns })
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
