//! A block of strips: what each warp does beside a tile, between two barriers.

use super::code::{Strips, Tile};
use super::plan::Warps;
use super::windows;
use crate::kernel::lanes::WARP;
use crate::kernel::peers::Peers;
use crate::kernel::resident;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

/// The code of a block.
pub struct Block<'c, 'p> {
    /// The strips.
    pub strips: Strips<'c, 'p>,
    /// The roles of the warps.
    pub warps: Warps,
    /// The flags.
    pub peers: Peers<'c>,
    /// The thread's warp.
    pub warp: Val<'c>,
    /// The thread.
    pub thread: Val<'c>,
    /// Tiles of a strip.
    pub tiles: Val<'c>,
    /// Tiles from the first one of the first strip to the last one of the last.
    pub all: Val<'c>,
}

/// Tiles by which waiting for a row is ahead of computing.
const AHEAD: i64 = 2;
/// Tiles by which signalling is behind computing.
const BEHIND: i64 = 2;

impl<'c> Block<'c, '_> {
    /// All rows of a block.
    pub fn code(&self, builder: &Builder<'c>, (rows, blocks): (Val<'c>, i64)) -> Result<(), Error> {
        let (zero, one) = (builder.index(0)?, builder.index(1)?);
        self.clear(builder)?;
        let block = resident::axis(builder, "gpu.block_id")?;
        builder.repeat((block, rows, builder.index(blocks)?), |builder, row| {
            let initial = windows::zeros(&self.strips.windows, builder)?;
            let turns = builder.add_constant(self.all, AHEAD + BEHIND)?;
            builder
                .carry((zero, turns, one), &initial, |builder, turn, carried| {
                    builder.op("gpu.barrier", &[], &[], &[])?;
                    let now = builder.add_constant(turn, -AHEAD)?;
                    self.turn(builder, (row, now), carried)
                })
                .map(|_| ())
        })
    }

    /// The work of each warp between two barriers.
    fn turn(
        &self,
        builder: &Builder<'c>,
        (row, now): (Val<'c>, Val<'c>),
        carried: &[Val<'c>],
    ) -> Result<Vec<Val<'c>>, Error> {
        let strips = self.warps.strips;
        let types = windows::types(&self.strips.windows);
        let zero = builder.index(0)?;
        let tile = self.tile(builder, (row, now), self.warp)?;
        let computes = self.is(builder, (0, strips), tile)?;
        let next = builder.choose(
            computes,
            &types,
            |builder| self.strips.tile(builder, tile.tile, carried),
            |_| Ok(carried.to_vec()),
        )?;

        let strip = builder.add_constant(self.warp, -strips)?;
        let tile = self.tile(builder, (row, builder.add_constant(now, -1)?), strip)?;
        let stores = self.is(builder, (strips, 2 * strips), tile)?;
        builder.when(stores, |builder| self.strips.store(builder, tile.tile))?;

        let soon = builder.add_constant(now, 1)?;
        if self.warps.loaders > 0 {
            let (first, end) = (self.warps.loading(), self.warps.messengers());
            let warp = builder.add_constant(self.warp, -first)?;
            let loaders = builder.index(self.warps.loaders)?;
            let strip = builder.binary("arith.divsi", warp, loaders)?;
            let part = builder.binary("arith.remsi", warp, loaders)?;
            let tile = self.tile(builder, (row, soon), strip)?;
            let loads = self.is(builder, (first, end), tile)?;
            let part = (part, self.warps.loaders);
            builder.when(loads, |builder| self.strips.load(builder, tile.tile, part))?;
        }
        if self.strips.geometry.above > 0 {
            let tile = self.tile(builder, (row, soon), zero)?;
            self.messages(builder, (row, now), tile)?;
        }
        Ok(next)
    }

    /// The three warps that look after the blocks above and below.
    fn messages(
        &self,
        builder: &Builder<'c>,
        (row, now): (Val<'c>, Val<'c>),
        soon: Numbered<'c>,
    ) -> Result<(), Error> {
        let first = self.warps.messengers();
        let zero = builder.index(0)?;
        let below = builder.compare(Compare::Gt, row, zero)?;
        let loads = self.is(builder, (first, first + 1), soon)?;
        let Some(loads) = builder.all(&[loads, below])? else { return Ok(()) };
        builder.when(loads, |builder| self.strips.load_above(builder, soon.tile))?;

        let thread =
            |number: i64| builder.compare(Compare::Eq, self.thread, builder.index(number * WARP)?);
        let tile = builder.add_constant(now, AHEAD)?;
        let there = builder.compare(Compare::Lt, tile, self.tiles)?;
        if let Some(waits) = builder.all(&[thread(first + 1)?, below, there])? {
            builder.when(waits, |builder| {
                let geometry = &self.strips.geometry;
                let last = geometry.behind() * (geometry.strips - 1);
                let done = builder.add_constant(tile, last + geometry.stored())?;
                self.peers.wait(builder, builder.add_constant(row, -1)?, done)
            })?;
        }
        let done = builder.add_constant(now, 1 - BEHIND)?;
        let some = builder.compare(Compare::Gt, done, zero)?;
        if let Some(signals) = builder.all(&[thread(first + 2)?, some])? {
            builder.when(signals, |builder| self.peers.signal(builder, row, done))?;
        }
        Ok(())
    }

    /// The tile of a strip beside a tile of the first strip.
    fn tile(
        &self,
        builder: &Builder<'c>,
        (row, now): (Val<'c>, Val<'c>),
        strip: Val<'c>,
    ) -> Result<Numbered<'c>, Error> {
        let geometry = &self.strips.geometry;
        let times = |value, by: i64| builder.binary("arith.muli", value, builder.index(by)?);
        let number = builder.binary("arith.subi", now, times(strip, geometry.behind())?)?;
        let first = builder.add(times(row, geometry.block())?, times(strip, geometry.strip())?)?;
        let half = builder.binary("arith.andi", now, builder.index(1)?)?;
        let first_time = -geometry.early_tiles() * geometry.width;
        let time = builder.add_constant(times(number, geometry.width)?, first_time)?;
        Ok(Numbered { number, tile: Tile { strip, row: first, time, half } })
    }

    /// Whether the warp is one of some warps, and the tile is there.
    fn is(
        &self,
        builder: &Builder<'c>,
        (first, end): (i64, i64),
        tile: Numbered<'c>,
    ) -> Result<Val<'c>, Error> {
        let conditions = [
            builder.compare(Compare::Ge, self.warp, builder.index(first)?)?,
            builder.compare(Compare::Lt, self.warp, builder.index(end)?)?,
            builder.compare(Compare::Ge, tile.number, builder.index(0)?)?,
            builder.compare(Compare::Lt, tile.number, self.tiles)?,
        ];
        let all = builder.all(&conditions)?;
        all.ok_or_else(|| Error::internal("no condition for a warp"))
    }

    /// Zeros in the rings: the first rows of a grid have no rows above.
    fn clear(&self, builder: &Builder<'c>) -> Result<(), Error> {
        let geometry = &self.strips.geometry;
        let ring = builder.index(geometry.ring())?;
        for (window, buffer) in self.strips.windows.iter().zip(&self.strips.rings) {
            let rows = builder.index(window.above().max(1))?;
            let cells = geometry.strips * window.above().max(1) * geometry.ring();
            let bounds =
                (self.thread, builder.index(cells)?, builder.index(self.warps.all() * WARP)?);
            let zero = builder.zero(window.element)?;
            builder.repeat(bounds, |builder, cell| {
                let slot = builder.binary("arith.remsi", cell, ring)?;
                let row = builder.binary("arith.divsi", cell, ring)?;
                let strip = builder.binary("arith.divsi", row, rows)?;
                let row = builder.binary("arith.remsi", row, rows)?;
                builder.store(zero, *buffer, &[strip, row, slot])
            })?;
        }
        Ok(())
    }
}

/// A tile with its number in its strip.
#[derive(Clone, Copy)]
struct Numbered<'c> {
    number: Val<'c>,
    tile: Tile<'c>,
}
