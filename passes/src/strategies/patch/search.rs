//! The search for tiles, cells per thread and pyramid heights of the strategy `patch`.
//!
//! More steps per launch mean fewer launches, but a larger halo; more rows of a lane mean fewer
//! rows handed over, but fewer warps. The choice here is by the model of all strategies, from
//! numbers that no lowering has counted ([`Search::seconds`]); `choose-schedule` lowers the best of
//! some pyramid heights and predicts them anew.

use super::lane_shapes::{pairs, shapes};
use super::layout::{MOST_BLOCKS, lane_registers, of_three, words_of_others};
use crate::analysis::footprint;
use crate::analysis::reductions;
use crate::kernel::lanes::{self, WARP};
use crate::subject::Subject;
use std::collections::BTreeSet;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::{Apply, Program, Role};
use stencil_dialects::tiled::Halo;
use stencil_runtime::device::Device;
use stencil_runtime::model::{self, Work};

/// Instructions of all steps of a launch beyond which code leaves the instruction cache: with 3,000
/// of them a step of `star2d1r` took a quarter longer on an H200 (decision 042).
const MOST_INSTRUCTIONS: f64 = 2048.0;

/// The same of a round, whose loop has the code for rims too: with 2,000 of them `star2d1r` lost a
/// fifth (decision 048).
const MOST_OF_ROUND: f64 = 1300.0;

/// Lanes of a row that are tried in three dimensions, where rows may be short.
const LANES: [i64; 3] = [8, 16, 32];

/// Pyramid heights up to each of which the best is a candidate, in two dimensions and in three.
const HEIGHTS: [&[i64]; 2] = [&[4, 8, 12, 16, 24], &[1, 2, 3, 4, 6]];

/// Registers by which the estimate may be too high: lanes of such tiles need up to 39 fewer.
const SPARE: i64 = 40;

/// Multiprocessors that have a block at least, of tiles that stay in registers.
const BUSY: f64 = 0.875;

/// Rounds of a launch whose tiles stay in registers.
const ROUNDS: f64 = 64.0;

/// Threads of a block: with fewer, a multiprocessor waits at every barrier.
const FEWEST_THREADS: i64 = 256;

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
pub struct Search<'d> {
    device: &'d Device,
    rank: usize,
    /// Planes, rows and columns of the grid; one plane in two dimensions.
    extents: [i64; 3],
    /// The cells that a step reads beside those that it computes.
    reach: Halo,
    /// Whether reads go to other rows of other planes.
    corners: bool,
    /// Cells of a lane per dimension that are tried, with the registers that they take by the
    /// estimate of the lowering, where one apply makes a step.
    shapes: Vec<([i64; 3], i64)>,
    /// Registers of the widest cell.
    widest: i64,
    /// Issue slots of a scheduler that a cell takes in a step.
    instructions: f64,
    /// Functions of a step.
    barriers: f64,
    /// Bytes of a cell that a launch loads and stores, and those that it loads.
    moved: f64,
    loaded: f64,
    /// Rounds of a launch, between which blocks exchange rims.
    rounds: f64,
    /// Whether a launch takes one step alone.
    single: bool,
}

/// A block: cells of a lane per dimension, parts of planes and rows, and lanes of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Block {
    each: [i64; 3],
    parts: [i64; 2],
    lanes: i64,
    /// Registers of a thread.
    registers: i64,
}

impl Block {
    fn threads(self) -> i64 {
        self.parts.iter().product::<i64>() * self.lanes
    }
}

