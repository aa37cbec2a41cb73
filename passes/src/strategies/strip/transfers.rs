//! Transfers that run beside the computing warps: old values go into shared memory, and new values
//! from there into global memory.

use super::code::{Strips, Tile};
use super::old_values::OldValues;
use super::sequences;
use crate::analysis::index_width::constant_extents;
use crate::kernel::lanes::{self, WARP};
use melior::ir::r#type::MemRefType;
use melior::ir::{ShapedTypeLike, ValueLike};
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

/// Loads of a lane in flight.
const BATCH: usize = 40;

/// Rows of a warp in flight from shared to global memory.
const ROWS: i64 = 8;

impl<'c> Strips<'c, '_> {
    /// Stores the new values of a tile. Rows and columns at the ends of the grid are stored in
    /// whole accesses too: the first tiles of a block decide when the block below begins, and the
    /// last strips of a grid when a sweep ends. Strips beyond the grid store nothing.
    pub fn store(&self, builder: &Builder<'c>, tile: Tile<'c>) -> Result<(), Error> {
        let inside = self.inside(builder, tile, [0; 2], [self.geometry.width - 1, 0])?;
        let with = |checked| {
            move |builder: &Builder<'c>| {
                let stored = Stored::Fields { checked };
                self.store_rows(builder, tile, stored).map(|()| Vec::new())
            }
        };
        if !self.targets.is_empty() {
            let some = builder.compare(Compare::Lt, tile.row, self.extents[0])?;
            let all = |builder: &Builder<'c>| builder.choose(inside, &[], with(false), with(true));
            builder.when(some, |builder| all(builder).map(drop))?;
        }
        match self.has_last_rows(builder, tile)? {
            None => Ok(()),
            Some(last) => builder.when(last, |b| self.store_rows(b, tile, Stored::LastRows)),
        }
    }

    /// Whether a tile lies inside the grid, with some lanes above and below it, and some columns
    /// before and behind.
    fn inside(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        [above, below]: [i64; 2],
        [before, behind]: [i64; 2],
    ) -> Result<Val<'c>, Error> {
        let geometry = &self.geometry;
        let rows = [-above * geometry.rows, (WARP + below) * geometry.rows - 1];
        let first = -geometry.depth() - geometry.lag * below - before;
        let columns = [first, geometry.width - 1 + geometry.lag * above + behind];
        let hull = &self.scope.hull;
        self.fits(builder, tile, [rows, columns], (hull.lower, hull.upper))
    }

    /// Lanes of a warp store neighbouring columns of several rows at once. Each row stores its
    /// newest complete tile of columns, which begins at a multiple of the width, so that stores are
    /// aligned, and each access lies inside the grid or outside as a whole.
    fn store_rows(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        stored: Stored,
    ) -> Result<(), Error> {
        let geometry = &self.geometry;
        let fields = self.stored(stored);
        let vector = self.stored_at_once()?;
        // Lanes side by side in a row.
        let side = geometry.width / vector;
        let lanes = builder.index(side)?;
        let column = builder.binary("arith.remsi", self.lane, lanes)?;
        let column = builder.multiply_constant(column, vector)?;
        let sub = builder.binary("arith.divsi", self.lane, lanes)?;
        let at_once = WARP / side;
        let turns = ROWS.min(side);
        let bounds = (builder.index(0)?, builder.index(WARP)?, builder.index(at_once * turns)?);
        let handing = self.handing_lane(builder, tile)?;
        for number in 0..geometry.rows {
            let row = builder.index(number)?;
            builder.repeat(bounds, |builder, start| {
                let first = builder.add(start, sub)?;
                let mut loaded = Vec::new();
                for turn in 0..turns {
                    let lane = builder.add_constant(first, turn * at_once)?;
                    let [place_row, late] = self.place(builder, tile, (lane, row))?;
                    // Columns by which the row's first column lies beyond a multiple of the width.
                    let last = builder.index(geometry.width - 1)?;
                    let more = builder.binary("arith.andi", late, last)?;
                    let later = builder.binary("arith.subi", column, more)?;
                    let place_column = builder.add(late, later)?;
                    let point = self.point_at(builder, [place_row, place_column])?;
                    let [rows, columns] = self.extents;
                    let zero = builder.index(0)?;
                    let first = match stored {
                        Stored::Fields { checked: false } => None,
                        Stored::Fields { checked: true } => Some(zero),
                        Stored::LastRows => Some(builder.add_constant(rows, -self.leaving.kept)?),
                    };
                    let inside = match first {
                        None => None,
                        Some(first) => Some(builder.both(
                            builder.within(place_row, (first, rows))?,
                            builder.within(place_column, (zero, columns))?,
                        )?),
                    };
                    let slot = self.kept_slot(builder, builder.add(tile.time, later)?)?;
                    let mut values = vec![Vec::new(); fields.len()];
                    for slot in (0..vector).map(|cells| builder.add_constant(slot, cells)) {
                        let from = [tile.strip, row, lane, slot?];
                        for (values, to) in values.iter_mut().zip(&fields) {
                            values.push(load_where(builder, inside, to.results, &from)?);
                        }
                    }
                    loaded.push((point, lane, inside, values));
                }
                for (point, lane, inside, values) in loaded {
                    let keeps = |builder: &Builder<'c>| builder.compare(Compare::Ne, lane, handing);
                    let store = |builder: &Builder<'c>| {
                        let values = fields.iter().zip(&values);
                        self.store_points(builder, &point, (values, vector), (number, &keeps))
                    };
                    match inside {
                        Some(inside) => builder.when(inside, store)?,
                        None => store(builder)?,
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Where new values go.
    fn stored(&self, stored: Stored) -> Vec<To<'c>> {
        let all = self.apply.outputs.iter().filter_map(|(field, _)| {
            let results = *self.results.get(field)?;
            let (field, target) = match stored {
                Stored::Fields { .. } => (*field, *self.targets.get(field)?),
                Stored::LastRows => {
                    let last = self.leaving.last.get(field)?;
                    (last.rows.rows, last.buffer)
                }
            };
            Some(To { field, target, results })
        });
        all.collect()
    }

    /// Cells of one access to the rows of the stored fields: as many as are sure to be aligned, and
    /// of which a row has whole accesses.
    pub fn stored_at_once(&self) -> Result<i64, Error> {
        let hull = &self.scope.hull;
        let columns = constant_extents(hull.lower, hull.upper);
        let columns = columns.and_then(|extents| extents.last().copied()).unwrap_or(1);
        let mut cells = self.geometry.width;
        let rows = self.leaving.last.values().filter(|last| last.rows.kept > 0);
        for field in self.targets.keys().copied().chain(rows.map(|last| last.rows.rows)) {
            cells = cells.min(lanes::aligned_cells(&self.scope, field, self.geometry.width)?);
        }
        Ok(if columns % cells == 0 { cells } else { 1 })
    }

    /// Stores neighbouring points of a row, from the first one on. Values that are handed to the
    /// block below are stored when they are handed on: a lane may keep its own.
    fn store_points<'r>(
        &self,
        builder: &Builder<'c>,
        point: &[Val<'c>],
        (values, vector): (impl Iterator<Item = (&'r To<'c>, &'r Vec<Val<'c>>)>, i64),
        (row, keeps): (i64, &Condition<'c, '_>),
    ) -> Result<(), Error>
    where
        'c: 'r,
    {
        for (to, values) in values {
            let store = |builder: &Builder<'c>| {
                let cell = self.scope.cell(builder, to.field, point)?;
                lanes::store(builder, values, to.target, &cell, vector)
            };
            // Last rows are apart from those that are handed on.
            match self.targets.contains_key(to.field) && self.hands_on(to.field, row) {
                true => builder.when(keeps(builder)?, store)?,
                false => store(builder)?,
            }
        }
        Ok(())
    }

    /// Loads the old values that a tile reads, those outside a grid from the nearest cell inside.
    /// `part` of `parts` warps loads its share, and the first of them what rims keep.
    pub fn load(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        (part, parts): (Val<'c>, i64),
    ) -> Result<(), Error> {
        let mut rims = builder.compare(Compare::Eq, part, builder.index(0)?)?;
        if let Some(interior) = self.interior(builder, tile)? {
            let no = builder.constant(builder.integer_type(1), 0)?;
            rims = builder.select(interior, no, rims)?;
        }
        for (old, buffer) in self.old.iter().filter(|(old, _)| old.only_rims) {
            builder.when(rims, |builder| self.load_rims(builder, tile, (old, *buffer)))?;
        }
        for (old, buffer) in self.old.iter().filter(|(old, _)| !old.only_rims) {
            let columns = [old.before, old.columns - old.before - self.geometry.width];
            let inside = self.inside(builder, tile, old.lanes, columns)?;
            let version = |nearest| {
                move |builder: &Builder<'c>| {
                    self.load_rows(builder, tile, (part, parts), (old, *buffer), nearest)
                        .map(|()| Vec::new())
                }
            };
            if self.lies_alike(old.field)? {
                builder.choose(inside, &[], version(false), version(true))?;
                continue;
            }
            // A grid without points has no nearest cell.
            let grid = self.scope.program.grid_of(old.field)?;
            let filled = self.scope.holds_points(builder, grid.lower, grid.upper)?;
            builder.choose(filled, &[], version(true), |_| Ok(Vec::new()))?;
        }
        Ok(())
    }

    /// Loads the sequences of a tile, those outside a grid from the nearest cell inside. `part` of
    /// `parts` warps loads its share.
    pub fn load_sequences(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        (part, parts): (Val<'c>, i64),
    ) -> Result<(), Error> {
        let lanes = builder.add(builder.multiply_constant(part, WARP)?, self.lane)?;
        let mut loaded = Vec::new();
        for (sequence, buffer) in &self.sequences {
            let source = self.source(sequence.field)?;
            let grid = self.scope.program.grid_of(sequence.field)?;
            let filled = self.scope.holds_points(builder, grid.lower, grid.upper)?;
            let [row, column] = self.lower;
            let start = match sequence.dimension {
                0 => builder.add(tile.row, row)?,
                _ => builder.add(tile.time, column)?,
            };
            let first = builder.add_constant(start, sequence.first(&self.geometry))?;
            let length = sequence.length(&self.geometry);
            for turn in 0..sequences::turns(length, parts) {
                let place = builder.add_constant(lanes, turn * parts * WARP)?;
                let there = builder.compare(Compare::Lt, place, builder.index(length)?)?;
                let there = builder.both(filled, there)?;
                let point = [builder.add(first, place)?];
                let point = self.nearest(builder, &point, (grid.lower, grid.upper))?;
                let cell = self.scope.cell(builder, sequence.field, &point)?;
                let value = load_where(builder, Some(there), source, &cell)?;
                loaded.push((there, value, *buffer, [tile.half, tile.strip, place]));
            }
        }
        for (there, value, buffer, place) in loaded {
            builder.when(there, |builder| builder.store(value, buffer, &place))?;
        }
        Ok(())
    }

    /// Whether a field lies on the points that the kernel computes.
    fn lies_alike(&self, field: &str) -> Result<bool, Error> {
        Ok(self.scope.hull.has_points_of(self.scope.program.grid_of(field)?))
    }

    /// Lanes of a warp load neighbouring columns: all columns of a row by whole warps, and those
    /// left over of several rows at once.
    fn load_rows(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        parts: (Val<'c>, i64),
        (old, buffer): (&OldValues<'c>, Val<'c>),
        nearest: bool,
    ) -> Result<(), Error> {
        let source = self.source(old.field)?;
        let mut loaded = Vec::new();
        for first in (0..old.columns).step_by(usize::try_from(WARP).unwrap_or(1)) {
            loaded.extend(self.old_cells(builder, tile, parts, (old, first), nearest)?);
        }
        for batch in loaded.chunks(BATCH) {
            let mut values = Vec::new();
            for (cell, there, to) in batch {
                values.push((*there, load_where(builder, *there, source, cell)?, *to));
            }
            store_where(builder, &values, buffer)?;
        }
        Ok(())
    }

    /// The cells that a lane loads of the old values in up to a warp's columns from one on.
    fn old_cells(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        (part, parts): (Val<'c>, i64),
        (old, first_column): (&OldValues<'c>, i64),
        nearest: bool,
    ) -> Result<Vec<OldCell<'c>>, Error> {
        let grid = self.scope.program.grid_of(old.field)?;
        let geometry = &self.geometry;
        let columns = (old.columns - first_column).min(WARP);
        // Lanes side by side in a row.
        let side = (1..WARP).find(|side| WARP % side == 0 && columns <= *side);
        let side = side.unwrap_or(WARP);
        let at_once = WARP / side;
        let side_by_side = builder.index(side)?;
        let column = builder.binary("arith.remsi", self.lane, side_by_side)?;
        let sub = builder.binary("arith.divsi", self.lane, side_by_side)?;
        let start = builder.binary("arith.muli", part, builder.index(at_once)?)?;
        let first = builder.add(start, sub)?;
        let all = builder.index(old.all_lanes())?;
        let step = at_once * parts;
        let turns = (old.all_lanes() + step - 1) / step;
        let within = match columns < side {
            true => Some(builder.compare(Compare::Lt, column, builder.index(columns)?)?),
            false => None,
        };
        let column = builder.add_constant(column, first_column)?;
        let mut cells = Vec::new();
        for (row, turn) in
            (0..geometry.rows).flat_map(|row| (0..turns).map(move |turn| (row, turn)))
        {
            let lane = builder.add_constant(first, turn * step)?;
            let mut there: Vec<_> = within.into_iter().collect();
            if (turn + 1) * step > old.all_lanes() {
                there.push(builder.compare(Compare::Lt, lane, all)?);
            }
            let row = builder.index(row)?;
            let [place_row, place_column] =
                self.place(builder, tile, (builder.add_constant(lane, -old.lanes[0])?, row))?;
            let place_column = builder.add(place_column, column)?;
            let place = [place_row, builder.add_constant(place_column, -old.before)?];
            let mut point = self.point_at(builder, place)?;
            if nearest {
                point = self.nearest(builder, &point, (grid.lower, grid.upper))?;
            }
            let cell = self.scope.cell(builder, old.field, &point)?;
            let to = [tile.half, tile.strip, row, lane, column];
            cells.push((cell, builder.all(&there)?, to));
        }
        Ok(cells)
    }

    /// The buffer with a field's old values.
    pub fn source(&self, field: &str) -> Result<Val<'c>, Error> {
        let source = self.sources.get(field).copied();
        source.ok_or_else(|| Error::internal(format!("no buffer of @{field} to read")))
    }
}

/// What is stored of a tile.
#[derive(Clone, Copy)]
enum Stored {
    /// Fields with all their cells; whether each is looked for in the grid.
    Fields { checked: bool },
    /// Last rows of the grid.
    LastRows,
}

/// Where new values of a field go: from shared memory to a buffer of this or another field.
struct To<'c> {
    field: &'c str,
    target: Val<'c>,
    results: Val<'c>,
}

/// A condition that is computed where it is needed.
type Condition<'c, 'r> = dyn Fn(&Builder<'c>) -> Result<Val<'c>, Error> + 'r;

/// A cell to load: where it lies, the condition, and its place in shared memory.
type OldCell<'c> = (Vec<Val<'c>>, Option<Val<'c>>, [Val<'c>; 5]);

/// A value of a buffer where a condition holds, else zero.
pub fn load_where<'c>(
    builder: &Builder<'c>,
    condition: Option<Val<'c>>,
    buffer: Val<'c>,
    cell: &[Val<'c>],
) -> Result<Val<'c>, Error> {
    let Some(condition) = condition else { return builder.load(buffer, cell) };
    let ty = MemRefType::try_from(buffer.r#type());
    let element = ty.map_err(|error| Error::internal(error.to_string()))?.element();
    let load = |builder: &Builder<'c>| Ok(vec![builder.load(buffer, cell)?]);
    let zero = |builder: &Builder<'c>| Ok(vec![builder.zero(element)?]);
    let values = builder.choose(condition, &[element], load, zero)?;
    values.first().copied().ok_or_else(|| Error::internal("a condition without a value"))
}

/// Stores values where their conditions hold.
pub fn store_where<'c, const RANK: usize>(
    builder: &Builder<'c>,
    values: &[(Option<Val<'c>>, Val<'c>, [Val<'c>; RANK])],
    buffer: Val<'c>,
) -> Result<(), Error> {
    for (condition, value, place) in values {
        match condition {
            Some(there) => builder.when(*there, |builder| builder.store(*value, buffer, place))?,
            None => builder.store(*value, buffer, place)?,
        }
    }
    Ok(())
}
