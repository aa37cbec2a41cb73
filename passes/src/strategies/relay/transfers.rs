//! A thread's part of the rows that a block loads and stores: groups of neighbouring cells, those
//! of neighbouring threads side by side.

use super::layout::Layout;
use crate::kernel::frame::Frame;
use crate::kernel::lane_cells::{self, Beyond};
use crate::kernel::lanes;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

/// A group of cells of a row.
pub struct Group<'c> {
    /// The first one's column in the row. That of a group which the row lacks is another's.
    pub place: Val<'c>,
    /// Their columns in the grid.
    columns: Vec<Val<'c>>,
    /// Whether the row has the group; none where all threads have one.
    exists: Option<Val<'c>>,
    /// Whether the cells are the tile's own; none where no thread has such cells.
    in_tile: Option<Val<'c>>,
}

/// The cells of a thread.
pub struct Shares<'c, 'p> {
    frame: &'p Frame<'c, 'p>,
    layout: &'p Layout<'c>,
    /// Its groups, the same in each row.
    pub groups: Vec<Group<'c>>,
    /// Cells of an access to the field.
    vector: i64,
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

/// The checks of a group in tiles at a rim.
struct GroupChecks<'c> {
    /// The columns that are loaded in place of the cells'.
    inside: Vec<Val<'c>>,
    /// Whether the cells lie in the grid.
    in_grid: Vec<Val<'c>>,
}

/// The checks of tiles at a rim.
pub struct ShareChecks<'c> {
    groups: Vec<GroupChecks<'c>>,
    /// The column that is prefetched in place of the sector's.
    sector: Val<'c>,
    /// The condition that the grid has a cell, where it may have none.
    some: Option<Val<'c>>,
}

