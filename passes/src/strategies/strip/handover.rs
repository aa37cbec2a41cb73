//! Rows that a block hands to the block below it, through global memory. The last lane of a block
//! puts its last rows into a ring of their own, as for a strip. Another warp stores them from there
//! at once, before the tile of columns that holds them is complete.

use super::code::{Strips, Tile};
use super::row_values::Last;
use super::transfers::load_where;
use crate::kernel::lanes::{self, WARP};
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

impl<'c> Strips<'c, '_> {
    /// The lane of a strip whose last rows are stored when they are handed to the block below; no
    /// lane's number where the strip is not the last one.
    pub fn handing_lane(&self, builder: &Builder<'c>, tile: Tile<'c>) -> Result<Val<'c>, Error> {
        let last = builder.index(self.geometry.strips - 1)?;
        let last = builder.compare(Compare::Eq, tile.strip, last)?;
        builder.select(last, builder.index(WARP - 1)?, builder.index(WARP)?)
    }

    /// Whether the last lane hands on the values of a field in a row of its own.
    pub fn hands_on(&self, field: &str, row: i64) -> bool {
        let window = self.windows.iter().find(|window| window.field == field);
        window.is_some_and(|window| row >= self.geometry.rows - window.above())
    }

    /// One thread stores what the last strip has put into its ring in a tile.
    pub fn hand_below(&self, builder: &Builder<'c>, tile: Tile<'c>) -> Result<(), Error> {
        let geometry = &self.geometry;
        let width = geometry.width;
        // The time at which the first lane below uses the first value.
        let time = builder.add_constant(tile.time, -1 - geometry.handover())?;
        let slot = self.slot(builder, time)?;
        let end = builder.add_constant(tile.row, geometry.strip())?;
        for (window, ring) in self.windows.iter().zip(&self.rings) {
            let vector = lanes::vector_length(window.element, width);
            for row in 1..=window.above() {
                let (target, handed) = self.handed_rows(window.field)?;
                let at = [builder.index(geometry.strips)?, builder.index(row - 1)?, slot];
                let values = lanes::load(builder, *ring, &at, width, vector)?;
                let place = builder.add_constant(end, -row)?;
                let first = builder.add_constant(time, geometry.column_above(row))?;
                let last = builder.add_constant(first, width - 1)?;
                let [rows, columns] = self.extents;
                let zero = builder.index(0)?;
                let there = builder.compare(Compare::Lt, place, rows)?;
                let whole = builder.both(
                    builder.compare(Compare::Ge, first, zero)?,
                    builder.compare(Compare::Lt, last, columns)?,
                )?;
                let store = |builder: &Builder<'c>, column: Val<'c>, value: Val<'c>| {
                    let above = [place, column];
                    let cell = self.handed_cell(builder, (window.field, handed), row, above)?;
                    builder.store(value, target, &cell)
                };
                let whole_tile = |builder: &Builder<'c>| -> Result<_, Error> {
                    for (cells, value) in (0..).zip(&values) {
                        store(builder, builder.add_constant(first, cells)?, *value)?;
                    }
                    Ok(Vec::new())
                };
                let at_an_end = |builder: &Builder<'c>| -> Result<_, Error> {
                    for (cells, value) in (0..).zip(&values) {
                        let column = builder.add_constant(first, cells)?;
                        let inside = builder.within(column, (zero, columns))?;
                        builder.when(inside, |builder| store(builder, column, *value))?;
                    }
                    Ok(Vec::new())
                };
                builder.when(there, |builder| {
                    builder.choose(whole, &[], whole_tile, at_an_end).map(drop)
                })?;
            }
        }
        Ok(())
    }

    /// Loads the values above a block that a tile of its first strip reads: new ones of the block
    /// above.
    pub fn load_above(&self, builder: &Builder<'c>, tile: Tile<'c>) -> Result<(), Error> {
        self.load_above_from(builder, tile, |builder, field, (row, place), there| {
            let (target, handed) = self.handed_rows(field)?;
            let cell = self.handed_cell(builder, (field, handed), row, place)?;
            load_where(builder, Some(there), target, &cell)
        })
    }

    /// The same for the first block: old values, as no function writes the rows before it. Those
    /// of a field with last rows alone are zeros.
    pub fn load_frozen(&self, builder: &Builder<'c>, tile: Tile<'c>) -> Result<(), Error> {
        self.load_above_from(builder, tile, |builder, field, (_, place), there| {
            if self.leaving.last.contains_key(field) {
                return builder.zero(self.scope.program.field(field)?.element);
            }
            let point = self.point_at(builder, place)?;
            let cell = self.scope.cell(builder, field, &point)?;
            load_where(builder, Some(there), self.source(field)?, &cell)
        })
    }

    fn load_above_from(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        load: impl Fn(&Builder<'c>, &str, (i64, [Val<'c>; 2]), Val<'c>) -> Result<Val<'c>, Error>,
    ) -> Result<(), Error> {
        let geometry = &self.geometry;
        let width = builder.index(geometry.width)?;
        let inside = builder.compare(Compare::Lt, self.lane, width)?;
        builder.when(inside, |builder| {
            let now = builder.add(tile.time, self.lane)?;
            let slot = self.slot(builder, now)?;
            for (window, ring) in self.windows.iter().zip(&self.rings) {
                for row in 1..=window.above() {
                    let column = builder.add_constant(now, geometry.column_above(row))?;
                    let there = builder.within(column, (builder.index(0)?, self.extents[1]))?;
                    let place = [builder.add_constant(tile.row, -row)?, column];
                    let value = load(builder, window.field, (row, place), there)?;
                    builder.store(value, *ring, &[tile.strip, builder.index(row - 1)?, slot])?;
                }
            }
            Ok(())
        })
    }

    /// The buffer in which a block finds the rows above, and the field that it belongs to where
    /// the sweep leaves rows alone.
    fn handed_rows(&self, field: &str) -> Result<(Val<'c>, Option<&Last<'c>>), Error> {
        match self.leaving.last.get(field) {
            Some(last) => Ok((last.buffer, Some(last))),
            None => Ok((self.target(field)?, None)),
        }
    }

    /// The cell of a row above a block, counted from the last as 1, at some place. All tile rows of
    /// a sweep hand on the same rows: a block has loaded a column's values long before it hands on
    /// its own, and the block below it waits for these.
    fn handed_cell(
        &self,
        builder: &Builder<'c>,
        (field, last): (&str, Option<&Last<'c>>),
        row: i64,
        [place, column]: [Val<'c>; 2],
    ) -> Result<Vec<Val<'c>>, Error> {
        let Some(Last { rows, .. }) = last else {
            let point = self.point_at(builder, [place, column])?;
            return self.scope.cell(builder, field, &point);
        };
        let place = builder.add_constant(self.extents[0], -rows.kept - row)?;
        let point = self.point_at(builder, [place, column])?;
        self.scope.cell(builder, rows.rows, &point)
    }

    /// The buffer with the new values of a field that is read in its own sweep.
    fn target(&self, field: &str) -> Result<Val<'c>, Error> {
        let target = self.targets.get(field).copied();
        target.ok_or_else(|| Error::internal("a value of the same sweep is not stored"))
    }
}
