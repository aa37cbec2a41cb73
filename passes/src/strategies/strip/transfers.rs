//! What the other warps of a block do while strips compute: they bring old values and the rows
//! above the block into shared memory, and new values from there into global memory.

use super::code::{Strips, Tile};
use super::old_values::OldValues;
use crate::kernel::lanes::WARP;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

/// Loads that a lane has under way.
const BATCH: usize = 16;

impl<'c> Strips<'c, '_> {
    /// Stores the new values of a tile.
    pub fn store(&self, builder: &Builder<'c>, tile: Tile<'c>) -> Result<(), Error> {
        let inside = self.inside(builder, tile, [0; 2], [self.geometry.width - 1, 0])?;
        builder
            .choose(
                inside,
                &[],
                |builder| self.store_rows(builder, tile, false).map(|()| Vec::new()),
                |builder| self.store_rows(builder, tile, true).map(|()| Vec::new()),
            )
            .map(|_| ())
    }

    /// Whether a tile lies inside the grid, with some lanes above and below it, and some columns
    /// before and behind.
    fn inside(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        lanes: [i64; 2],
        columns: [i64; 2],
    ) -> Result<Val<'c>, Error> {
        let geometry = &self.geometry;
        let [above, below] = lanes;
        let reach = [
            (tile.row, -above * geometry.rows, (WARP + below) * geometry.rows - 1),
            (
                tile.time,
                -geometry.depth() - geometry.lag * below - columns[0],
                geometry.width - 1 + geometry.lag * above + columns[1],
            ),
        ];
        let mut conditions = Vec::new();
        for ((start, least, most), extent) in reach.into_iter().zip(self.extents) {
            let least = builder.add_constant(start, least)?;
            conditions.push(builder.compare(Compare::Ge, least, builder.index(0)?)?);
            let most = builder.add_constant(start, most)?;
            conditions.push(builder.compare(Compare::Lt, most, extent)?);
        }
        let all = builder.all(&conditions)?;
        all.ok_or_else(|| Error::internal("a tile of no dimensions"))
    }

    /// Lanes of a warp store neighbouring columns of some rows at once. A row is as many columns
    /// behind as its lane is late, rounded up to whole tiles, so that stores are aligned.
    fn store_rows(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        checked: bool,
    ) -> Result<(), Error> {
        let geometry = &self.geometry;
        let width = builder.index(geometry.width)?;
        let column = builder.binary("arith.remsi", self.lane, width)?;
        let sub = builder.binary("arith.divsi", self.lane, width)?;
        let at_once = WARP / geometry.width;
        let zero = builder.index(0)?;
        for row in 0..geometry.rows {
            let at_row = builder.index(row)?;
            let bounds = (zero, builder.index(WARP)?, builder.index(at_once)?);
            builder.repeat(bounds, |builder, turn| {
                let times =
                    |value, by: i64| builder.binary("arith.muli", value, builder.index(by)?);
                let lane = builder.add(turn, sub)?;
                let late = builder.add_constant(times(lane, geometry.lag)?, geometry.skew * row)?;
                // Columns from a row's time to the next whole tile.
                let more = builder.binary("arith.subi", zero, late)?;
                let last = builder.index(geometry.width - 1)?;
                let more = builder.binary("arith.andi", more, last)?;
                let time = builder.binary("arith.subi", tile.time, more)?;
                let time = builder.add(time, column)?;
                let rows = builder.add_constant(times(lane, geometry.rows)?, row)?;
                let place =
                    [builder.add(tile.row, rows)?, builder.binary("arith.subi", time, late)?];
                let from = [tile.strip, at_row, lane, self.kept_slot(builder, time)?];
                if !checked {
                    return self.store_point(builder, &from, place);
                }
                let mut conditions = Vec::new();
                for (at, extent) in place.into_iter().zip(self.extents) {
                    conditions.push(builder.compare(Compare::Ge, at, zero)?);
                    conditions.push(builder.compare(Compare::Lt, at, extent)?);
                }
                match builder.all(&conditions)? {
                    Some(inside) => {
                        builder.when(inside, |builder| self.store_point(builder, &from, place))
                    }
                    None => Ok(()),
                }
            })?;
        }
        Ok(())
    }

    fn store_point(
        &self,
        builder: &Builder<'c>,
        from: &[Val<'c>],
        place: [Val<'c>; 2],
    ) -> Result<(), Error> {
        let point = self.point_at(builder, place)?;
        for ((field, _), buffer) in self.apply.outputs.iter().zip(&self.results) {
            // A temp field that nobody reads later is not stored.
            let Some(target) = self.targets.get(field).copied() else { continue };
            let value = builder.load(*buffer, from)?;
            let cell = self.scope.cell(builder, field, &point)?;
            builder.store(value, target, &cell)?;
        }
        Ok(())
    }

    /// Loads the old values that a tile reads, those outside a grid from the nearest cell inside.
    /// `part` of `parts` warps loads its share.
    pub fn load(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        (part, parts): (Val<'c>, i64),
    ) -> Result<(), Error> {
        for (old, buffer) in &self.old {
            let load = |builder: &Builder<'c>| {
                let columns = [old.before, old.columns - old.before - self.geometry.width];
                let inside = self.inside(builder, tile, old.lanes, columns)?;
                let from = (old, *buffer);
                let version = |nearest| {
                    move |builder: &Builder<'c>| {
                        self.load_rows(builder, tile, (part, parts), from, nearest)
                            .map(|()| Vec::new())
                    }
                };
                if !self.lies_alike(old.field)? {
                    return version(true)(builder);
                }
                builder.choose(inside, &[], version(false), version(true))
            };
            match self.interior(builder, tile)?.filter(|_| old.rims) {
                Some(interior) => builder.choose(interior, &[], |_| Ok(Vec::new()), load)?,
                None => load(builder)?,
            };
        }
        Ok(())
    }

    /// Whether a field lies on the points that the kernel computes.
    fn lies_alike(&self, field: &str) -> Result<bool, Error> {
        Ok(self.scope.hull.has_points_of(self.scope.program.grid_of(field)?))
    }

    /// Lanes of a warp load neighbouring columns of some rows at once.
    fn load_rows(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        (part, parts): (Val<'c>, i64),
        (old, buffer): (&OldValues<'c>, Val<'c>),
        nearest: bool,
    ) -> Result<(), Error> {
        let source = self.sources.get(old.field).copied();
        let source = source
            .ok_or_else(|| Error::internal(format!("no buffer of @{} to read", old.field)))?;
        let grid = self.scope.program.grid_of(old.field)?;
        let geometry = &self.geometry;
        let side = (1..WARP).find(|side| WARP % side == 0 && old.columns <= *side);
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
        for from in (0..old.columns).step_by(usize::try_from(side).unwrap_or(1)) {
            let column = builder.add_constant(column, from)?;
            let end = builder.index(old.columns)?;
            let within = if from + side <= old.columns {
                None
            } else {
                Some(builder.compare(Compare::Lt, column, end)?)
            };
            let mut loaded = Vec::new();
            for (row, turn) in
                (0..geometry.rows).flat_map(|row| (0..turns).map(move |turn| (row, turn)))
            {
                let lane = builder.add_constant(first, turn * step)?;
                let mut there: Vec<_> = within.into_iter().collect();
                if (turn + 1) * step > old.all_lanes() {
                    there.push(builder.compare(Compare::Lt, lane, all)?);
                }
                let there = builder.all(&there)?;
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
                loaded.push((cell, there, [tile.half, tile.strip, row, lane, column]));
            }
            for batch in loaded.chunks(BATCH) {
                let mut values = Vec::new();
                for (cell, there, _) in batch {
                    let load = |builder: &Builder<'c>| Ok(vec![builder.load(source, cell)?]);
                    let zero = |builder: &Builder<'c>| Ok(vec![builder.zero(old.element)?]);
                    values.extend(match there {
                        Some(there) => builder.choose(*there, &[old.element], load, zero)?,
                        None => load(builder)?,
                    });
                }
                for ((_, there, to), value) in batch.iter().zip(values) {
                    match there {
                        Some(there) => {
                            builder.when(*there, |builder| builder.store(value, buffer, to))?;
                        }
                        None => builder.store(value, buffer, to)?,
                    }
                }
            }
        }
        Ok(())
    }

    /// Loads the values above a block that a tile of its first strip reads.
    pub fn load_above(&self, builder: &Builder<'c>, tile: Tile<'c>) -> Result<(), Error> {
        let geometry = &self.geometry;
        let width = builder.index(geometry.width)?;
        let inside = builder.compare(Compare::Lt, self.lane, width)?;
        builder.when(inside, |builder| {
            let now = builder.add(tile.time, self.lane)?;
            let slot = self.slot(builder, builder.add_constant(now, geometry.handover())?)?;
            for (window, ring) in self.windows.iter().zip(&self.rings) {
                let target = self.targets.get(window.field).copied();
                let target = target
                    .ok_or_else(|| Error::internal("a value of the same sweep is not stored"))?;
                for row in 1..=window.above() {
                    let late = geometry.lag - 1 - geometry.skew * (geometry.rows - row);
                    let column = builder.add_constant(now, late)?;
                    let column = builder.binary("arith.maxsi", column, builder.index(0)?)?;
                    let last = builder.add_constant(self.extents[1], -1)?;
                    let column = builder.binary("arith.minsi", column, last)?;
                    let place = [builder.add_constant(tile.row, -row)?, column];
                    let point = self.point_at(builder, place)?;
                    let cell = self.scope.cell(builder, window.field, &point)?;
                    let value = builder.load(target, &cell)?;
                    builder.store(value, *ring, &[tile.strip, builder.index(row - 1)?, slot])?;
                }
            }
            Ok(())
        })
    }
}
