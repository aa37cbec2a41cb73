//! Where the cells of a block's tile lie: which rows and columns a lane holds.

use crate::analysis::footprint;
use crate::kernel::block_limits::steps_per_round;
use crate::kernel::lanes::{self, WARP};
use crate::kernel::pieces;
use crate::schedule::code_size::MOST_FOUND;
use crate::subject::Subject;
use melior::ir::operation::OperationLike;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::{Piece, Program};
use stencil_dialects::tiled::{self, Halo, Kernel, TileOp};
use stencil_runtime::device::Device;
use stencil_runtime::model;

/// Registers for addresses, conditions and what a point function computes.
const OVERHEAD: i64 = 16;

/// Blocks that share a multiprocessor, at most.
pub const MOST_BLOCKS: u32 = 8;

/// The most registers of a lane by the estimate: code for more takes minutes to make.
const MOST_REGISTERS: i64 = 512;

/// A cell of a lane, or one beside it: plane, row and column counted from the lane's first. In two
/// dimensions the plane is 0.
pub type Position = [i64; 3];

/// A block's tile with its halo. All numbers are cells unless stated otherwise.
pub struct Layout<'c> {
    /// Dimensions of the grid.
    pub rank: usize,
    /// Planes and rows of a lane.
    pub each: [i64; 2],
    /// Columns of a lane.
    pub width: i64,
    /// Lanes of a row.
    pub lanes: i64,
    /// Parts of the block, which hold planes one behind the other and rows one above the other.
    pub parts: [i64; 2],
    /// Planes and rows of the block before the tile's first.
    pub before: [i64; 2],
    /// Columns of the block left of the tile's first, whole lanes.
    pub left: i64,
    /// Registers of a thread by an estimate.
    pub registers: i64,
    /// Registers that a thread may take.
    pub limit: i64,
    /// Whether a point function has a result for any operands, by its name.
    pub total: BTreeMap<&'c str, bool>,
    /// Whether the tile goes on beyond the grid as the grid repeated.
    pub wraps: bool,
}

impl<'c> Layout<'c> {
    /// Plans a kernel.
    ///
    /// # Errors
    /// A decline: grids of one dimension, tiles that no lanes hold, and lanes that hold or select
    /// among too many cells.
    pub fn plan(subject: &Subject<'c, '_>, kernel: &Kernel<'c>) -> Result<Self, Error> {
        let (module, program) = (subject.module, subject.program);
        let (tile, per_thread) = (&kernel.schedule.tile, &kernel.schedule.per_thread);
        let rank = tile.len();
        if !(2..=3).contains(&rank) || per_thread.len() != rank {
            let message = format!(
                "the strategy patch needs a grid of two or three dimensions and as many numbers in \
                 tiled.per_thread, and here tile and tiled.per_thread are {tile:?} and \
                 {per_thread:?}"
            );
            return Err(decline(kernel, Decline::TileShape, message));
        }
        let [planes, rows, columns] = of_three(tile, 1)?;
        let [each_planes, each_rows, width] = of_three(per_thread, 1)?;
        let halo = reach(kernel);
        let ([front, north, west], [back, south, east]) =
            (of_three(&halo.lower, 0)?, of_three(&halo.upper, 0)?);
        let left = lanes::whole(-west, width);
        let needed = left + columns + east;
        if columns % width != 0 {
            let message = format!(
                "a tile's columns must be a multiple of the {width} columns per lane, and \
                 {columns} are not"
            );
            return Err(decline(kernel, Decline::TileShape, message));
        }
        if needed > WARP * width {
            let message = format!(
                "a tile {columns} columns wide with {} needs {needed} columns with its halo, and \
                 a warp with {width} columns per lane has {}",
                steps_per_round(kernel),
                WARP * width
            );
            return Err(decline(kernel, Decline::TileShape, message));
        }
        let outer = each_planes.saturating_mul(each_rows);
        check_selects(subject, kernel, outer.saturating_mul(width))?;
        // Narrow tiles leave room for more rows: two or more of their rows share a warp.
        let lanes = WARP.min((needed as u64).div_ceil(width as u64).next_power_of_two() as i64);
        let of_warp = WARP / lanes;
        let parts = |before: i64, cells: i64, after: i64, each: i64| {
            (cells - before + after + each - 1) / each
        };
        let of_rows = parts(north, rows, south, each_rows);
        let of_rows = (of_rows + of_warp - 1) / of_warp * of_warp;
        let parts = [parts(front, planes, back, each_planes), of_rows];
        let registers = registers(subject, kernel, [each_planes, each_rows, width])?;
        if registers > MOST_REGISTERS {
            let cells: Vec<_> = per_thread.iter().map(i64::to_string).collect();
            let message = format!(
                "the cells of a lane with {} cells take {registers} registers, and the strategy \
                 patch holds {MOST_REGISTERS} at most; give a lane fewer cells, or choose another \
                 strategy",
                cells.join(" x ")
            );
            return Err(decline(kernel, Decline::Registers, message));
        }
        let threads = parts.iter().fold(lanes, |all, parts| all.saturating_mul(*parts));
        let threads = u32::try_from(threads).unwrap_or(u32::MAX);
        let limit = limit(registers, threads, subject.device);
        let mut total = BTreeMap::new();
        for piece in kernel.applies().flat_map(|apply| &apply.pieces) {
            total.insert(piece.function, pieces::is_total(module, program, piece)?);
        }
        let wraps = tiled::wraps(program, kernel)?;
        let (each, before) = ([each_planes, each_rows], [-front, -north]);
        Ok(Self { rank, each, width, lanes, parts, before, left, registers, limit, total, wraps })
    }