impl<'d> Search<'d> {
    /// Looks at the applies of a step on a grid of so many dimensions and, where they are known,
    /// points.
    pub fn of<'c>(
        subject: &Subject<'c, 'd>,
        applies: &[&Apply<'c>],
        (rank, extents): (usize, Option<Vec<i64>>),
        resident: bool,
    ) -> Result<Self, Error> {
        let program = subject.program;
        let large = LARGE.get(rank.saturating_sub(2)).copied().unwrap_or(1);
        let part = |extents: Vec<i64>| subject.devices.part(&extents);
        let extents = extents.map_or_else(|| vec![large; rank], part);
        let mut search = Self {
            device: subject.device,
            rank,
            extents: of_three(&extents, 1)?,
            reach: Halo::none(rank),
            corners: false,
            shapes: Vec::new(),
            widest: 1,
            instructions: 0.0,
            barriers: applies.len() as f64,
            moved: 0.0,
            loaded: 0.0,
            rounds: if resident { ROUNDS } else { 1.0 },
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
            search.instructions += instructions(program, apply)?;
        }
        let mut words = 0;
        for field in held {
            let own = lanes::words(program.field(field)?.element);
            words += own;
            search.widest = search.widest.max(own);
            if program.field(field)?.role != Role::Temp {
                search.loaded += (4 * own) as f64;
                let updated = applies.iter().any(|apply| apply.updates.contains(&field));
                search.moved += (4 * own) as f64 * if updated { 2.0 } else { 1.0 };
            }
        }
        for each in shapes(rank, search.widest, resident) {
            search.shapes.push((each, registers(program, applies, each, words)?));
        }
        Ok(search)
    }

    /// The halo of some steps.
    fn halo(&self, steps: i64) -> Halo {
        let scaled = |cells: &[i64]| cells.iter().map(|cells| cells * steps).collect();
        Halo { lower: scaled(&self.reach.lower), upper: scaled(&self.reach.upper) }
    }

    /// Registers of lanes of some cells by the estimate; 0 where these are not tried.
    pub fn registers(&self, each: [i64; 3]) -> i64 {
        let known = self.shapes.iter().find(|(shape, _)| *shape == each);
        known.map_or(0, |(_, registers)| *registers)
    }

    /// Whether threads have the registers of the estimate where `blocks` share a multiprocessor.
    fn has_registers(&self, block: Block, blocks: u32) -> bool {
        let threads = u32::try_from(block.threads()).unwrap_or(u32::MAX).saturating_mul(blocks);
        let room = threads <= self.device.threads_per_multiprocessor;
        let most = i64::from(model::most_registers(threads, self.device));
        room && block.registers <= most + if self.is_resident() { SPARE } else { 0 }
    }

    /// Whether tiles stay in registers for several rounds.
    fn is_resident(&self) -> bool {
        self.rounds > 1.0
    }

    /// Whether so many blocks are on the device at once, and most of its multiprocessors have one,
    /// as far as the grid has cells for them.
    fn fits(&self, block: Block, blocks: f64) -> bool {
        let all = f64::from(self.device.multiprocessors);
        let points: i64 = self.extents.iter().product();
        if blocks < BUSY * all && points as f64 > all * (2 * FEWEST_THREADS) as f64 {
            return false;
        }
        let room = (1..=MOST_BLOCKS).rev().find(|room| self.has_registers(block, *room));
        blocks <= f64::from(room.unwrap_or(0) * self.device.multiprocessors)
    }

    /// The best tile for lanes of some cells, and its seconds a step.
    pub fn tile(
        &self,
        (each, registers): ([i64; 3], i64),
        steps: i64,
        halo: &Halo,
    ) -> Result<Option<(f64, Vec<i64>)>, Error> {
        let ([front, north, west], [back, south, east]) =
            (of_three(&halo.lower, 0)?, of_three(&halo.upper, 0)?);
        let ([planes, rows, width], [all_planes, all_rows, _]) = (each, self.extents);
        let flat = self.rank == 2;
        let needed = [back.max(-front), south.max(-north), lanes::whole(east.max(-west), width)];
        let mut best: Option<(f64, Vec<i64>)> = None;
        for lanes in LANES.into_iter().filter(|lanes| !flat || *lanes == WARP) {
            let columns = (lanes * width - lanes::whole(-west, width) - east) / width * width;
            if columns < width {
                continue;
            }
            let most = i64::from(self.device.threads_per_block) / lanes;
            for parts in pairs(most, (flat, WARP / lanes)) {
                let [of_planes, of_rows] = parts;
                let tile_planes = of_planes * planes + front - back;
                let tile_rows = of_rows * rows + north - south;
                let block = Block { each, parts, lanes, registers };
                let whole = tile_rows >= all_rows && tile_planes >= all_planes;
                let few = block.threads() < FEWEST_THREADS && !whole;
                if tile_planes < 1 || tile_rows < 1 || few || !self.has_registers(block, 1) {
                    continue;
                }
                let most = [tile_planes, tile_rows, columns];
                let beside = [back - front, south - north, lanes * width - columns];
                let cells = [planes, rows * (WARP / lanes), width];
                let (tile, counts) = self.cut(most, (beside, cells));
                let blocks = counts.into_iter().fold(1, i64::saturating_mul) as f64;
                let near = each_of(tile, needed, |tile, needed| tile - needed);
                let near = counts.iter().zip(near).all(|(count, spare)| *count < 2 || spare >= 0);
                if self.is_resident() && !(near && self.fits(block, blocks)) {
                    continue;
                }
                let found = self.seconds(block, (&tile, halo), (steps, blocks))?;
                let Some(seconds) = found else { continue };
                if best.as_ref().is_none_or(|(least, _)| seconds < *least) {
                    best = Some((seconds, self.of_rank(tile)));
                }
            }
        }
        Ok(best)
    }

