//! Tiles, cells per thread and pyramid heights of the strategy `patch`, where none are asked for.
//!
//! More steps per launch mean fewer launches, but a larger halo; more rows of a lane mean fewer
//! rows handed over, but fewer warps. The choice here is arithmetic on the clocks of a
//! multiprocessor ([`Search::clocks`]); `choose-schedule` predicts the best of some pyramid heights
//! by the model of all strategies.

use super::layout::lane_registers;
use crate::analysis::footprint;
use crate::analysis::index_width::constant_extents;
use crate::analysis::reductions;
use crate::kernel::lanes::{self, WARP};
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::Candidates;
use crate::subject::Subject;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::{Apply, Program};
use stencil_dialects::tiled::{Halo, Schedule};
use stencil_runtime::device::Device;
use stencil_runtime::model;

/// Columns of a lane that are tried.
const WIDTHS: [i64; 3] = [2, 4, 8];

/// The most rows of a lane that are tried.
const MOST_ROWS: i64 = 12;

/// Pyramid heights up to each of which the best is a candidate.
const HEIGHTS: [i64; 5] = [4, 8, 12, 16, 24];

/// Threads of a block: with fewer, a multiprocessor waits at every barrier.
const FEWEST_THREADS: i64 = 256;

/// Clocks of a step in which a block computes nothing: barrier, rows from shared memory, columns by
/// shuffles, and the last sums.
const STEP: f64 = 150.0;

/// Points per dimension where the grid's are not known at compile time.
const LARGE: i64 = 1 << 14;

/// Instructions in whose time a multiprocessor computes a division, a root or a function.
const LONG: f64 = 8.0;

/// A schedule of the strategy.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Cells of a tile.
    pub tile: Vec<i64>,
    /// Rows and columns of a lane.
    pub per_thread: Vec<i64>,
    /// Steps per launch.
    pub steps: i64,
}

/// What a search knows of a program.
struct Search<'d> {
    device: &'d Device,
    /// Rows and columns of the grid.
    extents: [i64; 2],
    /// The cells that a step reads beside those that it computes.
    reach: Halo,
    /// Registers of a cell of all fields that a lane holds.
    words: i64,
    /// Registers of a cell of the fields that an apply updates, the most.
    new_words: i64,
    /// Registers of the widest cell.
    widest: i64,
    /// Issue slots of the scheduler that a cell takes in a step.
    instructions: f64,
    /// Whether a launch takes one step alone.
    single: bool,
}

/// A block of lanes with so many rows and columns each.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Block {
    rows: i64,
    width: i64,
    parts: i64,
}

impl<'d> Search<'d> {
    fn of<'c>(
        subject: &Subject<'c, 'd>,
        applies: &[&Apply<'c>],
        extents: Option<[i64; 2]>,
    ) -> Result<Self, Error> {
        let program = subject.program;
        let mut search = Self {
            device: subject.device,
            extents: extents.unwrap_or([LARGE; 2]),
            reach: Halo::none(2),
            words: 0,
            new_words: 0,
            widest: 1,
            instructions: 0.0,
            single: !reductions::of(program)?.each_step.is_empty(),
        };
        let mut held = BTreeSet::new();
        for apply in applies {
            let mut reach = Halo::none(2);
            for read in footprint::of_pieces(program, &apply.pieces)? {
                held.insert(read.field);
                if read.reach.lower.len() == 2 {
                    reach = reach.hull(&read.reach);
                }
            }
            held.extend(apply.updates.iter().copied());
            search.reach = search.reach.reaching(&reach);
            let words = apply.updates.iter().map(|field| words(program, field));
            search.new_words = search.new_words.max(words.sum::<Result<i64, Error>>()?);
            search.instructions += instructions(program, apply)?;
        }
        for field in held {
            let words = words(program, field)?;
            search.words += words;
            search.widest = search.widest.max(words);
        }
        Ok(search)
    }

    /// The halo of some steps.
    fn halo(&self, steps: i64) -> Halo {
        let scaled = |cells: &[i64]| cells.iter().map(|cells| cells * steps).collect();
        Halo { lower: scaled(&self.reach.lower), upper: scaled(&self.reach.upper) }
    }

    /// Registers of a thread by the estimate of the lowering, where one apply makes a step.
    fn registers(&self, block: Block) -> i64 {
        let held = self.words * block.rows * block.width;
        let cells = (held, self.widest, self.new_words);
        lane_registers((block.rows, block.width), cells, &self.reach)
    }