    /// Lets a thread take the registers that so many blocks leave it, all of them on the device
    /// at once.
    pub fn make_room(&mut self, blocks: i64, device: &Device) {
        let each = u32::try_from(blocks).unwrap_or(u32::MAX).div_ceil(device.multiprocessors);
        let threads = self.threads().iter().fold(1, |all: i64, count| all.saturating_mul(*count));
        let threads = u32::try_from(threads).unwrap_or(u32::MAX);
        if threads.saturating_mul(each) <= device.threads_per_multiprocessor {
            let most = model::most_registers(threads.saturating_mul(each), device);
            self.limit = most.into();
        }
    }

    /// Threads of a block per dimension, slowest first.
    pub fn threads(&self) -> Vec<i64> {
        let [planes, rows] = self.parts;
        if self.rank == 2 { vec![rows, self.lanes] } else { vec![planes, rows, self.lanes] }
    }

    /// Whether every function has a result for any operands, so that all cells can be computed.
    pub fn all_total(&self) -> bool {
        self.total.values().all(|total| *total)
    }

    /// Planes and rows of a lane, in the order of its cells.
    pub fn rows(&self) -> impl Iterator<Item = [i64; 2]> + use<'c> {
        let [planes, rows] = self.each;
        (0..planes).flat_map(move |plane| (0..rows).map(move |row| [plane, row]))
    }

    /// A lane's cells, row by row.
    pub fn positions(&self) -> impl Iterator<Item = Position> + use<'c> {
        let width = self.width;
        self.rows().flat_map(move |[plane, row]| (0..width).map(move |cell| [plane, row, cell]))
    }

    /// The place of a row of a lane among its rows.
    pub fn row_number(&self, [plane, row]: [i64; 2]) -> Option<usize> {
        let [_, rows] = self.each;
        usize::try_from(plane * rows + row).ok()
    }

    /// Whether a plane and row belong to another lane.
    pub fn is_foreign(&self, [plane, row]: [i64; 2]) -> bool {
        let [planes, rows] = self.each;
        !(0..planes).contains(&plane) || !(0..rows).contains(&row)
    }

    /// Cells at both ends of the grid that need no tile of their own, because a tile has no halo
    /// where the grid ends.
    pub fn margin(&self, kernel: &Kernel) -> Result<Vec<[i64; 2]>, Error> {
        if self.wraps || !self.all_total() {
            return Ok(Vec::new());
        }
        let block = self.block(kernel)?;
        Ok(block.lower.iter().zip(&block.upper).map(|(lower, upper)| [-lower, *upper]).collect())
    }

    /// All cells of the block, relative to its tile.
    pub fn block(&self, kernel: &Kernel) -> Result<Halo, Error> {
        let [planes, rows, columns] = of_three(&kernel.schedule.tile, 1)?;
        let ([each_planes, each_rows], [of_planes, of_rows]) = (self.each, self.parts);
        let [front, top] = self.before;
        let lower = vec![-front, -top, -self.left];
        let upper = vec![
            of_planes * each_planes - front - planes,
            of_rows * each_rows - top - rows,
            self.lanes * self.width - self.left - columns,
        ];
        let skip = 3 - self.rank;
        let last = |cells: Vec<i64>| cells.into_iter().skip(skip).collect();
        Ok(Halo { lower: last(lower), upper: last(upper) })
    }

    /// The cells that an operation touches without checks: a load touches all of the block.
    pub fn touched(
        &self,
        kernel: &Kernel<'c>,
        op: &TileOp<'c>,
        halo: &Halo,
    ) -> Result<Halo, Error> {
        if matches!(op, TileOp::Load { .. }) { self.block(kernel) } else { Ok(halo.clone()) }
    }
}

