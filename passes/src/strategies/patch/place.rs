//! A lane in its tile: the coordinates of its cells, and which of them the tile stores.

use super::layout::Layout;
use crate::kernel::frame::Frame;
use crate::kernel::lane_cells::Beyond;
use crate::kernel::tile_ends::Ends;
use melior::ir::AffineMap;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::Grid;
use stencil_dialects::tiled::{Halo, Kernel};

/// Coordinates of rows and columns.
#[derive(Clone)]
pub struct Cells<'c> {
    /// Rows of a lane.
    pub rows: Vec<Val<'c>>,
    /// Columns of a lane.
    pub columns: Vec<Val<'c>>,
}

/// For each row and each column of a lane whether it lies in a box.
pub struct Inside<'c> {
    /// Rows.
    pub rows: Vec<Val<'c>>,
    /// Columns.
    pub columns: Vec<Val<'c>>,
}

/// First and last coordinate of a box per dimension: rows, columns.
pub type Bounds<'c> = [[Val<'c>; 2]; 2];

/// The bounds of a box.
pub fn bounds<'c>(
    frame: &Frame<'c, '_>,
    builder: &Builder<'c>,
    (lower, upper): (AffineMap<'c>, AffineMap<'c>),
) -> Result<Bounds<'c>, Error> {
    let (lower, upper) = (frame.scope.bounds(builder, lower)?, frame.scope.bounds(builder, upper)?);
    match (lower.as_slice(), upper.as_slice()) {
        (&[first_row, first_column], &[last_row, last_column]) => {
            Ok([[first_row, last_row], [first_column, last_column]])
        }
        _ => Err(Error::internal("a box of other than two dimensions")),
    }
}

impl<'c> Cells<'c> {
    /// The cells that lie in a box.
    pub fn inside(
        &self,
        builder: &Builder<'c>,
        [rows, columns]: Bounds<'c>,
    ) -> Result<Inside<'c>, Error> {
        let each = |cells: &[Val<'c>], [first, last]: [Val<'c>; 2]| {
            let inside = |cell: &Val<'c>| {
                let after = builder.compare(Compare::Ge, *cell, first)?;
                builder.both(after, builder.compare(Compare::Le, *cell, last)?)
            };
            cells.iter().map(inside).collect::<Result<Vec<_>, Error>>()
        };
        Ok(Inside { rows: each(&self.rows, rows)?, columns: each(&self.columns, columns)? })
    }

    /// The same cells, with each cell outside of a grid replaced by the one inside that stands for
    /// it. Columns come in groups of `group`, each all inside or all outside.
    pub fn kept_in(
        &self,
        frame: &Frame<'c, '_>,
        builder: &Builder<'c>,
        grid: &Grid<'c>,
        (beyond, group): (Beyond, i64),
    ) -> Result<Self, Error> {
        let [rows, columns] = bounds(frame, builder, (grid.lower, grid.upper))?;
        let row = |row: &Val<'c>| beyond.inside(builder, *row, rows, 1);
        let column = |(number, column): (i64, &Val<'c>)| {
            let start = builder.add_constant(*column, -(number % group))?;
            builder.add_constant(beyond.inside(builder, start, columns, group)?, number % group)
        };
        Ok(Self {
            rows: self.rows.iter().map(row).collect::<Result<_, _>>()?,
            columns: (0..).zip(&self.columns).map(column).collect::<Result<_, _>>()?,
        })
    }

    /// The coordinates of a cell.
    pub fn point(&self, (row, column): (i64, i64)) -> Result<[Val<'c>; 2], Error> {
        let of = |cells: &[Val<'c>], place: i64| {
            let cell = usize::try_from(place).ok().and_then(|place| cells.get(place)).copied();
            cell.ok_or_else(|| Error::internal("a cell that no lane holds"))
        };
        Ok([of(&self.rows, row)?, of(&self.columns, column)?])
    }
}

/// A lane's cells in its tile.
pub struct Place<'c> {
    /// Its cells.
    pub cells: Cells<'c>,
    /// For each row of the lane whether its cells belong to the tile.
    pub in_tile: Vec<Val<'c>>,
    /// The ends of the tile.
    pub ends: Vec<Ends<'c>>,
}

impl<'c> Place<'c> {
    /// Finds the lane's cells.
    pub fn new(
        frame: &Frame<'c, '_>,
        kernel: &Kernel<'c>,
        layout: &Layout<'c>,
    ) -> Result<Self, Error> {
        let builder = &frame.builder;
        let ([first_row, first_column], [part, lane], &[tile_rows, tile_columns]) =
            (frame.origin.as_slice(), frame.thread.as_slice(), kernel.schedule.tile.as_slice())
        else {
            return Err(Error::internal("a tile of other than two dimensions"));
        };
        let first = |origin: Val<'c>, thread: Val<'c>, each: i64, before: i64| {
            let beyond = builder.multiply_constant(thread, each)?;
            builder.add_constant(builder.add(origin, beyond)?, -before)
        };
        let row = first(*first_row, *part, layout.rows, layout.top)?;
        let column = first(*first_column, *lane, layout.width, layout.left)?;
        let each = |first: Val<'c>, count: i64| {
            (0..count).map(|cell| builder.add_constant(first, cell)).collect::<Result<Vec<_>, _>>()
        };
        let cells = Cells { rows: each(row, layout.rows)?, columns: each(column, layout.width)? };
        let ends = Ends::all(frame, kernel)?;
        let [of_rows, of_columns] = ends.as_slice() else {
            return Err(Error::internal("a tile of other than two dimensions"));
        };
        let lane_in_tile = of_columns.holds(builder, column, *first_column, tile_columns)?;
        let mut in_tile = Vec::new();
        for row in &cells.rows {
            let row_in_tile = of_rows.holds(builder, *row, *first_row, tile_rows)?;
            in_tile.push(builder.both(row_in_tile, lane_in_tile)?);
        }
        Ok(Self { cells, in_tile, ends })
    }

    /// The cells of the box around the tile that an apply computes.
    pub fn computed(
        &self,
        frame: &Frame<'c, '_>,
        builder: &Builder<'c>,
        (halo, tile): (&Halo, &[i64]),
    ) -> Result<Inside<'c>, Error> {
        let mut ends = Vec::new();
        for (dimension, origin) in frame.origin.iter().enumerate() {
            let of = |cells: &[i64]| cells.get(dimension).copied().unwrap_or(0);
            let first = builder.add_constant(*origin, of(&halo.lower))?;
            let last = builder.add_constant(*origin, of(tile) - 1 + of(&halo.upper))?;
            ends.push([first, last]);
        }
        let bounds = ends.try_into().map_err(|_| Error::internal("a box of other dimensions"))?;
        self.cells.inside(builder, bounds)
    }
}
