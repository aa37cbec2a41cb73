//! A lane in its tile: the coordinates of its cells, and which of them the tile stores. At
//! the ends of the grid these are cells of the margin too, which have no tile of their own.

use super::layout::Layout;
use crate::kernel::frame::Frame;
use crate::kernel::lane_cells::LaneCells;
use crate::kernel::tile_ends::Ends;
use stencil_dialects::builder::Builder;
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
        Ends::off_margin(&self.ends, builder)
    }
}
