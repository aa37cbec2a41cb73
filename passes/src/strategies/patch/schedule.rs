//! Tiles, cells per thread and pyramid heights of the strategy `patch`, where none are asked for.
//!
//! More steps per launch mean fewer launches, but a larger halo; more rows of a lane mean fewer
//! rows handed over, but fewer warps. The choice here is arithmetic on the clocks of a
//! multiprocessor ([`Search::clocks`]); `choose-schedule` predicts the best of some pyramid heights
//! by the model of all strategies.

use super::layout::{MOST_BLOCKS, lane_registers, of_three};
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

/// The most rows of a lane that are tried, and the most planes.
const MOST_ROWS: i64 = 12;
const MOST_PLANES: i64 = 4;

/// Lanes of a row that are tried in three dimensions, where rows may be short.
const LANES: [i64; 3] = [8, 16, 32];

/// Pyramid heights up to each of which the best is a candidate, in two dimensions and in three.
const HEIGHTS: [&[i64]; 2] = [&[4, 8, 12, 16, 24], &[1, 2, 3, 4, 6]];

/// Threads of a block: with fewer, a multiprocessor waits at every barrier.
const FEWEST_THREADS: i64 = 256;

/// Clocks of a step in which a block computes nothing: barrier, rows from shared memory, columns by
/// shuffles, and the last sums.
const STEP: f64 = 150.0;

/// Parts of planes of a block, at most: threads of a block along its slowest dimension.
const MOST_DEPTH: i64 = 64;

/// Points per dimension where the grid's are not known at compile time.
const LARGE: [i64; 2] = [1 << 14, 1 << 9];

/// Instructions in whose time a multiprocessor computes a division, a root or a function.
const LONG: f64 = 8.0;

/// A schedule of the strategy.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Cells of a tile.
    pub tile: Vec<i64>,
    /// Cells of a lane per dimension.
    pub per_thread: Vec<i64>,
    /// Steps per launch.
    pub steps: i64,
}

/// What a search knows of a program.
struct Search<'d> {
    device: &'d Device,
    rank: usize,
    /// Planes, rows and columns of the grid; one plane in two dimensions.
    extents: [i64; 3],
    /// The cells that a step reads beside those that it computes.
    reach: Halo,
    /// Whether reads go to other rows of other planes.
    corners: bool,
    /// Registers of a cell of all fields that a lane holds.
    words: i64,
    /// Registers of a cell of the fields that an apply updates, the most.
    new_words: i64,
    /// Registers of the widest cell.
    widest: i64,
    /// Issue slots of a scheduler that a cell takes in a step.
    instructions: f64,
    /// Whether a launch takes one step alone.
    single: bool,
}

/// A block: cells of a lane per dimension, parts of planes and rows, and lanes of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Block {
    each: [i64; 3],
    parts: [i64; 2],
    lanes: i64,
}

impl Block {
    fn threads(self) -> i64 {
        self.parts.iter().product::<i64>() * self.lanes
    }
}