/// Numbers of three dimensions; in two the slowest is `missing`.
pub fn of_three(numbers: &[i64], missing: i64) -> Result<[i64; 3], Error> {
    match *numbers {
        [rows, columns] => Ok([missing, rows, columns]),
        [planes, rows, columns] => Ok([planes, rows, columns]),
        _ => Err(Error::internal("a patch of other than two or three dimensions")),
    }
}

/// The registers that a thread may take, so that as many blocks of some threads as the estimate
/// leaves room for share a multiprocessor.
fn limit(estimate: i64, threads: u32, device: &Device) -> i64 {
    let of = |blocks: u32| {
        let all = threads.saturating_mul(blocks);
        let fits = blocks <= 1 || all <= device.threads_per_multiprocessor;
        fits.then(|| i64::from(model::most_registers(all, device)))
    };
    let room = (1..=MOST_BLOCKS).rev().filter_map(of).find(|most| estimate <= *most);
    room.or(of(1)).unwrap_or(0)
}

/// A decline at the tile kernel.
fn decline(kernel: &Kernel, reason: Decline, message: String) -> Error {
    Error::declined(reason, message).at(mlir::place(kernel.op.location()))
}

/// The cells around a tile that any operation touches.
fn reach(kernel: &Kernel) -> Halo {
    let none = Halo::none(kernel.schedule.tile.len());
    let halos = kernel.tiles().map(|tile| &tile.halo);
    halos.chain(kernel.applies().map(|apply| &apply.halo)).fold(none, |all, halo| all.hull(halo))
}

/// Declines lanes whose reads select among too many cells by boundary rules: code for them would
/// take minutes to make.
fn check_selects(subject: &Subject, kernel: &Kernel, cells: i64) -> Result<(), Error> {
    let mut selects = 0_i64;
    for apply in kernel.applies() {
        let reads = footprint::cells_by_rules(subject.program, &apply.pieces)?;
        selects = selects.saturating_add(reads.saturating_mul(cells));
    }
    if selects <= MOST_FOUND {
        return Ok(());
    }
    let message = format!(
        "by their boundary rules the reads of a lane with {cells} cells may take {selects} cells \
         in a launch, and the strategy patch selects among {MOST_FOUND} at most; give a lane \
         fewer cells, make the pyramid height smaller, or choose another strategy"
    );
    Err(decline(kernel, Decline::Registers, message))
}

/// Registers of a lane: the cells that live while an apply runs, and those of other lanes.
fn registers(subject: &Subject, kernel: &Kernel, each: [i64; 3]) -> Result<i64, Error> {
    let program = subject.program;
    let mut most = 0;
    for (place, op) in kernel.body.iter().enumerate() {
        let TileOp::Apply(apply) = op else { continue };
        let mut held = 0;
        for tile in live(kernel, place) {
            held += lanes::words(program.field(kernel.tile(tile)?.field)?.element);
        }
        let others = words_of_others(program, &apply.pieces, each)?;
        most = most.max(lane_registers(each, held, others));
    }
    Ok(most)
}

