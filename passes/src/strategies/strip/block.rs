//! A block of strips: the work of each warp between two barriers.

use super::code::{Strips, Tile};
use super::in_flight::{Before, InFlight};
use super::plan::Warps;
use crate::analysis::lane_addresses;
use crate::kernel::in_flight::TileRow;
use crate::kernel::lanes::WARP;
use crate::kernel::peers::Peers;
use crate::kernel::tile_place;
use melior::Context;
use melior::ir::r#type::MemRefType;
use melior::ir::{Attribute, ShapedTypeLike, ValueLike};
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

/// The code of a block.
#[derive(Clone)]
pub struct Block<'c, 'p> {
    /// The strips.
    pub strips: Strips<'c, 'p>,
    /// The roles of the warps.
    pub warps: Warps,
    /// The flags.
    pub peers: Peers<'c>,
    /// The role of the thread's warp.
    pub role: Val<'c>,
    /// The thread.
    pub thread: Val<'c>,
    /// Tiles of a strip.
    pub tiles: Val<'c>,
    /// Tiles from the first one of the first strip to the last one of the last; one more where the
    /// launch has several sweeps.
    pub all: Val<'c>,
    /// The flag of the sweep's first tile row, where the launch has several sweeps.
    pub first: Option<Val<'c>>,
}

/// Tiles by which loading is ahead of computing.
pub const AHEAD: i64 = 1;
/// Tiles by which storing and signalling are behind computing.
pub const BEHIND: i64 = 1;