    /// Tiles of some cells at most and their number per dimension. Those at rims of the grid have
    /// the cells `beside` a tile too, where all dimensions have more of them
    /// ([`tile_place::margin`](crate::kernel::tile_place::margin)); lanes have some `cells`.
    fn cut(&self, most: [i64; 3], (beside, cells): ([i64; 3], [i64; 3])) -> ([i64; 3], [i64; 3]) {
        let cut = |margin: [i64; 3]| {
            let own = each_of(self.extents, margin, |all, margin| (all - margin).max(1));
            let counts = each_of(own, most, |own, most| (own + most - 1) / most);
            // Tiles of equal size: the last one is no smaller than the others.
            let [planes, rows, _] = each_of(own, counts, |own, count| (own + count - 1) / count);
            let [_, _, columns] = most;
            ([planes, rows, columns], counts)
        };
        let (tile, counts) = cut(beside);
        let with_halo = each_of(tile, beside, |tile, beside| tile + beside);
        let block = each_of(with_halo, cells, |all, cells| (all + cells - 1) / cells * cells);
        let margin = each_of(block, tile, |block, tile| block - tile);
        let fits = self.extents.iter().zip(margin).all(|(extent, margin)| *extent > margin);
        if fits { (tile, counts) } else { cut([0; 3]) }
    }

    /// Numbers of the grid's dimensions.
    pub fn of_rank(&self, numbers: [i64; 3]) -> Vec<i64> {
        numbers.into_iter().skip(3_usize.saturating_sub(self.rank)).collect()
    }

    /// Seconds a step of a launch of some blocks, by the model of all strategies; none where a
    /// block does not fit.
    fn seconds(
        &self,
        block: Block,
        (tile, halo): (&[i64; 3], &Halo),
        (steps, blocks): (i64, f64),
    ) -> Result<Option<f64>, Error> {
        let ([front, up, before], [back, down, after]) =
            (of_three(&self.reach.lower, 0)?, of_three(&self.reach.upper, 0)?);
        let [planes, rows, width] = block.each;
        let (behind, below) = (back - front, down - up);
        let corners = if self.corners { behind * below } else { 0 };
        let taken = planes * below + rows * behind + corners;
        let put = (planes * rows).min(taken);
        // A lane's words that are shuffled, and those that pass through shared memory.
        let shuffled = (planes * rows * (after - before) * self.widest) as f64;
        let exchanged = (4 * (taken + put) * width * self.widest) as f64;
        let cells = (planes * rows * width) as f64;
        let (steps, threads) = (steps.max(1), block.threads());
        let (times, warps) = (steps as f64, threads as f64 / WARP as f64);
        let lane = cells * self.instructions + shuffled + (taken + put) as f64;
        let own = tile.iter().product::<i64>() as f64;
        let with_halo: i64 = halo.extents(&self.of_rank(*tile)).iter().product();
        let extra = (with_halo as f64 - own).max(0.0);
        let most = |blocks: u32| {
            let threads = u32::try_from(threads).unwrap_or(u32::MAX).saturating_mul(blocks);
            model::most_registers(threads, self.device)
        };
        let room = (1..=MOST_BLOCKS).rev().find(|blocks| self.has_registers(block, *blocks));
        let meetings = if blocks > 1.0 { self.rounds - 1.0 } else { 0.0 };
        let times = times * self.rounds;
        let barriers = times * self.barriers;
        let work = Work {
            blocks,
            threads: u32::try_from(threads).unwrap_or(u32::MAX),
            registers: most(room.unwrap_or(1)),
            lacking: (block.registers - i64::from(most(room.unwrap_or(1)))).max(0) as f64,
            own: own * self.moved,
            // Rims are stored and loaded.
            halo: extra * self.loaded * (1.0 + 2.0 * meetings),
            meetings,
            single: times * cells * self.instructions * threads as f64,
            instructions: times * lane * warps,
            shuffles: times * shuffled * warps,
            exchanged: times * exchanged * threads as f64,
            barriers,
            exchanges: barriers,
            ..Work::default()
        };
        let steps = steps.saturating_mul(self.rounds as i64);
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        Ok(model::predict(&[work], steps, self.device).map(|found| found.seconds))
    }

