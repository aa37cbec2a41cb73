//! The code of a wavefront kernel: its tile rows one after the other, the times of a tile, a point.

use super::rows::Rows;
use super::skews::Skews;
use crate::analysis::footprint;
use crate::kernel::evaluate::{At, Distance, Rules};
use crate::kernel::in_flight::{OfSweep, TileRow};
use crate::kernel::lanes::WARP;
use crate::kernel::peers::Peers;
use crate::kernel::scope::Scope;
use crate::kernel::tile_place;
use melior::ir::AffineExpr;
use std::collections::BTreeMap;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::tiled::Apply;

/// Sizes of a kernel, as values.
pub struct Sizes<'c> {
    /// All tile rows.
    pub all: Val<'c>,
    /// Tile rows along each dimension but the fastest.
    pub counts: Vec<Val<'c>>,
    /// Points along the fastest dimension.
    pub points: Val<'c>,
    /// Times between rows along each dimension but the fastest.
    pub skews: Vec<Val<'c>>,
    /// Tiles of a tile row.
    pub tiles: Val<'c>,
}

/// Where a thread is.
pub struct Places<'c> {
    /// The number of its block.
    pub block: Val<'c>,
    /// Its number in the block.
    pub thread: Val<'c>,
    /// Its row of the tile along each dimension but the fastest.
    pub threads: Vec<Val<'c>>,
}

/// The code of a kernel.
pub struct Sweep<'c, 'p> {
    pub scope: Scope<'c, 'p>,
    pub sources: BTreeMap<&'c str, Val<'c>>,
    pub targets: BTreeMap<&'c str, Val<'c>>,
    pub apply: &'p Apply<'c>,
    pub rows: &'p Rows<'c>,
}