impl<'c, 'p> Shares<'c, 'p> {
    /// The cells of the thread of a number in tiles of so many columns.
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
        let (cells, mut groups) = (layout.group, Vec::new());
        let whole = threads * cells;
        for first in (0..layout.row_cells).step_by(usize::try_from(whole).unwrap_or(1)) {
            let place = builder.add_constant(builder.multiply_constant(thread, cells)?, first)?;
            let last = builder.index(layout.row_cells - cells)?;
            let exists = match first + whole > layout.row_cells {
                true => Some(builder.compare(Compare::Le, place, last)?),
                false => None,
            };
            let from_tile = builder.add_constant(place, -layout.left)?;
            let own = builder.compare(Compare::Below, from_tile, builder.index(columns)?)?;
            let in_tile = Some(own).filter(|_| first < layout.left + columns);
            let column = builder.add(*origin, from_tile)?;
            let columns = (0..cells).map(|cell| builder.add_constant(column, cell));
            let columns = columns.collect::<Result<_, _>>()?;
            let place = builder.binary("arith.minsi", place, last)?;
            groups.push(Group { place, columns, exists, in_tile });
        }
        let each = i64::try_from(lanes::cells_of_a_sector(layout.element)).unwrap_or(1);
        let place = builder.multiply_constant(thread, each)?;
        let exists = builder.compare(Compare::Lt, place, builder.index(layout.row_cells)?)?;
        let column = builder.add(*origin, builder.add_constant(place, -layout.left)?)?;
        let sector = Sector { column, exists };
        let vector = lanes::aligned_cells(&frame.scope, layout.field, cells)?;
        // Tiles of other widths do not begin with whole accesses.
        let aligned = columns % vector == 0 && vector == cells;
        let vector = if aligned { vector } else { 1 };
        Ok(Self { frame, layout, groups, vector, tile, sector, beyond })
    }

    /// The checks of a tile at a rim.
    pub fn checks(&self, builder: &Builder<'c>) -> Result<ShareChecks<'c>, Error> {
        let grid = self.frame.scope.program.grid_of(self.layout.field)?;
        let none = || Error::internal("a grid of no dimensions");
        let first = *self.frame.scope.bounds(builder, grid.lower)?.last().ok_or_else(none)?;
        let last = *self.frame.scope.bounds(builder, grid.upper)?.last().ok_or_else(none)?;
        let mut groups = Vec::new();
        for group in &self.groups {
            let (mut inside, mut in_grid) = (Vec::new(), Vec::new());
            // Cells of an access lie all inside or all outside.
            for column in group.columns.iter().step_by(self.step()) {
                let start = self.beyond.inside(builder, *column, [first, last], self.vector)?;
                for cell in 0..self.vector {
                    inside.push(builder.add_constant(start, cell)?);
                }
                let after = builder.compare(Compare::Ge, *column, first)?;
                let before = builder.compare(Compare::Le, *column, last)?;
                in_grid.push(builder.both(after, before)?);
            }
            groups.push(GroupChecks { inside, in_grid });
        }
        let sector = self.beyond.inside(builder, self.sector.column, [first, last], 1)?;
        let some = lane_cells::some(self.frame, builder, grid)?;
        Ok(ShareChecks { groups, sector, some })
    }

    /// The thread's cells of a row of the grid, group by group. Rows below those that the tile
    /// needs are not loaded: the last one that it needs stands for them.
    pub fn load(
        &self,
        builder: &Builder<'c>,
        row: Val<'c>,
        checks: Option<&ShareChecks<'c>>,
    ) -> Result<Vec<Vec<Val<'c>>>, Error> {
        let (frame, field) = (self.frame, self.layout.field);
        let mut row = self.needed(builder, row)?;
        if checks.is_some() {
            row = self.beyond.plane(frame, builder, frame.scope.program.grid_of(field)?, row)?;
        }
        let (buffer, element) = (frame.source(field)?, self.layout.element);
        let mut loaded = Vec::new();
        for (number, group) in self.groups.iter().enumerate() {
            let inside = checks.and_then(|checks| checks.groups.get(number));
            let columns = inside.map_or(&group.columns, |checks| &checks.inside);
            let cells = |builder: &Builder<'c>| {
                let mut cells = Vec::new();
                for column in columns.iter().step_by(self.step()) {
                    let at = frame.scope.cell(builder, field, &[row, *column])?;
                    cells.extend(lanes::load(builder, buffer, &at, self.vector, self.vector)?);
                }
                Ok(cells)
            };
            let some = checks.and_then(|checks| checks.some);
            let conditions: Vec<_> = group.exists.into_iter().chain(some).collect();
            loaded.push(match builder.all(&conditions)? {
                None => cells(builder)?,
                Some(condition) => {
                    let types = vec![element; columns.len()];
                    builder.choose(condition, &types, cells, |builder| {
                        types.iter().map(|ty| builder.zero(*ty)).collect()
                    })?
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
        cells: &[Vec<Val<'c>>],
        put: impl Fn(&Builder<'c>, Val<'c>, &[Val<'c>]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for (group, cells) in self.groups.iter().zip(cells) {
            match group.exists {
                None => put(builder, group.place, cells)?,
                Some(exists) => {
                    builder.when(exists, |builder| put(builder, group.place, cells))?;
                }
            }
        }
        Ok(())
    }

    /// Stores the thread's cells of a row, those that belong to the tile.
    pub fn store(
        &self,
        builder: &Builder<'c>,
        row: Val<'c>,
        cells: &[Vec<Val<'c>>],
        checks: Option<&ShareChecks<'c>>,
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
        for (number, (group, cells)) in self.groups.iter().zip(cells).enumerate() {
            let Some(in_tile) = group.in_tile else { continue };
            let in_tile = builder.both(in_rows, in_tile)?;
            let in_grid = checks.and_then(|checks| checks.groups.get(number));
            let columns = group.columns.iter().step_by(self.step());
            let Some(in_grid) = in_grid else {
                builder.when(in_tile, |builder| {
                    for (cells, column) in cells.chunks(self.step()).zip(columns) {
                        let at = frame.scope.cell(builder, field, &[row, *column])?;
                        lanes::store(builder, cells, frame.target(field)?, &at, self.vector)?;
                    }
                    Ok(())
                })?;
                continue;
            };
            for ((cells, column), in_grid) in
                cells.chunks(self.step()).zip(columns).zip(&in_grid.in_grid)
            {
                builder.when(builder.both(in_tile, *in_grid)?, |builder| {
                    let at = frame.scope.cell(builder, field, &[row, *column])?;
                    lanes::store(builder, cells, frame.target(field)?, &at, self.vector)
                })?;
            }
        }
        Ok(())
    }

    fn step(&self) -> usize {
        usize::try_from(self.vector).unwrap_or(1).max(1)
    }
}
