//! What the other warps of a block do while strips compute: they bring old values and the rows
//! above the block into shared memory, and new values from there into global memory.

use super::code::{Strips, Tile};
use crate::kernel::lanes::WARP;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

impl<'c> Strips<'c, '_> {
    /// Stores the new values of a tile.
    pub fn store(&self, builder: &Builder<'c>, tile: Tile<'c>) -> Result<(), Error> {
        match self.interior(builder, tile)? {
            None => self.store_rows(builder, tile, true),
            Some(interior) => builder
                .choose(
                    interior,
                    &[],
                    |builder| self.store_rows(builder, tile, false).map(|()| Vec::new()),
                    |builder| self.store_rows(builder, tile, true).map(|()| Vec::new()),
                )
                .map(|_| ()),
        }
    }

    /// Lanes of a warp store neighbouring columns of some rows at once.
    fn store_rows(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        checked: bool,
    ) -> Result<(), Error> {
        let geometry = &self.geometry;
        let width = builder.index(geometry.width)?;
        let column = builder.binary("arith.remsi", self.lane, width)?;
        let first = builder.binary("arith.divsi", self.lane, width)?;
        let rows = (WARP / geometry.width).max(1);
        let zero = builder.index(0)?;
        for row in 0..geometry.rows {
            let bounds = (zero, builder.index(WARP)?, builder.index(rows)?);
            builder.repeat(bounds, |builder, lane| {
                let lane = builder.add(lane, first)?;
                let place = self.place(builder, tile, (lane, row))?;
                let place = [place[0], builder.add(place[1], column)?];
                let from = [tile.half, tile.strip, builder.index(row)?, lane, column];
                if !checked {
                    return self.store_point(builder, &from, place);
                }
                let mut conditions = Vec::new();
                for (at, extent) in place.into_iter().zip(self.extents) {
                    conditions.push(builder.compare(Compare::Ge, at, zero)?);
                    conditions.push(builder.compare(Compare::Lt, at, extent)?);
                }
                match builder.all(&conditions)? {
                    Some(inside) => builder
                        .when(inside, |builder| self.store_point(builder, &from, place)),
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
    pub fn load(&self, builder: &Builder<'c>, tile: Tile<'c>, first: Val<'c>, lanes: i64)
        -> Result<(), Error> {
        let at_rims: Vec<_> = self.old.iter().filter(|(old, _)| old.rims).collect();
        let everywhere: Vec<_> = self.old.iter().filter(|(old, _)| !old.rims).collect();
        for old in everywhere {
            self.load_field(builder, tile, (first, lanes), old)?;
        }
        if at_rims.is_empty() {
            return Ok(());
        }
        let all = |builder: &Builder<'c>| {
            at_rims.iter().try_for_each(|old| self.load_field(builder, tile, (first, lanes), old))
        };
        match self.interior(builder, tile)? {
            None => all(builder),
            Some(interior) => builder
                .choose(interior, &[], |_| Ok(Vec::new()), |builder| {
                    all(builder).map(|()| Vec::new())
                })
                .map(|_| ()),
        }
    }

    fn load_field(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        (first, lanes): (Val<'c>, i64),
        (old, buffer): &(super::old_values::OldValues<'c>, Val<'c>),
    ) -> Result<(), Error> {
        let source = self.sources.get(old.field).copied();
        let source = source
            .ok_or_else(|| Error::internal(format!("no buffer of @{} to read", old.field)))?;
        let grid = self.scope.program.grid_of(old.field)?;
        let columns = builder.index(old.columns)?;
        for row in 0..self.geometry.rows {
            let all = builder.index(old.all_lanes() * old.columns)?;
            builder.repeat((first, all, builder.index(lanes)?), |builder, number| {
                let lane = builder.binary("arith.divsi", number, columns)?;
                let column = builder.binary("arith.remsi", number, columns)?;
                let from = builder.add_constant(lane, -old.lanes[0])?;
                let place = self.place(builder, tile, (from, row))?;
                let second = builder.add(place[1], column)?;
                let place = [place[0], builder.add_constant(second, -old.before)?];
                let point = self.point_at(builder, place)?;
                let point = self.nearest(builder, &point, (grid.lower, grid.upper))?;
                let cell = self.scope.cell(builder, old.field, &point)?;
                let value = builder.load(source, &cell)?;
                let to = [tile.half, tile.strip, builder.index(row)?, lane, column];
                builder.store(value, *buffer, &to)
            })?;
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
            let slots = builder.index(geometry.ring() - 1)?;
            let slot = builder.binary("arith.andi", now, slots)?;
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