    /// The best schedule with some steps per launch.
    fn best(&self, steps: i64) -> Result<Option<(f64, Fit)>, Error> {
        let halo = self.halo(steps);
        let mut best: Option<(f64, Fit)> = None;
        for (each, registers) in &self.shapes {
            let cells = each.iter().product::<i64>() as f64;
            let code = steps as f64 * cells * self.instructions;
            let most = if self.is_resident() { MOST_OF_ROUND } else { MOST_INSTRUCTIONS };
            if code > most && steps > 1 {
                continue;
            }
            let found = self.tile((*each, *registers), steps, &halo)?;
            let Some((seconds, tile)) = found else { continue };
            if best.as_ref().is_none_or(|(least, _)| seconds < *least) {
                best = Some((seconds, Fit { tile, per_thread: self.of_rank(*each), steps }));
            }
        }
        Ok(best)
    }

    /// The best schedules of the ranges of pyramid heights.
    pub fn heights(&self) -> Result<Vec<(f64, Fit)>, Error> {
        if self.single {
            return Ok(self.best(1)?.into_iter().collect());
        }
        let (mut found, mut first) = (Vec::new(), 1);
        for last in HEIGHTS.get(self.rank.saturating_sub(2)).copied().unwrap_or_default() {
            let mut best: Option<(f64, Fit)> = None;
            for steps in first..=*last {
                let fit = self.best(steps)?;
                let least = best.as_ref().map_or(f64::INFINITY, |(least, _)| *least);
                best = fit.filter(|(seconds, _)| *seconds < least).or(best);
            }
            found.extend(best);
            first = last + 1;
        }
        Ok(found)
    }
}

/// Numbers of each dimension.
fn each_of(one: [i64; 3], other: [i64; 3], of: impl Fn(i64, i64) -> i64) -> [i64; 3] {
    let ([planes, rows, columns], [others, ends, widths]) = (one, other);
    [of(planes, others), of(rows, ends), of(columns, widths)]
}

/// Registers of a lane that holds so many words of a cell, by the apply that reads the most.
fn registers<'c>(
    program: &Program<'c>,
    applies: &[&Apply<'c>],
    each: [i64; 3],
    words: i64,
) -> Result<i64, Error> {
    let mut most = 0;
    for apply in applies {
        most = most.max(words_of_others(program, &apply.pieces, each)?);
    }
    Ok(lane_registers(each, words, most))
}

/// Issue slots for a cell of an apply, of the piece that takes the most: products go into sums.
fn instructions<'c>(program: &Program<'c>, apply: &Apply<'c>) -> Result<f64, Error> {
    let mut most: f64 = 0.0;
    for piece in &apply.pieces {
        let (mut sums, mut products, mut others) = (0.0, 0.0, 0.0);
        for op in mlir::walk(program.function(piece.function)?) {
            let wide = mlir::results(op)
                .first()
                .and_then(|result| mlir::bit_width(melior::ir::ValueLike::r#type(result)));
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
