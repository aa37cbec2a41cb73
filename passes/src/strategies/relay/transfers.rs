//! A thread's part of the rows that a block loads and stores: cells a block's threads apart, so
//! that neighbouring threads access neighbouring cells.

use super::layout::Layout;
use crate::kernel::frame::Frame;
use crate::kernel::lane_cells::{self, Beyond};
use crate::kernel::lanes;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

/// A cell of a row that a thread loads or stores.
pub struct Share<'c> {
    /// Its column in the row.
    pub place: Val<'c>,
    /// Its column in the grid.
    column: Val<'c>,
    /// Whether the row has such a cell; none where all threads have one.
    exists: Option<Val<'c>>,
    /// Whether it is one of the tile's own.
    in_tile: Val<'c>,
}

/// The cells of a thread.
pub struct Shares<'c, 'p> {
    frame: &'p Frame<'c, 'p>,
    layout: &'p Layout<'c>,
    /// The cells, the same in each row.
    pub cells: Vec<Share<'c>>,
    /// The tile's first row, and how many it has.
    tile: (Val<'c>, Val<'c>),
    /// The sector of a row that the thread prefetches.
    sector: Sector<'c>,
    beyond: Beyond,
}

/// A sector of a row.
struct Sector<'c> {
    /// Its first column in the grid.
    column: Val<'c>,
    /// Whether the row has it.
    exists: Val<'c>,
}

/// What tiles at a rim check of each cell of a thread.
pub struct ShareChecks<'c> {
    /// The columns that are loaded in place of the cells'.
    inside: Vec<Val<'c>>,
    /// Whether the columns lie in the grid.
    in_grid: Vec<Val<'c>>,
    /// The column that is prefetched in place of the sector's.
    sector: Val<'c>,
    /// The condition that the grid has a cell, where it may have none.
    some: Option<Val<'c>>,
}

impl<'c, 'p> Shares<'c, 'p> {
    /// The cells of the thread of a number.
    pub fn new(
        frame: &'p Frame<'c, 'p>,
        layout: &'p Layout<'c>,
        (thread, columns): (Val<'c>, i64),
        tile: (Val<'c>, Val<'c>),
        beyond: Beyond,
    ) -> Result<Self, Error> {
        let builder = &frame.builder;
        let [.., origin] = frame.origin.as_slice() else {
            return Err(Error::internal("a tile of no dimensions"));
        };
        let threads: i64 = layout.threads().into_iter().product();
        let mut cells = Vec::new();
        for first in (0..layout.row_cells).step_by(usize::try_from(threads).unwrap_or(1)) {
            let place = builder.add_constant(thread, first)?;
            let exists = match first + threads > layout.row_cells {
                true => {
                    let end = builder.index(layout.row_cells)?;
                    Some(builder.compare(Compare::Lt, place, end)?)
                }
                false => None,
            };
            let in_row = builder.add_constant(place, -layout.left)?;
            let in_tile = builder.compare(Compare::Below, in_row, builder.index(columns)?)?;
            cells.push(Share { place, column: builder.add(*origin, in_row)?, exists, in_tile });
        }
        let each = i64::try_from(lanes::cells_of_a_sector(layout.element)).unwrap_or(1);
        let place = builder.multiply_constant(thread, each)?;
        let exists = builder.compare(Compare::Lt, place, builder.index(layout.row_cells)?)?;
        let column = builder.add(*origin, builder.add_constant(place, -layout.left)?)?;
        let sector = Sector { column, exists };
        Ok(Self { frame, layout, cells, tile, sector, beyond })
    }

    /// The checks of a tile at a rim.
    pub fn checks(&self, builder: &Builder<'c>) -> Result<ShareChecks<'c>, Error> {
        let grid = self.frame.scope.program.grid_of(self.layout.field)?;
        let none = || Error::internal("a grid of no dimensions");
        let first = *self.frame.scope.bounds(builder, grid.lower)?.last().ok_or_else(none)?;
        let last = *self.frame.scope.bounds(builder, grid.upper)?.last().ok_or_else(none)?;
        let (mut inside, mut in_grid) = (Vec::new(), Vec::new());
        for cell in &self.cells {
            inside.push(self.beyond.inside(builder, cell.column, [first, last], 1)?);
            let after = builder.compare(Compare::Ge, cell.column, first)?;
            let before = builder.compare(Compare::Le, cell.column, last)?;
            in_grid.push(builder.both(after, before)?);
        }
        let some = lane_cells::some(self.frame, builder, grid)?;
        let sector = self.beyond.inside(builder, self.sector.column, [first, last], 1)?;
        Ok(ShareChecks { inside, in_grid, sector, some })
    }

    /// The thread's cells of a row of the grid. Rows below those that the tile needs are not
    /// loaded: the last one that it needs stands for them.
    pub fn load(
        &self,
        builder: &Builder<'c>,
        row: Val<'c>,
        checks: Option<&ShareChecks<'c>>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let (frame, field) = (self.frame, self.layout.field);
        let mut row = self.needed(builder, row)?;
        if checks.is_some() {
            row = self.beyond.plane(frame, builder, frame.scope.program.grid_of(field)?, row)?;
        }
        let (buffer, element) = (frame.source(field)?, self.layout.element);
        let mut loaded = Vec::new();
        for (number, share) in self.cells.iter().enumerate() {
            let inside = checks.and_then(|checks| checks.inside.get(number)).copied();
            let column = inside.unwrap_or(share.column);
            let cell = |builder: &Builder<'c>| {
                builder.load(buffer, &frame.scope.cell(builder, field, &[row, column])?)
            };
            let some = checks.and_then(|checks| checks.some);
            let conditions: Vec<_> = share.exists.into_iter().chain(some).collect();
            loaded.push(match builder.all(&conditions)? {
                None => cell(builder)?,
                Some(condition) => {
                    let cell = |builder: &Builder<'c>| cell(builder).map(|cell| vec![cell]);
                    let zero = |builder: &Builder<'c>| Ok(vec![builder.zero(element)?]);
                    let found = builder.choose(condition, &[element], cell, zero)?;
                    let found = found.first().copied();
                    found.ok_or_else(|| Error::internal("a choice without a result"))?
                }
            });
        }
        Ok(loaded)
    }

    /// Prefetches a row of the grid into the level 2 cache, one thread a sector.
    pub fn prefetch(
        &self,
        builder: &Builder<'c>,
        row: Val<'c>,
        checks: Option<&ShareChecks<'c>>,
    ) -> Result<(), Error> {
        let (frame, field) = (self.frame, self.layout.field);
        let row = self.needed(builder, row)?;
        builder.when(self.sector.exists, |builder| {
            let column = checks.map_or(self.sector.column, |checks| checks.sector);
            let at = frame.scope.cell(builder, field, &[row, column])?;
            lanes::prefetch(builder, frame.source(field)?, &at)
        })
    }

    /// The row, or the last one that the tile needs where it lies below.
    fn needed(&self, builder: &Builder<'c>, row: Val<'c>) -> Result<Val<'c>, Error> {
        let (first, rows) = self.tile;
        let last = builder.add_constant(builder.add(first, rows)?, self.layout.below - 1)?;
        builder.binary("arith.minsi", row, last)
    }