impl<'c> Sweep<'c, '_> {
    pub fn affine(&self, builder: &Builder<'c>, value: AffineExpr<'c>) -> Result<Val<'c>, Error> {
        builder.affine(value, &[], &self.scope.params)
    }

    /// The sizes of a kernel, as values.
    pub fn sizes(&self, builder: &Builder<'c>) -> Result<Sizes<'c>, Error> {
        let all = self.affine(builder, self.rows.all())?;
        let counts: Vec<_> = (self.rows.counts.iter())
            .map(|count| self.affine(builder, *count))
            .collect::<Result<_, _>>()?;
        let points = self.rows.extents.last().copied();
        let points = points.ok_or_else(|| Error::internal("a grid of no dimensions"))?;
        let points = self.affine(builder, points)?;
        let shape = (self.rows.heights.as_slice(), self.rows.width);
        let Skews { skews, tiles } =
            Skews::of(builder, &self.rows.front.skew.times, shape, points)?;
        let tiles = tiles.map_or_else(|| self.affine(builder, self.rows.tiles), Ok)?;
        Ok(Sizes { all, counts, points, skews, tiles })
    }

    /// The number of the block, and that of the thread whole and by dimensions.
    pub fn places(&self, builder: &Builder<'c>) -> Result<Places<'c>, Error> {
        let (block, thread) = (
            tile_place::number(builder, "gpu.block_id", "x")?,
            tile_place::number(builder, "gpu.thread_id", "x")?,
        );
        let threads = split(builder, thread, &self.rows.heights)?;
        Ok(Places { block, thread, threads })
    }

    /// A whole kernel whose blocks wait by flags.
    pub fn by_flags(
        &self,
        builder: &Builder<'c>,
        flags: [Val<'c>; 2],
        blocks: i64,
    ) -> Result<(), Error> {
        let sizes = self.sizes(builder)?;
        let (all, tiles) = (sizes.all, sizes.tiles);
        let places = self.places(builder)?;
        let blocks = builder.index(blocks)?;
        if self.rows.sweeps == 1 {
            let peers = Peers::new(builder, flags, (all, tiles))?;
            return builder.repeat((places.block, all, blocks), |builder, row| {
                self.tiles(builder, (&sizes, &places, &peers), (row, None))
            });
        }
        let sweeps = builder.multiply_constant(all, self.rows.sweeps)?;
        let peers = Peers::new(builder, flags, (sweeps, tiles))?;
        builder.repeat((places.block, sweeps, blocks), |builder, number| {
            let numbered = TileRow::of(builder, number, all)?;
            let buffers = (&self.scope, &self.sources, &self.targets);
            let OfSweep { scope, sources, targets } =
                OfSweep::of(builder, numbered.sweep, buffers)?;
            let sweep = Sweep { scope, sources, targets, ..*self };
            sweep.tiles(builder, (&sizes, &places, &peers), (number, Some(numbered)))
        })
    }

    /// The tiles of a tile row, which is one of several sweeps or of one.
    fn tiles(
        &self,
        builder: &Builder<'c>,
        (sizes, places, peers): (&Sizes<'c>, &Places<'c>, &Peers<'c>),
        (number, numbered): (Val<'c>, Option<TileRow<'c>>),
    ) -> Result<(), Error> {
        let thread = places.thread;
        let row = numbered.map_or(number, |numbered| numbered.row);
        let at = split_by(builder, row, &sizes.counts)?;
        let bounds = (builder.index(0)?, sizes.tiles, builder.index(1)?);
        builder.repeat(bounds, |builder, tile| {
            if let Some(numbered) = numbered {
                self.wait_before(builder, (peers, thread), (&at, sizes), numbered, tile)?;
            }
            let first = numbered.map(|numbered| numbered.first);
            self.wait(builder, (peers, thread), (&at, &sizes.counts, first), tile)?;
            self.tile(builder, (&at, &places.threads), sizes, tile)?;
            let done = builder.add_constant(tile, 1)?;
            let leads = builder.compare(Compare::Eq, thread, builder.index(0)?)?;
            builder.when(leads, |builder| peers.signal(builder, number, done))
        })
    }

    /// Waits until the tile rows of the sweep before are far enough for a tile: a warp for each, as
    /// far as there are any.
    fn wait_before(
        &self,
        builder: &Builder<'c>,
        (peers, thread): (&Peers<'c>, Val<'c>),
        (at, sizes): (&[Val<'c>], &Sizes<'c>),
        numbered: TileRow<'c>,
        tile: Val<'c>,
    ) -> Result<(), Error> {
        let (zero, counts) = (builder.index(0)?, &sizes.counts);
        let first = builder.binary("arith.subi", numbered.first, sizes.all)?;
        let later = builder.compare(Compare::Gt, numbered.sweep, zero)?;
        for (place, (steps, ahead)) in (1..).zip(&self.rows.before) {
            let waiting =
                builder.index(place * WARP % self.rows.heights.iter().product::<i64>())?;
            let mut conditions = vec![later, builder.compare(Compare::Eq, thread, waiting)?];
            let mut row = zero;
            for ((at, count), step) in at.iter().zip(counts).zip(steps) {
                let at = builder.add_constant(*at, *step)?;
                conditions.push(builder.within(at, (zero, *count))?);
                row = builder.add(builder.binary("arith.muli", row, *count)?, at)?;
            }
            let Some(all) = builder.all(&conditions)? else { continue };
            let done = builder.add_constant(tile, *ahead)?;
            builder.when(all, |builder| {
                let done = builder.binary("arith.maxsi", done, zero)?;
                peers.wait(builder, builder.add(first, row)?, done)
            })?;
        }
        Ok(())
    }

    /// Waits until the tile rows before are far enough for a tile.
    fn wait(
        &self,
        builder: &Builder<'c>,
        (peers, thread): (&Peers<'c>, Val<'c>),
        (at, counts, first): (&[Val<'c>], &[Val<'c>], Option<Val<'c>>),
        tile: Val<'c>,
    ) -> Result<(), Error> {
        let zero = builder.index(0)?;
        for (before, ahead) in self.rows.waits() {
            let mut conditions = vec![builder.compare(Compare::Eq, thread, zero)?];
            let mut row = zero;
            for ((at, count), before) in at.iter().zip(counts).zip(before) {
                let at = builder.add_constant(*at, -i64::from(before))?;
                conditions.push(builder.compare(Compare::Ge, at, zero)?);
                row = builder.add(builder.binary("arith.muli", row, *count)?, at)?;
            }
            let Some(all) = builder.all(&conditions)? else { continue };
            if let Some(first) = first {
                row = builder.add(first, row)?;
            }
            let done = builder.add_constant(tile, ahead)?;
            builder.when(all, |builder| peers.wait(builder, row, done))?;
        }
        builder.op("gpu.barrier", &[], &[], &[]).map(|_| ())
    }

    /// The times of a tile.
    pub fn tile(
        &self,
        builder: &Builder<'c>,
        (at, threads): (&[Val<'c>], &[Val<'c>]),
        sizes: &Sizes<'c>,
        tile: Val<'c>,
    ) -> Result<(), Error> {
        let (zero, one) = (builder.index(0)?, builder.index(1)?);
        let mut conditions = Vec::new();
        let mut relative: Vec<Val> = Vec::new();
        let mut behind = zero;
        let rows = at.iter().zip(threads).zip(&self.rows.heights).zip(&sizes.skews);
        for (((at, thread), height), skew) in rows {
            let start = builder.binary("arith.muli", *at, builder.index(*height)?)?;
            let mut here = builder.add(start, *thread)?;
            if let Some(first) = relative.first() {
                let sheared = builder.index(-self.rows.front.skew.shear)?;
                here = builder.add(here, builder.binary("arith.muli", *first, sheared)?)?;
            }
            let end = self.rows.extents.get(relative.len()).copied();
            let end = end.ok_or_else(|| Error::internal("a tile of another rank"))?;
            conditions.push(builder.compare(Compare::Ge, here, zero)?);
            conditions.push(builder.compare(Compare::Lt, here, self.affine(builder, end)?)?);
            relative.push(here);
            let late = builder.binary("arith.muli", *thread, *skew)?;
            behind = builder.add(behind, late)?;
        }
        let width = builder.index(self.rows.width)?;
        let first = builder.binary("arith.muli", tile, width)?;
        let from = builder.binary("arith.subi", first, behind)?;
        let (mut columns, mut times) = ((zero, sizes.points), width);
        if !self.rows.skewed {
            let end = builder.add(first, width)?;
            columns = (first, builder.binary("arith.minsi", end, sizes.points)?);
            times = builder.index(self.rows.times())?;
        }
        builder.repeat((zero, times, one), |builder, time| {
            let x = builder.add(from, time)?;
            let mut conditions = conditions.clone();
            conditions.push(builder.compare(Compare::Ge, x, columns.0)?);
            conditions.push(builder.compare(Compare::Lt, x, columns.1)?);
            if let Some(inside) = builder.all(&conditions)? {
                let relative = [relative.as_slice(), &[x]].concat();
                builder.when(inside, |builder| self.point(builder, &relative))?;
            }
            builder.op("gpu.barrier", &[], &[], &[]).map(|_| ())
        })
    }

    /// Computes a point, given by its distance from the first.
    fn point(&self, builder: &Builder<'c>, relative: &[Val<'c>]) -> Result<(), Error> {
        let scope = &self.scope;
        let lower = scope.bounds(builder, scope.hull.lower)?;
        let point = relative.iter().zip(lower).map(|(at, first)| builder.add(*at, first));
        let point: Vec<_> = point.collect::<Result<_, _>>()?;
        let mut cells = BTreeMap::new();
        let reads = footprint::of_pieces(scope.program, &self.apply.pieces)?;
        let outputs = self.apply.outputs.iter().map(|(field, _)| *field);
        for field in reads.iter().map(|read| read.field).chain(outputs) {
            cells.insert(field, scope.cell(builder, field, &point)?);
        }
        let load = |builder: &Builder<'c>,
                    buffers: &BTreeMap<&'c str, Val<'c>>,
                    field: &str,
                    distances: &[Distance<'c>]| {
            let missing = || Error::internal(format!("no cells of @{field}"));
            let (buffer, cell) = buffers.get(field).zip(cells.get(field)).ok_or_else(missing)?;
            let at = cell.iter().zip(distances).map(|(start, by)| by.from(builder, *start));
            builder.load(*buffer, &at.collect::<Result<Vec<_>, _>>()?)
        };
        let fetch = |builder: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
            load(builder, &self.sources, field, distances)
        };
        let current = |builder: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
            load(builder, &self.targets, field, distances)
        };
        let at = At {
            point: &point,
            step: self.apply.step,
            rules: Rules::All,
            fetch: &fetch,
            current: Some(&current),
            partial: None,
        };
        let values = scope.new_values(builder, self.apply, &self.apply.pieces, &at)?;
        for ((field, _), value) in self.apply.outputs.iter().zip(values) {
            // A temp field that nobody reads later is not stored.
            let Some(target) = self.targets.get(field).copied() else { continue };
            let cell = cells.get(field).map(Vec::as_slice).unwrap_or_default();
            scope.where_it_lies(builder, field, &point, &[], |builder| {
                builder.store(value, target, cell).map(|()| Vec::new())
            })?;
        }
        Ok(())
    }
}

/// Splits a number into digits, the first of the highest place.
fn split<'c>(builder: &Builder<'c>, number: Val<'c>, sizes: &[i64]) -> Result<Vec<Val<'c>>, Error> {
    let sizes: Vec<_> = sizes.iter().map(|size| builder.index(*size)).collect::<Result<_, _>>()?;
    split_by(builder, number, &sizes)
}

/// Splits a number into digits of sizes that are values.
pub fn split_by<'c>(
    builder: &Builder<'c>,
    number: Val<'c>,
    sizes: &[Val<'c>],
) -> Result<Vec<Val<'c>>, Error> {
    match sizes {
        [] => Ok(Vec::new()),
        [_] => Ok(vec![number]),
        [rest @ .., size] => {
            let above = builder.binary("arith.divsi", number, *size)?;
            let digit = builder.binary("arith.remsi", number, *size)?;
            let mut digits = split_by(builder, above, rest)?;
            digits.push(digit);
            Ok(digits)
        }
    }
}
