//! Several sweeps of a launch: how far the tile rows of the sweep before must be for a tile.
//!
//! A flag counts turns (`block.rs`):
//!
//! | what | by flag `n` it is done up to |
//! |---|---|
//! | stores of strip `j` | its tile `n - 2 - j * behind` |
//! | rows handed to the block below | the last strip's tile `n - 1 - (strips - 1) * behind` |
//! | loads of strip `j` | its tile `n - 2 + AHEAD + BEHIND - j * behind` |
//!
//! While the first strip loads tile `m`, strip `j` loads its tile `m - j * behind`. Each cell that
//! it loads must be stored by the sweep before, and each cell that it will store must be loaded for
//! the last time. Both give a number of turns by which a flag must be ahead of `m`, and the largest
//! over all cells is taken.

use super::block::{AHEAD, BEHIND, Block};
use super::code::Strips;
use super::geometry::Geometry;
use super::old_values::OldValues;
use super::plan::Plan;
use crate::analysis::between_sweeps;
use crate::analysis::wavefront::ceil_div;
use crate::kernel::in_flight::{OfSweep, TileRow};
use crate::kernel::lanes::WARP;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::Apply;
use stencil_runtime::model::wavefront::Behind;

/// The sweeps of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// How many.
    pub sweeps: i64,
    /// Turns by which the tile rows above, beside and below must be ahead in the sweep before.
    pub ahead: [i64; 3],
}

/// Tiles for which a block has waited by the time that it stores one, beyond that one: a tile is
/// waited for in the turn before it is loaded, and stored behind the turn that computes it.
const BEFORE_STORES: i64 = AHEAD + BEHIND;

/// A tile row whose block waits for the sweep before.
pub struct Before<'c, 'f> {
    pub tile_row: TileRow<'c>,
    /// Tile rows of a sweep.
    pub rows: Val<'c>,
    pub in_flight: &'f InFlight,
}

/// A row of a block: its strip, its lane, and its row of the lane. The lane may belong to the strip
/// before or behind.
#[derive(Clone, Copy)]
struct Row {
    strip: i64,
    lane: i64,
    row: i64,
}

impl InFlight {
    /// The sweeps of a kernel.
    ///
    /// # Errors
    /// A decline: functions of which a sweep needs the one before whole.
    pub fn of(program: &Program, apply: &Apply, plan: &Plan, sweeps: i64) -> Result<Self, Error> {
        let updates: Vec<_> = apply.outputs.iter().map(|(field, _)| *field).collect();
        between_sweeps::distances(program, &apply.pieces, &updates)?;
        let updated = |old: &&OldValues| updates.contains(&old.field);
        let reaches = plan.old.iter().filter(updated).map(Reach::of).collect::<Vec<_>>();
        Ok(Self { sweeps, ahead: ahead(&plan.geometry, &reaches) })
    }

    /// The same for the model. A flag counts turns that are done, and is waited for a turn before
    /// the tile is loaded.
    pub fn behind(&self) -> Vec<Behind> {
        let steps = [-1, 0, 1].into_iter().zip(self.ahead);
        let behind = steps.map(|(step, ahead)| Behind { step: vec![step], lag: ahead + 3 });
        behind.collect()
    }
}

/// The old values that a tile loads.
#[derive(Clone, Copy)]
struct Reach {
    /// Lanes above a strip and below it.
    lanes: [i64; 2],
    /// Columns before a row's first, and all of them.
    before: i64,
    columns: i64,
}

impl Reach {
    fn of(old: &OldValues) -> Self {
        Self { lanes: old.lanes, before: old.before, columns: old.columns }
    }
}

/// Turns by which the tile rows above, beside and below must be ahead.
fn ahead(geometry: &Geometry, reaches: &[Reach]) -> [i64; 3] {
    let width = geometry.width;
    // In place of old values, only the points themselves: a sweep is behind the one before.
    let here = [Reach { lanes: [0, 0], before: 0, columns: width }];
    // At the ends of rows, cells inside stand for those outside until the last tile is loaded.
    let mut found = [
        i64::MIN,
        geometry.last_strip() + geometry.late_tiles() - BEFORE_STORES,
        geometry.late_tiles() - geometry.last_strip() - BEFORE_STORES,
    ];
    let mut need = |place: i64, turns: i64| {
        if let Some(most) = usize::try_from(place).ok().and_then(|place| found.get_mut(place)) {
            *most = turns.max(*most);
        }
    };
    for reach in reaches.iter().chain(&here) {
        let lanes = -reach.lanes[0]..WARP + reach.lanes[1];
        for strip in 0..geometry.strips {
            for (lane, row) in
                lanes.clone().flat_map(|lane| (0..geometry.rows).map(move |row| (lane, row)))
            {
                let loaded = Row { strip, lane, row };
                let (place, stored) = loaded.owner(geometry);
                need(place, loaded.turns_to_load(geometry, reach, stored));
                if place == 0 {
                    // In the first tile row, the first row stands for those above.
                    let first = Row { strip: 0, lane: 0, row: 0 };
                    need(1, loaded.turns_to_load(geometry, reach, first));
                }
                // The cell is stored by its owner; the strip here must have loaded it before. The
                // owner's tile row counts the other way round.
                need(2 - place, loaded.turns_to_store(geometry, reach, stored));
            }
        }
        // Rows beyond the grid load its last row, at their own columns.
        let last = Row {
            strip: geometry.strips - 1,
            lane: WARP - 1 + reach.lanes[1],
            row: geometry.rows - 1,
        };
        let first = Row { strip: 0, lane: 0, row: 0 };
        need(1, last.turns_to_store(geometry, reach, first));
    }
    // Nothing at all of the tile row above: its flag is not late from the start.
    found.map(|turns| turns.max(-geometry.last_strip() - 1))
}