impl<'d> Search<'d> {
    fn of<'c>(
        subject: &Subject<'c, 'd>,
        applies: &[&Apply<'c>],
        (rank, extents): (usize, Option<Vec<i64>>),
    ) -> Result<Self, Error> {
        let program = subject.program;
        let large = LARGE.get(rank.saturating_sub(2)).copied().unwrap_or(1);
        let mut search = Self {
            device: subject.device,
            rank,
            extents: of_three(&extents.unwrap_or_else(|| vec![large; rank]), 1)?,
            reach: Halo::none(rank),
            corners: false,
            words: 0,
            new_words: 0,
            widest: 1,
            instructions: 0.0,
            single: !reductions::of(program)?.each_step.is_empty(),
        };
        let mut held = BTreeSet::new();
        for apply in applies {
            let mut reach = Halo::none(rank);
            for read in footprint::of_pieces(program, &apply.pieces)? {
                held.insert(read.field);
                if read.reach.lower.len() == rank {
                    reach = reach.hull(&read.reach);
                    let mut ends = read.reach.lower.iter().zip(&read.reach.upper).take(2);
                    search.corners |= rank == 3 && ends.all(|ends| ends != (&0, &0));
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

    /// Whether a thread has the registers that the lowering estimates where one apply makes a step;
    /// `blocks` share a multiprocessor.
    fn has_registers(&self, block: Block, blocks: u32) -> Result<bool, Error> {
        let cells = [self.words, self.widest, self.new_words];
        let wanted = lane_registers(block.each, cells, &self.reach)?;
        let threads = u32::try_from(block.threads()).unwrap_or(u32::MAX).saturating_mul(blocks);
        let room = threads <= self.device.threads_per_multiprocessor;
        Ok(room && wanted <= i64::from(model::most_registers(threads, self.device)))
    }

    /// The best tile for lanes of some cells, and its clocks a step.
    fn tile(
        &self,
        each: [i64; 3],
        steps: i64,
        halo: &Halo,
    ) -> Result<Option<(f64, Vec<i64>)>, Error> {
        let ([front, north, west], [back, south, east]) =
            (of_three(&halo.lower, 0)?, of_three(&halo.upper, 0)?);
        let ([planes, rows, width], [all_planes, all_rows, all_columns]) = (each, self.extents);
        let own = |all: i64, margin: i64| (all - margin).max(1) as u64;
        let flat = self.rank == 2;
        let mut best: Option<(f64, Vec<i64>)> = None;
        for lanes in LANES.into_iter().filter(|lanes| !flat || *lanes == WARP) {
            let columns = (lanes * width - lanes::whole(-west, width) - east) / width * width;
            if columns < width {
                continue;
            }
            let across = own(all_columns, lanes * width - columns).div_ceil(columns as u64);
            let most = i64::from(self.device.threads_per_block) / lanes;
            for parts in pairs(most, (flat, WARP / lanes)) {
                let [of_planes, of_rows] = parts;
                let tile_planes = of_planes * planes + front - back;
                let tile_rows = of_rows * rows + north - south;
                let block = Block { each, parts, lanes };
                let whole = tile_rows >= all_rows && tile_planes >= all_planes;
                let few = block.threads() < FEWEST_THREADS && !whole;
                if tile_planes < 1 || tile_rows < 1 || few || !self.has_registers(block, 1)? {
                    continue;
                }
                let deep = own(all_planes, back - front).div_ceil(tile_planes as u64);
                let down = own(all_rows, south - north).div_ceil(tile_rows as u64);
                let blocks = across.saturating_mul(down).saturating_mul(deep) as f64;
                let clocks = self.clocks(block, steps, blocks)?;
                if best.as_ref().is_none_or(|(least, _)| clocks < *least) {
                    // Tiles of equal size: the last one is no smaller than the others.
                    let even = |all: i64, halo: i64, count: u64, most: i64| {
                        (own(all, halo).div_ceil(count) as i64).clamp(1, most)
                    };
                    let tile = [
                        even(all_planes, back - front, deep, tile_planes),
                        even(all_rows, south - north, down, tile_rows),
                        columns,
                    ];
                    best = Some((clocks, self.of_rank(tile)));
                }
            }
        }
        Ok(best)
    }

    /// Numbers of the grid's dimensions.
    fn of_rank(&self, numbers: [i64; 3]) -> Vec<i64> {
        numbers.into_iter().skip(3_usize.saturating_sub(self.rank)).collect()
    }

    /// Clocks a step of a launch of some blocks. Blocks that a multiprocessor holds at a time take
    /// turns at its schedulers and at shared memory; while all wait at barriers, nothing is issued.
    fn clocks(&self, block: Block, steps: i64, blocks: f64) -> Result<f64, Error> {
        let device = self.device;
        let mut fitting = 1;
        while fitting < MOST_BLOCKS && self.has_registers(block, fitting + 1)? {
            fitting += 1;
        }
        let each = (blocks / f64::from(device.multiprocessors)).ceil();
        let resident = f64::from(fitting).min(each);
        let rounds = (each / resident).ceil();
        let ([front, up, before], [back, down, after]) =
            (of_three(&self.reach.lower, 0)?, of_three(&self.reach.upper, 0)?);
        let [planes, rows, width] = block.each;
        let (behind, below) = (back - front, down - up);
        let corners = if self.corners { behind * below } else { 0 };
        let taken = planes * below + rows * behind + corners;
        let put = (planes * rows).min(taken);
        // A lane's words that are shuffled, and those that pass through shared memory.
        let shuffled = planes * rows * (after - before) * self.widest;
        let shared = (taken + put) * width * self.widest;
        let accesses = (taken + put) as f64;
        let computed = (planes * rows * width) as f64 * self.instructions;
        let lane = computed + shuffled as f64 + accesses;
        let warps = (block.threads() / WARP) as f64 * resident;
        let issued = (warps / f64::from(device.schedulers)).ceil() * lane;
        let banks = f64::from(device.shared_bandwidth) / 4.0;
        let moved = warps * shared as f64 * WARP as f64 / banks;
        let busy = (issued.powi(3) + moved.powi(3)).cbrt();
        let steps = steps.max(1) as f64;
        let launch = device.launch_seconds * device.clock;
        Ok((launch + rounds * (device.block_clocks + steps * (STEP + busy))) / steps)
    }

    /// The best schedule with some steps per launch.
    fn best(&self, steps: i64) -> Result<Option<(f64, Fit)>, Error> {
        let halo = self.halo(steps);
        let mut best: Option<(f64, Fit)> = None;
        let flat = self.rank == 2;
        for width in WIDTHS {
            let (most_planes, most_rows) =
                if flat { (1, MOST_ROWS) } else { (MOST_PLANES, MOST_PLANES) };
            let cells = (1..=most_planes).flat_map(|planes| {
                (1..=most_rows).map(move |rows| [planes, rows, width])
            });
            for each in cells {
                let Some((clocks, tile)) = self.tile(each, steps, &halo)? else { continue };
                if best.as_ref().is_none_or(|(least, _)| clocks < *least) {
                    best = Some((clocks, Fit { tile, per_thread: self.of_rank(each), steps }));
                }
            }
        }
        Ok(best)
    }

    /// The best schedules of the ranges of pyramid heights.
    fn heights(&self) -> Result<Vec<(f64, Fit)>, Error> {
        if self.single {
            return Ok(self.best(1)?.into_iter().collect());
        }
        let (mut found, mut first) = (Vec::new(), 1);
        for last in HEIGHTS.get(self.rank.saturating_sub(2)).copied().unwrap_or_default() {
            let mut best: Option<(f64, Fit)> = None;
            for steps in first..=*last {
                let fit = self.best(steps)?;
                let least = best.as_ref().map_or(f64::INFINITY, |(least, _)| *least);
                best = fit.filter(|(clocks, _)| *clocks < least).or(best);
            }
            found.extend(best);
            first = last + 1;
        }
        Ok(found)
    }
}

/// Parts of planes and rows of which a block has at most some; rows come in multiples of `unit`.
fn pairs(most: i64, (flat, unit): (bool, i64)) -> impl Iterator<Item = [i64; 2]> {
    let most_planes = if flat { 1 } else { most.min(MOST_DEPTH) };
    (1..=most_planes).flat_map(move |planes| {
        (1..=most / planes / unit).map(move |rows| [planes, rows * unit])
    })
}

/// The schedule of a group. Where no tile has room, the smallest, which the lowering declines.
pub fn of_group<'c>(subject: &Subject<'c, '_>, group: &Group<'c, '_>) -> Result<Fit, Error> {
    let extents = constant_extents(group.hull.lower, group.hull.upper);
    let search = Search::of(subject, &group.applies, (group.hull.rank(), extents))?;
    let fits = search.heights()?.into_iter();
    let best = fits.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, fit)| fit);
    let (tile, per_thread) = (search.of_rank([1, 1, 2]), search.of_rank([1, 1, 2]));
    Ok(best.unwrap_or(Fit { tile, per_thread, steps: 1 }))
}

/// The tile of a kernel whose loads and applies reach over some halos.
pub fn tile<'c>(
    subject: &Subject<'c, '_>,
    group: &Group<'c, '_>,
    schedule: &Schedule,
    halos: &[&Halo],
) -> Result<Vec<i64>, Error> {
    let extents = constant_extents(group.hull.lower, group.hull.upper);
    let rank = group.hull.rank();
    let search = Search::of(subject, &group.applies, (rank, extents))?;
    let halo = halos.iter().fold(Halo::none(rank), |all, halo| all.hull(halo));
    if schedule.per_thread.len() != rank {
        return Ok(schedule.tile.clone());
    }
    let found = search.tile(of_three(&schedule.per_thread, 1)?, schedule.steps, &halo)?;
    Ok(found.map_or_else(|| schedule.per_thread.clone(), |(_, tile)| tile))
}