/// Registers of a lane of some cells per dimension that holds `held` words of each cell, and of
/// other lanes' cells so many words. What ptxas of CUDA 13.0 needs without spilling is 16 fewer to
/// 20 more, for stars and boxes of radius 1 and 2 in both types (decision 042).
pub fn lane_registers(each: [i64; 3], held: i64, others: i64) -> i64 {
    let own = each.into_iter().fold(held, i64::saturating_mul);
    own.saturating_add(own / 4).saturating_add(others).saturating_add(OVERHEAD)
}

/// Words of other lanes' cells that an apply's pieces read: rows of other parts, which a lane has
/// whole, and columns beside its own.
pub fn words_of_others<'c>(
    program: &Program<'c>,
    pieces: &[Piece<'c>],
    [planes, rows, width]: [i64; 3],
) -> Result<i64, Error> {
    // No lane selects among so many cells: see `check_selects`.
    if footprint::cells_by_rules(program, pieces)? > MOST_FOUND {
        return Ok(MOST_FOUND);
    }
    let (mut foreign, mut columns) = (BTreeSet::new(), BTreeSet::new());
    for read in footprint::of_pieces(program, pieces)? {
        let words = lanes::words(program.field(read.field)?.element);
        for offset in read.offsets() {
            let [back, down, right] = of_three(&offset, 0)?;
            for (plane, row) in (0..planes).flat_map(|plane| (0..rows).map(move |row| (plane, row)))
            {
                let (plane, row) = (plane + back, row + down);
                if !(0..planes).contains(&plane) || !(0..rows).contains(&row) {
                    foreign.insert((read.field, words, plane, row));
                }
                let beside = (right..right + width).filter(|column| !(0..width).contains(column));
                columns.extend(beside.map(|column| (read.field, words, plane, row, column)));
            }
        }
    }
    let rows: i64 = foreign.iter().map(|(_, words, ..)| words * width).sum();
    Ok(rows + columns.iter().map(|(_, words, ..)| words).sum::<i64>())
}

/// The tiles that are there when an operation runs, and are read by it or later.
fn live<'c>(kernel: &Kernel<'c>, place: usize) -> Vec<Val<'c>> {
    let mut made = Vec::new();
    for op in kernel.body.iter().take(place) {
        match op {
            TileOp::Load { tile, .. } => made.push(*tile),
            TileOp::Apply(apply) => made.extend(apply.outputs.iter().map(|(_, tile)| *tile)),
            TileOp::Store { .. } => {}
        }
    }
    let uses = |op: &TileOp<'c>, tile: &Val<'c>| match op {
        TileOp::Apply(apply) => apply.inputs.iter().any(|(_, input)| input == tile),
        TileOp::Store { tile: stored, .. } => stored == tile,
        TileOp::Load { .. } => false,
    };
    made.retain(|tile| kernel.body.iter().skip(place).any(|op| uses(op, tile)));
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use stencil_runtime::device::H200;

    #[test]
    fn cells_and_those_of_others_take_registers() {
        // A star of radius 1 on 4 x 4 cells: two rows of four, and two columns of each own row.
        assert_eq!(lane_registers([1, 4, 4], 1, 2 * 4 + 2 * 4), 16 + 4 + 16 + 16);
        // Two fields of two words each.
        assert_eq!(lane_registers([2, 2, 2], 4, 0), 32 + 8 + 16);
    }

    #[test]
    fn as_many_blocks_as_have_registers_share_a_multiprocessor() {
        // 256 threads have 255 registers, two blocks of them 128, three 80, four 64.
        let found = [64, 65, 80, 81, 128, 129, 300].map(|estimate| limit(estimate, 256, &H200));
        assert_eq!(found, [64, 80, 80, 128, 128, 255, 255]);
        // A block of 1024 threads has 64, whatever it needs.
        assert_eq!(limit(90, 1024, &H200), 64);
    }

    #[test]
    fn a_plane_is_missing_in_two_dimensions() {
        assert_eq!(of_three(&[3, 5], 1).ok(), Some([1, 3, 5]));
        assert_eq!(of_three(&[2, 3, 5], 1).ok(), Some([2, 3, 5]));
        assert!(of_three(&[3], 1).is_err());
    }
}