    /// The best tile for lanes of some rows and columns, and its clocks a step.
    fn tile(&self, rows: i64, width: i64, steps: i64, halo: &Halo) -> Option<(f64, Vec<i64>)> {
        let ([north, west], [south, east]) = (halo.lower.as_slice(), halo.upper.as_slice()) else {
            return None;
        };
        let (top, bottom) = (-north, *south);
        let columns = (WARP * width - lanes::whole(-west, width) - east) / width * width;
        if columns < width {
            return None;
        }
        let [all_rows, all_columns] = self.extents;
        let own = |all: i64, margin: i64| (all - margin).max(1) as u64;
        let across = own(all_columns, WARP * width - columns).div_ceil(columns as u64);
        let most = i64::from(self.device.threads_per_block) / WARP;
        let mut best: Option<(f64, Vec<i64>)> = None;
        for parts in 1..=most {
            let tile_rows = parts * rows - top - bottom;
            if tile_rows < 1 || parts * WARP < FEWEST_THREADS && tile_rows < all_rows {
                continue;
            }
            let block = Block { rows, width, parts };
            let threads = u32::try_from(parts * WARP).unwrap_or(u32::MAX);
            if self.registers(block) > i64::from(model::most_registers(threads, self.device)) {
                continue;
            }
            let down = own(all_rows, top + bottom).div_ceil(tile_rows as u64);
            let clocks = self.clocks(block, steps, across.saturating_mul(down) as f64);
            if best.as_ref().is_none_or(|(least, _)| clocks < *least) {
                // Tiles of equal size, which leave the last one no smaller than the others.
                let even = own(all_rows, top + bottom).div_ceil(down) as i64;
                best = Some((clocks, vec![even.clamp(1, tile_rows), columns]));
            }
        }
        best
    }

    /// Clocks a step of a launch of some blocks. Blocks that a multiprocessor holds at a time take
    /// turns at its schedulers; while all wait at barriers, nothing is issued.
    fn clocks(&self, block: Block, steps: i64, blocks: f64) -> f64 {
        let device = self.device;
        let threads = u32::try_from(block.parts * WARP).unwrap_or(u32::MAX);
        let fitting = (1..=8_u32).rev().find(|blocks| {
            let all = threads.saturating_mul(*blocks);
            all <= device.threads_per_multiprocessor
                && self.registers(block) <= model::most_registers(all, device).into()
        });
        let each = (blocks / f64::from(device.multiprocessors)).ceil();
        let resident = f64::from(fitting.unwrap_or(1)).min(each);
        let rounds = (each / resident).ceil();
        let of = |cells: &[i64], place: usize| cells.get(place).copied().unwrap_or(0);
        let columns = of(&self.reach.upper, 1) - of(&self.reach.lower, 1);
        let rows = of(&self.reach.upper, 0) - of(&self.reach.lower, 0);
        // Shuffles of each row, and rows that are put and taken.
        let moved = (block.rows * columns + 2 * rows) * self.widest;
        let lane = (block.rows * block.width) as f64 * self.instructions + moved as f64;
        let warps = (block.parts as f64 * resident / f64::from(device.schedulers)).ceil();
        let steps = steps.max(1) as f64;
        let launch = device.launch_seconds * device.clock;
        (launch + rounds * (device.block_clocks + steps * (STEP + warps * lane))) / steps
    }

    /// The best schedule with some steps per launch.
    fn best(&self, steps: i64) -> Option<(f64, Fit)> {
        let halo = self.halo(steps);
        let mut best: Option<(f64, Fit)> = None;
        for width in WIDTHS {
            for rows in 1..=MOST_ROWS {
                let Some((clocks, tile)) = self.tile(rows, width, steps, &halo) else { continue };
                if best.as_ref().is_none_or(|(least, _)| clocks < *least) {
                    best = Some((clocks, Fit { tile, per_thread: vec![rows, width], steps }));
                }
            }
        }
        best
    }

    /// The best schedules of the ranges of pyramid heights.
    fn heights(&self) -> Vec<(f64, Fit)> {
        if self.single {
            return self.best(1).into_iter().collect();
        }
        let (mut found, mut first) = (Vec::new(), 1);
        for last in HEIGHTS {
            let fits = (first..=last).filter_map(|steps| self.best(steps));
            found.extend(fits.min_by(|(one, _), (other, _)| one.total_cmp(other)));
            first = last + 1;
        }
        found
    }
}