    /// Puts cells that were loaded into a row of shared memory.
    pub fn keep(
        &self,
        builder: &Builder<'c>,
        cells: &[Val<'c>],
        put: impl Fn(&Builder<'c>, Val<'c>, Val<'c>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for (share, cell) in self.cells.iter().zip(cells) {
            match share.exists {
                None => put(builder, share.place, *cell)?,
                Some(exists) => {
                    builder.when(exists, |builder| put(builder, share.place, *cell))?;
                }
            }
        }
        Ok(())
    }

    /// Stores the thread's cells of a row, those that belong to the tile; `cell` gives the one in a
    /// column of the row.
    pub fn store(
        &self,
        builder: &Builder<'c>,
        row: Val<'c>,
        checks: Option<&ShareChecks<'c>>,
        cell: impl Fn(&Builder<'c>, Val<'c>) -> Result<Val<'c>, Error>,
    ) -> Result<(), Error> {
        let (frame, field) = (self.frame, self.layout.field);
        let (first, rows) = self.tile;
        let from_first = builder.binary("arith.subi", row, first)?;
        let mut in_rows = builder.compare(Compare::Below, from_first, rows)?;
        if checks.is_some() && !frame.scope.hull.alike {
            let grid = frame.scope.program.grid_of(field)?;
            let own = lane_cells::in_planes(frame, builder, (grid.lower, grid.upper), row)?;
            in_rows = builder.both(in_rows, own)?;
        }
        builder.when(in_rows, |builder| {
            for (number, share) in self.cells.iter().enumerate() {
                let in_grid = checks.and_then(|checks| checks.in_grid.get(number)).copied();
                let conditions: Vec<_> = std::iter::once(share.in_tile).chain(in_grid).collect();
                let condition = builder.all(&conditions)?.unwrap_or(share.in_tile);
                builder.when(condition, |builder| {
                    let value = cell(builder, share.place)?;
                    let at = frame.scope.cell(builder, field, &[row, share.column])?;
                    builder.store(value, frame.target(field)?, &at)
                })?;
            }
            Ok(())
        })
    }
}