impl Row {
    /// The strip that computes a row of a lane that may lie outside of its strip, and whether that
    /// is in the tile row above (0), in the same (1) or below (2).
    fn owner(self, geometry: &Geometry) -> (i64, Self) {
        let strip = self.strip + self.lane.div_euclid(WARP);
        let place = 1 + strip.div_euclid(geometry.strips);
        let strip = strip.rem_euclid(geometry.strips);
        (place, Self { strip, lane: self.lane.rem_euclid(WARP), row: self.row })
    }

    /// Its first column in tile 0 of its strip.
    fn column(self, geometry: &Geometry) -> i64 {
        let first = -geometry.early_tiles() * geometry.width;
        first - geometry.lag * self.lane - geometry.skew * self.row
    }

    /// Turns by which the strip behind the first of a block is late.
    fn late(self, geometry: &Geometry) -> i64 {
        self.strip * geometry.behind()
    }

    /// Turns by which the flag of a tile row must be ahead so that one of its rows is stored up to
    /// the last column that is loaded of it here.
    fn turns_to_load(self, geometry: &Geometry, reach: &Reach, stored: Self) -> i64 {
        let width = geometry.width;
        let last = self.column(geometry) + reach.columns - 1;
        // Whole tiles of columns are stored: up to this column in tile 0.
        let up_to = stored.column(geometry).div_euclid(width) * width + width - 1;
        let tiles = ceil_div(last - up_to, width);
        let between = stored.late(geometry) - self.late(geometry);
        let mut turns = tiles + 2 + between;
        // Cells before the first column are loaded from it, from the first tile on.
        let first = ceil_div(-up_to, width);
        turns = turns.max(first + 2 + between);
        let hands = stored.strip == geometry.strips - 1 && stored.lane == WARP - 1;
        let from_last = geometry.rows - stored.row;
        if hands && from_last <= geometry.above {
            let first = -geometry.early_tiles() * width - 1 - geometry.handover();
            let up_to = first + geometry.column_above(from_last) + width - 1;
            let tiles = ceil_div(last.max(0) - up_to, width);
            turns = turns.max(tiles + 1 + geometry.last_strip() - self.late(geometry));
        }
        turns
    }

    /// Turns by which the flag of the tile row that loads a row here must be ahead so that the tile
    /// row that stores it may store: all loads behind begin with later columns.
    fn turns_to_store(self, geometry: &Geometry, reach: &Reach, stored: Self) -> i64 {
        let width = geometry.width;
        let last = stored.column(geometry) + width - 1;
        let begins = self.column(geometry) - reach.before;
        let tiles = (last - begins).div_euclid(width) + 1;
        let loaded = tiles + 1 - AHEAD - BEHIND + self.late(geometry) - stored.late(geometry);
        loaded - BEFORE_STORES
    }
}

impl<'c> Strips<'c, '_> {
    /// The strips of a sweep, from those of the first.
    pub fn of_sweep(&self, builder: &Builder<'c>, sweep: Val<'c>) -> Result<Self, Error> {
        let buffers = (&self.scope, &self.sources, &self.targets);
        let OfSweep { scope, sources, targets } = OfSweep::of(builder, sweep, buffers)?;
        Ok(Self { scope, sources, targets, ..self.clone() })
    }
}

impl<'c> Block<'c, '_> {
    /// One warp waits until the sweep before has stored what all warps load beside a tile of the
    /// first strip, and has loaded what this sweep stores: a lane for each of the tile rows above,
    /// beside and below. The others go on behind the next barrier.
    pub fn wait_before(
        &self,
        builder: &Builder<'c>,
        before: &Before<'c, '_>,
        tile: Val<'c>,
    ) -> Result<(), Error> {
        let Before { tile_row, rows, in_flight } = before;
        let (zero, lane) = (builder.index(0)?, self.strips.lane);
        let row = builder.add(tile_row.row, builder.add_constant(lane, -1)?)?;
        let [above, beside, below] = in_flight.ahead;
        let mut ahead = builder.index(below)?;
        for (place, turns) in [(1, beside), (0, above)] {
            let here = builder.compare(Compare::Eq, lane, builder.index(place)?)?;
            ahead = builder.select(here, builder.index(turns)?, ahead)?;
        }
        let conditions = [
            builder.compare(Compare::Gt, tile_row.sweep, zero)?,
            builder.compare(Compare::Lt, lane, builder.index(3)?)?,
            builder.within(row, (zero, *rows))?,
        ];
        let Some(all) = builder.all(&conditions)? else { return Ok(()) };
        builder.when(all, |builder| {
            let first = builder.binary("arith.subi", tile_row.first, *rows)?;
            let done = builder.binary("arith.maxsi", builder.add(tile, ahead)?, zero)?;
            self.peers.wait(builder, builder.add(first, row)?, done)
        })
    }
}