/// The schedule of a group. Where no tile has room, the smallest, which the lowering declines.
pub fn of_group<'c>(subject: &Subject<'c, '_>, group: &Group<'c, '_>) -> Result<Fit, Error> {
    let extents = extents(constant_extents(group.hull.lower, group.hull.upper));
    let search = Search::of(subject, &group.applies, extents)?;
    let fits = search.heights().into_iter();
    let best = fits.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, fit)| fit);
    Ok(best.unwrap_or(Fit { tile: vec![1, 2], per_thread: vec![1, 2], steps: 1 }))
}

/// The tile of a kernel whose loads and applies reach over some halos.
pub fn tile<'c>(
    subject: &Subject<'c, '_>,
    group: &Group<'c, '_>,
    schedule: &Schedule,
    halos: &[&Halo],
) -> Result<Vec<i64>, Error> {
    let extents = extents(constant_extents(group.hull.lower, group.hull.upper));
    let search = Search::of(subject, &group.applies, extents)?;
    let halo = halos.iter().fold(Halo::none(2), |all, halo| all.hull(halo));
    let &[rows, width] = schedule.per_thread.as_slice() else { return Ok(schedule.tile.clone()) };
    let found = search.tile(rows, width, schedule.steps, &halo);
    Ok(found.map_or_else(|| vec![rows, width], |(_, tile)| tile))
}

/// The best schedules of some ranges of pyramid heights.
pub fn candidates(subject: &Subject, rank: usize) -> Result<Vec<Candidates>, Error> {
    if rank != 2 {
        return Ok(Vec::new());
    }
    let applies: Vec<_> = subject.program.applies.iter().collect();
    let mut largest: Option<[i64; 2]> = None;
    for field in applies.iter().flat_map(|apply| &apply.updates) {
        let grid = subject.program.grid_of(field)?;
        let found = extents(constant_extents(grid.lower, grid.upper));
        let points = |extents: [i64; 2]| extents.iter().copied().fold(1, i64::saturating_mul);
        if found.map(points) > largest.map(points) {
            largest = found;
        }
    }
    let Some(extents) = largest else { return Ok(Vec::new()) };
    let search = Search::of(subject, &applies, Some(extents))?;
    let mut by_shape: BTreeMap<Vec<i64>, Vec<Option<i64>>> = BTreeMap::new();
    for (_, fit) in search.heights() {
        by_shape.entry(fit.per_thread).or_default().push(Some(fit.steps));
    }
    let candidates = |(per_thread, pyramid_heights)| Candidates {
        tile: None,
        per_thread: Some(per_thread),
        pyramid_heights,
    };
    Ok(by_shape.into_iter().map(candidates).collect())
}

/// Rows and columns, where they are known.
fn extents(extents: Option<Vec<i64>>) -> Option<[i64; 2]> {
    match extents.as_deref() {
        Some(&[rows, columns]) => Some([rows, columns]),
        _ => None,
    }
}

/// 32-bit registers of a cell.
fn words(program: &Program, field: &str) -> Result<i64, Error> {
    Ok(lanes::words(program.field(field)?.element))
}

/// Issue slots for a cell of an apply, of the piece that takes the most: products go into sums.
fn instructions<'c>(program: &Program<'c>, apply: &Apply<'c>) -> Result<f64, Error> {
    let mut most: f64 = 0.0;
    for piece in &apply.pieces {
        let (mut sums, mut products, mut others) = (0.0, 0.0, 0.0);
        for op in mlir::walk(program.function(piece.function)?) {
            let wide = mlir::results(op).first().and_then(|result| {
                mlir::bit_width(melior::ir::ValueLike::r#type(result))
            });
            let slots = if wide == Some(64) { 2.0 } else { 1.0 };
            match mlir::name(op) {
                "arith.mulf" => products += slots,
                "arith.addf" | "arith.subf" => sums += slots,
                "arith.constant" => {}
                "arith.divf" | "arith.remf" => others += LONG * slots,
                name if name.starts_with("math.") => others += LONG * slots,
                name if name.starts_with("arith.") => others += slots,
                _ => {}
            }
        }
        most = most.max(f64::max(sums, products) + others);
    }
    Ok(most)
}