impl<'c> Block<'c, '_> {
    /// The code of all tile rows that a block takes.
    pub fn code(
        &self,
        builder: &Builder<'c>,
        (rows, blocks): (Val<'c>, i64),
        in_flight: Option<&InFlight>,
    ) -> Result<(), Error> {
        self.clear(builder)?;
        let block = tile_place::number(builder, "gpu.block_id", "x")?;
        let thread = (self.thread, self.warps.all() * WARP);
        let apart = [("llvm.loop_annotation", apart(builder.context)?)];
        let Some(in_flight) = in_flight else {
            self.strips.copy_frozen(builder, (block, blocks), thread)?;
            let bounds = (block, rows, builder.index(blocks)?);
            let turns = |builder: &Builder<'c>, row, _: &[Val<'c>]| {
                self.turns(builder, row, None).map(|()| Vec::new())
            };
            return builder.carry_with(bounds, &[], &apart, turns).map(|_| ());
        };
        // The other sweeps wait for the first tile row, whose block copies for all.
        let zero = builder.index(0)?;
        let leads = builder.compare(Compare::Eq, block, zero)?;
        let copy = |builder: &Builder<'c>| self.strips.copy_frozen(builder, (zero, 1), thread);
        builder.when(leads, copy)?;
        let numbers = builder.multiply_constant(rows, in_flight.sweeps)?;
        let bounds = (block, numbers, builder.index(blocks)?);
        let turns = |builder: &Builder<'c>, number, _: &[Val<'c>]| {
            let tile_row = TileRow::of(builder, number, rows)?;
            let strips = self.strips.of_sweep(builder, tile_row.sweep)?;
            let block = Block { strips, first: Some(tile_row.first), ..self.clone() };
            let before = Before { tile_row, rows, in_flight };
            block.turns(builder, tile_row.row, Some(&before)).map(|()| Vec::new())
        };
        builder.carry_with(bounds, &[], &apart, turns).map(|_| ())
    }

    /// The turns of a tile row, of which each begins with a barrier.
    fn turns(
        &self,
        builder: &Builder<'c>,
        tile_row: Val<'c>,
        before: Option<&Before<'c, '_>>,
    ) -> Result<(), Error> {
        let (zero, one) = (builder.index(0)?, builder.index(1)?);
        let apart = [("llvm.loop_annotation", apart(builder.context)?)];
        let initial = self.strips.initial(builder)?;
        let turns = builder.add_constant(self.all, AHEAD + BEHIND)?;
        // The first turn loads already.
        if let Some(before) = before {
            let waits = self.is_role(builder, self.warps.before())?;
            builder.when(waits, |builder| self.wait_before(builder, before, zero))?;
        }
        let turn = |builder: &Builder<'c>, turn, carried: &[Val<'c>]| {
            builder.op("gpu.barrier", &[], &[], &[])?;
            let now = builder.add_constant(turn, -AHEAD)?;
            self.turn(builder, (tile_row, now), carried, before)
        };
        let carried = builder.carry_with((zero, turns, one), &initial, &apart, turn)?;
        let computes = self.is_before(builder, self.warps.strips)?;
        builder.when(computes, |builder| {
            let tile = self.tile(builder, (tile_row, zero), self.role)?;
            self.strips.store_row_values(builder, tile.tile, &carried)
        })
    }

    /// The work of each warp between two barriers. Each role has a branch of its own, so that no
    /// computing warp tests or waits for the others' conditions.
    fn turn(
        &self,
        builder: &Builder<'c>,
        (tile_row, now): (Val<'c>, Val<'c>),
        carried: &[Val<'c>],
        before: Option<&Before<'c, '_>>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let warps = &self.warps;
        let types = self.strips.carried()?;
        builder.choose(
            self.is_before(builder, warps.strips)?,
            &types,
            |builder| {
                let tile = self.tile(builder, (tile_row, now), self.role)?;
                builder.choose(
                    self.exists(builder, tile)?,
                    &types,
                    |builder| self.strips.tile(builder, tile.tile, carried),
                    |_| Ok(carried.to_vec()),
                )
            },
            |builder| {
                self.others(builder, (tile_row, now), before)?;
                Ok(carried.to_vec())
            },
        )
    }

    /// The work of the warps that compute no strip.
    fn others(
        &self,
        builder: &Builder<'c>,
        (tile_row, now): (Val<'c>, Val<'c>),
        before: Option<&Before<'c, '_>>,
    ) -> Result<(), Error> {
        let warps = &self.warps;
        let soon = builder.add_constant(now, AHEAD)?;
        self.either(
            builder,
            warps.loading(),
            |builder| {
                let strip = builder.add_constant(self.role, -warps.strips)?;
                let before = builder.add_constant(now, -BEHIND)?;
                let tile = self.tile(builder, (tile_row, before), strip)?;
                let stores = self.exists(builder, tile)?;
                builder.when(stores, |builder| self.strips.store(builder, tile.tile))
            },
            |builder| {
                self.either(
                    builder,
                    warps.above(),
                    |builder| self.load(builder, (tile_row, soon)),
                    |builder| {
                        if self.strips.geometry.above == 0 {
                            return Ok(());
                        }
                        self.either(
                            builder,
                            warps.below(),
                            |builder| self.wait_above(builder, (tile_row, soon)),
                            |builder| self.last(builder, (tile_row, now), before),
                        )
                    },
                )
            },
        )
    }

    /// The work of the last warps: one signals, and one waits for the sweep before.
    fn last(
        &self,
        builder: &Builder<'c>,
        (tile_row, now): (Val<'c>, Val<'c>),
        before: Option<&Before<'c, '_>>,
    ) -> Result<(), Error> {
        let signals = self.is_before(builder, self.warps.below() + 1)?;
        builder.when(signals, |builder| self.signal_below(builder, (tile_row, now)))?;
        let Some(before) = before else { return Ok(()) };
        let waits = self.is_role(builder, self.warps.before())?;
        builder.when(waits, |builder| {
            // What the next turn loads.
            let next = builder.add_constant(now, AHEAD + 1)?;
            self.wait_before(builder, before, next)
        })
    }

    /// One warp or several load what a tile of a strip reads.
    fn load(
        &self,
        builder: &Builder<'c>,
        (tile_row, soon): (Val<'c>, Val<'c>),
    ) -> Result<(), Error> {
        if self.warps.loaders == 0 {
            return Ok(());
        }
        let warp = builder.add_constant(self.role, -self.warps.loading())?;
        let loaders = builder.index(self.warps.loaders)?;
        let strip = builder.binary("arith.divsi", warp, loaders)?;
        let part = builder.binary("arith.remsi", warp, loaders)?;
        let part = (part, self.warps.loaders);
        let tile = self.tile(builder, (tile_row, soon), strip)?;
        let exists = self.exists(builder, tile)?;
        let sequences =
            |builder: &Builder<'c>| self.strips.load_sequences(builder, tile.tile, part);
        builder.when(exists, sequences)?;
        let (old, loads) = match self.loads_early() {
            true => self.early(builder, (tile_row, soon), strip, tile.number)?,
            false => (tile, exists),
        };
        builder.when(loads, |builder| self.strips.load(builder, old.tile, part))
    }

    /// The tile whose old values are loaded where a strip's tile of some number is loaded, and
    /// whether there is one: the first tile a turn early but in the first strip.
    fn early(
        &self,
        builder: &Builder<'c>,
        (tile_row, soon): (Val<'c>, Val<'c>),
        strip: Val<'c>,
        number: Val<'c>,
    ) -> Result<(Numbered<'c>, Val<'c>), Error> {
        let zero = builder.index(0)?;
        let below = builder.compare(Compare::Gt, strip, zero)?;
        let begins = builder.compare(Compare::Eq, number, builder.index(-1)?)?;
        let begins = builder.both(below, begins)?;
        let when = builder.select(begins, builder.add_constant(soon, 1)?, soon)?;
        let old = self.tile(builder, (tile_row, when), strip)?;
        let loaded = builder.both(below, builder.compare(Compare::Eq, number, zero)?)?;
        let no = builder.constant(builder.integer_type(1), 0)?;
        let loads = builder.select(loaded, no, self.exists(builder, old)?)?;
        Ok((old, loads))
    }

    /// Whether strips below the first load the old values of their first tile a turn early: most of
    /// that tile lies at a rim, and its loads take longer than a turn. The buffers are free then.
    /// Several sweeps of a launch wait for each other without that turn (`in_flight.rs`).
    fn loads_early(&self) -> bool {
        self.first.is_none() && self.strips.geometry.above > 0 && !self.strips.old.is_empty()
    }

    /// One warp waits for the block above and loads that block's values for a tile of the first
    /// strip. Each lane waits itself, so each lane may load. Rows before the first strip are there
    /// from the start.
    fn wait_above(
        &self,
        builder: &Builder<'c>,
        (tile_row, soon): (Val<'c>, Val<'c>),
    ) -> Result<(), Error> {
        let geometry = &self.strips.geometry;
        let zero = builder.index(0)?;
        let tile = self.tile(builder, (tile_row, soon), zero)?;
        let has_above = builder.compare(Compare::Gt, tile_row, zero)?;
        let exists = self.exists(builder, tile)?;
        let load = |builder: &Builder<'c>| {
            let done = builder.add_constant(soon, geometry.last_strip() + geometry.behind())?;
            let above = builder.add_constant(tile_row, -1)?;
            self.peers.wait(builder, self.flag(builder, above)?, done)?;
            self.strips.load_above(builder, tile.tile)
        };
        if self.strips.frozen == 0 {
            return builder.when(builder.both(exists, has_above)?, load);
        }
        builder.when(exists, |builder| {
            let none = |()| Vec::new();
            let load = |builder: &Builder<'c>| load(builder).map(none);
            let first =
                |builder: &Builder<'c>| self.strips.load_frozen(builder, tile.tile).map(none);
            builder.choose(has_above, &[], load, first).map(drop)
        })
    }

    /// One thread hands the last strip's last rows to the block below, and tells it of how many
    /// tiles it has them.
    fn signal_below(
        &self,
        builder: &Builder<'c>,
        (tile_row, now): (Val<'c>, Val<'c>),
    ) -> Result<(), Error> {
        let first = builder.compare(Compare::Eq, self.strips.lane, builder.index(0)?)?;
        let some = builder.compare(Compare::Gt, now, builder.index(0)?)?;
        builder.when(builder.both(first, some)?, |builder| {
            let last = builder.index(self.warps.strips - 1)?;
            let before = builder.add_constant(now, -BEHIND)?;
            let tile = self.tile(builder, (tile_row, before), last)?;
            let handed = self.exists(builder, tile)?;
            builder.when(handed, |builder| self.strips.hand_below(builder, tile.tile))?;
            let flag = self.flag(builder, tile_row)?;
            self.peers.signal(builder, flag, builder.add_constant(now, 1 - BEHIND)?)
        })
    }

    /// The number of a tile row's flag.
    fn flag(&self, builder: &Builder<'c>, tile_row: Val<'c>) -> Result<Val<'c>, Error> {
        self.first.map_or(Ok(tile_row), |first| builder.add(first, tile_row))
    }

    /// One branch for the roles before a number, another for the rest.
    fn either(
        &self,
        builder: &Builder<'c>,
        end: i64,
        before: impl FnOnce(&Builder<'c>) -> Result<(), Error>,
        from: impl FnOnce(&Builder<'c>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let none = |()| Vec::new();
        let before = |builder: &Builder<'c>| before(builder).map(none);
        let from = |builder: &Builder<'c>| from(builder).map(none);
        builder.choose(self.is_before(builder, end)?, &[], before, from).map(|_| ())
    }

    /// Whether the role's number is less than `end`.
    fn is_before(&self, builder: &Builder<'c>, end: i64) -> Result<Val<'c>, Error> {
        builder.compare(Compare::Lt, self.role, builder.index(end)?)
    }

    /// Whether the role has this number.
    fn is_role(&self, builder: &Builder<'c>, role: i64) -> Result<Val<'c>, Error> {
        builder.compare(Compare::Eq, self.role, builder.index(role)?)
    }

    /// Whether a strip has a tile of this number.
    fn exists(&self, builder: &Builder<'c>, tile: Numbered<'c>) -> Result<Val<'c>, Error> {
        builder.within(tile.number, (builder.index(0)?, self.tiles))
    }

    /// The tile of a strip beside a tile of the first strip.
    fn tile(
        &self,
        builder: &Builder<'c>,
        (tile_row, now): (Val<'c>, Val<'c>),
        strip: Val<'c>,
    ) -> Result<Numbered<'c>, Error> {
        let geometry = &self.strips.geometry;
        let behind = builder.multiply_constant(strip, geometry.behind())?;
        let number = builder.binary("arith.subi", now, behind)?;
        let first = builder.add(
            builder.multiply_constant(tile_row, geometry.block())?,
            builder.multiply_constant(strip, geometry.strip())?,
        )?;
        let first = builder.add_constant(first, self.strips.frozen)?;
        let half = builder.binary("arith.andi", now, builder.index(1)?)?;
        let first_time = -geometry.early_tiles() * geometry.width;
        let time = builder.multiply_constant(number, geometry.width)?;
        let time = builder.add_constant(time, first_time)?;
        Ok(Numbered { number, tile: Tile { strip, row: first, time, half } })
    }

    /// Zeros in the rings of strips where the first one has no rows above. Zeros in the old values
    /// of rims, because only those outside the main piece are loaded.
    fn clear(&self, builder: &Builder<'c>) -> Result<(), Error> {
        let strips = &self.strips;
        let rims = strips.old.iter().filter(|(old, _)| old.only_rims).map(|(_, buffer)| *buffer);
        let of_strips = |extents: Vec<i64>| match extents.as_slice() {
            [_, rest @ ..] => [&[self.warps.strips], rest].concat(),
            [] => extents,
        };
        let extents = |buffer: &Val<'c>| lane_addresses::extents(*buffer);
        let cleared = strips.rings.iter().filter(|_| strips.frozen == 0);
        let rings = cleared.map(|ring| (*ring, of_strips(extents(ring))));
        for (buffer, extents) in rings.chain(rims.map(|rim| (rim, extents(&rim)))) {
            let ty = MemRefType::try_from(buffer.r#type());
            let ty = ty.map_err(|error| Error::internal(error.to_string()))?;
            let zero = builder.zero(ty.element())?;
            let cells = builder.index(extents.iter().product())?;
            let bounds = (self.thread, cells, builder.index(self.warps.all() * WARP)?);
            builder.repeat(bounds, |builder, cell| {
                let (mut place, mut rest) = (Vec::new(), cell);
                for extent in extents.iter().rev() {
                    let extent = builder.index(*extent)?;
                    place.push(builder.binary("arith.remsi", rest, extent)?);
                    rest = builder.binary("arith.divsi", rest, extent)?;
                }
                place.reverse();
                builder.store(zero, buffer, &place)
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

/// The annotation of a loop out of which LLVM moves no values. All warps of a block have the same
/// number of registers, so a value moved out of one role's branch would cost every role a register.
fn apart(context: &Context) -> Result<Attribute<'_>, Error> {
    Attribute::parse(context, "#llvm.loop_annotation<licm = <disable = true>>")
        .ok_or_else(|| Error::internal("the llvm dialect is not loaded"))
}