/// The best schedules of some ranges of pyramid heights.
pub fn candidates(subject: &Subject, rank: usize) -> Result<Vec<Candidates>, Error> {
    if !(2..=3).contains(&rank) {
        return Ok(Vec::new());
    }
    let applies: Vec<_> = subject.program.applies.iter().collect();
    let mut largest: Option<Vec<i64>> = None;
    for field in applies.iter().flat_map(|apply| &apply.updates) {
        let grid = subject.program.grid_of(field)?;
        let found = constant_extents(grid.lower, grid.upper).filter(|found| found.len() == rank);
        let points = |extents: &Option<Vec<i64>>| {
            let extents = extents.iter().flatten().copied();
            extents.reduce(i64::saturating_mul).unwrap_or(0)
        };
        if points(&found) > points(&largest) {
            largest = found;
        }
    }
    if largest.is_none() {
        return Ok(Vec::new());
    }
    let search = Search::of(subject, &applies, (rank, largest))?;
    let mut by_shape: BTreeMap<Vec<i64>, Vec<Option<i64>>> = BTreeMap::new();
    for (_, fit) in search.heights()? {
        by_shape.entry(fit.per_thread).or_default().push(Some(fit.steps));
    }
    let candidates = |(per_thread, pyramid_heights)| Candidates {
        tile: None,
        per_thread: Some(per_thread),
        pyramid_heights,
    };
    Ok(by_shape.into_iter().map(candidates).collect())
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
