//! A lane in its tile: the coordinates of its cells, and which of them the tile stores. At
//! the ends of the grid these are cells of the margin too, which have no tile of their own.

use super::layout::Layout;
use crate::kernel::frame::Frame;
use crate::kernel::lane_cells::LaneCells;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::tiled::Kernel;

/// A lane's cells in its tile.
pub struct LaneTile<'c> {
    /// Its cells.
    pub cells: LaneCells<'c>,
    /// For each row of the lane whether its cells belong to the tile.
    pub in_tile: Vec<Val<'c>>,
    ends: Vec<Ends<'c>>,
}

impl<'c> LaneTile<'c> {
    /// Finds the lane's cells.
    pub fn new(
        frame: &Frame<'c, '_>,
        kernel: &Kernel<'c>,
        layout: &Layout<'c>,
    ) -> Result<Self, Error> {
        let builder = &frame.builder;
        let (width, rows_per_lane) = (layout.width, layout.rows_per_lane);
        let columns = kernel.schedule.tile.last().copied().unwrap_or(1);
        let ([.., first_column], [.., lane]) = (frame.origin.as_slice(), frame.thread.as_slice())
        else {
            return Err(Error::internal("a tile of no dimensions"));
        };
        let offset = builder.binary("arith.muli", *lane, builder.index(width)?)?;
        let column = builder.add_constant(builder.add(*first_column, offset)?, -layout.left)?;
        let ends = Ends::all(frame, kernel)?;
        let last = ends.last().ok_or_else(|| Error::internal("a tile of no dimensions"))?;
        let lane_in_tile = last.holds(builder, column, *first_column, columns)?;
        let (mut rows, mut in_tile) = (vec![None], vec![lane_in_tile]);
        if let ([_, first_row, _], [_, part, _], [_, tile_rows, _]) =
            (frame.origin.as_slice(), frame.thread.as_slice(), kernel.schedule.tile.as_slice())
        {
            (rows, in_tile) = (Vec::new(), Vec::new());
            let first = builder.binary("arith.muli", *part, builder.index(rows_per_lane)?)?;
            let first = builder.add_constant(builder.add(*first_row, first)?, -layout.top)?;
            for number in 0..rows_per_lane {
                let row = builder.add_constant(first, number)?;
                rows.push(Some(row));
                let of_rows = ends.get(1).ok_or_else(|| Error::internal("a tile without rows"))?;
                let row_in_tile = of_rows.holds(builder, row, *first_row, *tile_rows)?;
                in_tile.push(builder.binary("arith.andi", row_in_tile, lane_in_tile)?);
            }
        }
        let columns =
            (0..width).map(|cell| builder.add_constant(column, cell)).collect::<Result<_, _>>()?;
        Ok(Self { cells: LaneCells { rows, columns }, in_tile, ends })
    }

    /// Conditions under which the tile holds nothing of the margin.
    pub fn off_margin(&self, builder: &Builder<'c>) -> Result<Vec<Val<'c>>, Error> {
        let mut conditions = Vec::new();
        for end in self.ends.iter().filter_map(|ends| ends.is).flatten() {
            conditions.push(builder.compare(
                Compare::Eq,
                end,
                builder.constant(builder.integer_type(1), 0)?,
            )?);
        }
        Ok(conditions)
    }
}

/// Whether a tile is the first or the last along a dimension, and so holds cells of the margin;
/// none without one.
struct Ends<'c> {
    is: Option<[Val<'c>; 2]>,
}

impl<'c> Ends<'c> {
    fn all(frame: &Frame<'c, '_>, kernel: &Kernel<'c>) -> Result<Vec<Self>, Error> {
        let builder = &frame.builder;
        let bounds = frame
            .scope
            .bounds(builder, frame.scope.hull.lower)?
            .into_iter()
            .zip(frame.scope.bounds(builder, frame.scope.hull.upper)?);
        let places = frame.origin.iter().zip(&kernel.schedule.tile).zip(&frame.margin).zip(bounds);
        let ends = places.map(|(((origin, tile), margin), (lower, upper))| {
            let [before, after] = *margin;
            if (before, after) == (0, 0) {
                return Ok(Self { is: None });
            }
            let first =
                builder.compare(Compare::Le, *origin, builder.add_constant(lower, before)?)?;
            let last = builder.compare(
                Compare::Ge,
                builder.add_constant(*origin, tile - 1 + after)?,
                upper,
            )?;
            Ok(Self { is: Some([first, last]) })
        });
        ends.collect()
    }

    /// Whether a coordinate belongs to a tile from `origin` on, of `cells` cells and what it holds
    /// of the margin.
    fn holds(
        &self,
        builder: &Builder<'c>,
        coordinate: Val<'c>,
        origin: Val<'c>,
        cells: i64,
    ) -> Result<Val<'c>, Error> {
        let beyond = builder.binary("arith.subi", coordinate, origin)?;
        let cells = builder.index(cells)?;
        let Some([first, last]) = self.is else {
            return builder.compare(Compare::Below, beyond, cells);
        };
        let after = builder.compare(Compare::Ge, beyond, builder.index(0)?)?;
        let before = builder.compare(Compare::Lt, beyond, cells)?;
        builder.binary(
            "arith.andi",
            builder.binary("arith.ori", after, first)?,
            builder.binary("arith.ori", before, last)?,
        )
    }
}
