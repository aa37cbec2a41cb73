//! Loads the old values that rims keep: of a tile's points inside the grid, those outside the main
//! piece. Most tiles at a rim have few of them, so whole rows and whole columns are left out.

use super::code::{Strips, Tile};
use super::old_values::OldValues;
use super::transfers::{load_where, store_where};
use crate::kernel::lanes::WARP;
use melior::ir::AffineMap;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};

/// Accesses to global memory in flight.
const ACCESSES: i64 = 8;

/// The first and last coordinate along a dimension.
type Ends<'c> = [Val<'c>; 2];

/// The buffers and the grid of a field whose old values rims keep.
#[derive(Clone, Copy)]
struct Field<'c> {
    name: &'c str,
    source: Val<'c>,
    shared: Val<'c>,
    grid: (AffineMap<'c>, AffineMap<'c>),
}

impl<'c> Strips<'c, '_> {
    /// Loads the old values of a tile's points outside the main piece, by one warp.
    pub fn load_rims(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        (old, shared): (&OldValues<'c>, Val<'c>),
    ) -> Result<(), Error> {
        let source = self.source(old.field)?;
        let grid = self.scope.program.grid_of(old.field)?;
        let grid = (grid.lower, grid.upper);
        let field = Field { name: old.field, source, shared, grid };
        let Some(main) = &self.apply.main else {
            return self.load_rim_rows(builder, tile, &field, None);
        };
        let [rows, columns] = self.ends(builder, (main.lower, main.upper))?;
        let [first, last] = self.columns(builder, tile)?;
        let before = builder.compare(Compare::Lt, last, columns[0])?;
        let behind = builder.compare(Compare::Gt, first, columns[1])?;
        let beside = builder.binary("arith.ori", before, behind)?;
        let none = |()| Vec::new();
        builder
            .choose(
                beside,
                &[],
                |builder| self.load_rim_rows(builder, tile, &field, None).map(none),
                |builder| {
                    self.load_rim_rows(builder, tile, &field, Some(rows))?;
                    let to = builder.add_constant(columns[0], -1)?;
                    self.load_rim_columns(builder, tile, &field, (rows, [first, to]))?;
                    let from = builder.add_constant(columns[1], 1)?;
                    self.load_rim_columns(builder, tile, &field, (rows, [from, last])).map(none)
                },
            )
            .map(|_| ())
    }

    /// Loads rows of the grid, all but those inside. Lanes load neighbouring columns.
    fn load_rim_rows(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        field: &Field<'c>,
        inside: Option<Ends<'c>>,
    ) -> Result<(), Error> {
        let geometry = &self.geometry;
        let side = builder.index(geometry.width)?;
        let time = builder.binary("arith.remsi", self.lane, side)?;
        let sub = builder.binary("arith.divsi", self.lane, side)?;
        let at_once = WARP / geometry.width;
        let all = geometry.strip() / at_once;
        let accesses = (1..=ACCESSES).rev().find(|accesses| all % accesses == 0).unwrap_or(1);
        let rows = at_once * accesses;
        let bounds = (builder.index(0)?, builder.index(geometry.strip())?, builder.index(rows)?);
        builder.repeat(bounds, |builder, start| {
            let load = |builder: &Builder<'c>| -> Result<(), Error> {
                let mut loaded = Vec::new();
                for access in 0..accesses {
                    let number =
                        builder.add(start, builder.add_constant(sub, access * at_once)?)?;
                    let each = builder.index(geometry.rows)?;
                    let lane = builder.binary("arith.divsi", number, each)?;
                    let row = builder.binary("arith.remsi", number, each)?;
                    let [at, column] = self.place(builder, tile, (lane, row))?;
                    let point = self.point_at(builder, [at, builder.add(column, time)?])?;
                    let there = match (inside, point.first()) {
                        (Some(inside), Some(row)) => Some(outside(builder, [*row; 2], inside)?),
                        _ => None,
                    };
                    let there = self.if_in_place(builder, field, &point, there)?;
                    let value = self.old_cell(builder, field, &point, there)?;
                    loaded.push((there, value, [tile.half, tile.strip, row, lane, time]));
                }
                store_where(builder, &loaded, field.shared)
            };
            let Some(inside) = inside else { return load(builder) };
            let [[top, bottom], _] = self.ends(builder, field.grid)?;
            let first = builder.add(tile.row, self.lower[0])?;
            let first = builder.add(first, start)?;
            let last = builder.add_constant(first, rows - 1)?;
            let first = builder.binary("arith.maxsi", first, top)?;
            let last = builder.binary("arith.minsi", last, bottom)?;
            builder.when(outside(builder, [first, last], inside)?, load)
        })
    }

    /// Loads the columns between two ends that the grid and the tile have, in the rows inside.
    /// Lanes load their rows.
    fn load_rim_columns(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        field: &Field<'c>,
        (inside, [from, to]): (Ends<'c>, Ends<'c>),
    ) -> Result<(), Error> {
        let [_, [left, right]] = self.ends(builder, field.grid)?;
        let [first, last] = self.columns(builder, tile)?;
        let from =
            builder.binary("arith.maxsi", builder.binary("arith.maxsi", from, first)?, left)?;
        let to = builder.binary("arith.minsi", builder.binary("arith.minsi", to, last)?, right)?;
        let bounds = (from, builder.add_constant(to, 1)?, builder.index(1)?);
        builder.repeat(bounds, |builder, column| {
            let mut loaded = Vec::new();
            for row in 0..self.geometry.rows {
                let row = builder.index(row)?;
                let place = self.place(builder, tile, (self.lane, row))?;
                let point = self.point_at(builder, place)?;
                let &[at, start] = point.as_slice() else {
                    return Err(Error::internal("a point of another rank"));
                };
                let time = builder.binary("arith.subi", column, start)?;
                let width = builder.index(self.geometry.width)?;
                let end = builder.add_constant(inside[1], 1)?;
                let there = builder.both(
                    builder.within(time, (builder.index(0)?, width))?,
                    builder.within(at, (inside[0], end))?,
                )?;
                let value = self.old_cell(builder, field, &[at, column], Some(there))?;
                loaded.push((Some(there), value, [tile.half, tile.strip, row, self.lane, time]));
            }
            store_where(builder, &loaded, field.shared)
        })
    }

    /// A condition of a load of a point's old value. A field that is updated in place has none for
    /// a point outside the grid: the nearest cell inside may be stored meanwhile.
    fn if_in_place(
        &self,
        builder: &Builder<'c>,
        field: &Field<'c>,
        point: &[Val<'c>],
        there: Option<Val<'c>>,
    ) -> Result<Option<Val<'c>>, Error> {
        let target = self.targets.get(field.name);
        if target.is_none_or(|target| mlir::key(*target) != mlir::key(field.source)) {
            return Ok(there);
        }
        let (lower, upper) = field.grid;
        let inside = self.scope.inside(builder, point, lower, upper)?;
        there.map_or(Ok(inside), |there| builder.both(there, inside)).map(Some)
    }

    /// The old value at the grid's nearest cell to a point.
    fn old_cell(
        &self,
        builder: &Builder<'c>,
        field: &Field<'c>,
        point: &[Val<'c>],
        condition: Option<Val<'c>>,
    ) -> Result<Val<'c>, Error> {
        let point = self.nearest(builder, point, field.grid)?;
        let cell = self.scope.cell(builder, field.name, &point)?;
        load_where(builder, condition, field.source, &cell)
    }
}

/// Whether the first of some rows, or the last, lies outside.
fn outside<'c>(
    builder: &Builder<'c>,
    [first, last]: Ends<'c>,
    [top, bottom]: Ends<'c>,
) -> Result<Val<'c>, Error> {
    let above = builder.compare(Compare::Lt, first, top)?;
    let below = builder.compare(Compare::Gt, last, bottom)?;
    builder.binary("arith.ori", above, below)
}
