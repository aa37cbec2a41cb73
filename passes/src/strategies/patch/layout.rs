//! Where the cells of a block's tile lie: which rows and columns a lane holds.

use crate::analysis::footprint;
use crate::kernel::block_limits::steps_per_launch;
use crate::kernel::lanes::{self, WARP};
use crate::kernel::pieces;
use crate::schedule::code_size::MOST_FOUND;
use crate::subject::Subject;
use melior::ir::operation::OperationLike;
use std::collections::BTreeMap;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::tiled::{self, Halo, Kernel, TileOp};
use stencil_runtime::device::Device;
use stencil_runtime::model;

/// Registers for addresses, conditions and what a point function computes.
const OVERHEAD: i64 = 24;

/// Blocks that share a multiprocessor, at most.
const MOST_BLOCKS: u32 = 8;

/// The most registers of a lane by the estimate: code for more takes minutes to make.
const MOST_REGISTERS: i64 = 512;

/// A block's tile with its halo. All numbers are cells unless stated otherwise.
pub struct Layout<'c> {
    /// Rows of a lane.
    pub rows: i64,
    /// Columns of a lane.
    pub width: i64,
    /// Lanes of a row.
    pub lanes: i64,
    /// Parts of the block, which hold rows one above the other.
    pub parts: i64,
    /// Rows of the block above the tile's first.
    pub top: i64,
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
    /// A decline: other grids than those of two dimensions, tiles that no lanes hold, and lanes
    /// that hold or select among too many cells.
    pub fn plan(subject: &Subject<'c, '_>, kernel: &Kernel<'c>) -> Result<Self, Error> {
        let (module, program) = (subject.module, subject.program);
        let (tile, per_thread) = (&kernel.schedule.tile, &kernel.schedule.per_thread);
        let (&[tile_rows, tile_columns], &[rows, width]) =
            (tile.as_slice(), per_thread.as_slice())
        else {
            let message = format!(
                "the strategy patch needs a grid of two dimensions and tiled.per_thread = [rows \
                 per lane, columns per lane], and here tile and tiled.per_thread are {tile:?} and \
                 {per_thread:?}"
            );
            return Err(decline(kernel, Decline::TileShape, message));
        };
        let halo = reach(kernel);
        let ([north, west], [south, east]) = (halo.lower.as_slice(), halo.upper.as_slice()) else {
            return Err(Error::internal("a halo of other than two dimensions"));
        };
        let (top, left) = (-north, lanes::whole(-west, width));
        let needed = left + tile_columns + east;
        if tile_columns % width != 0 {
            let message = format!(
                "a tile's columns must be a multiple of the {width} columns per lane, and \
                 {tile_columns} are not"
            );
            return Err(decline(kernel, Decline::TileShape, message));
        }
        if needed > WARP * width {
            let message = format!(
                "a tile {tile_columns} columns wide with {} needs {needed} columns with its halo, \
                 and a warp with {width} columns per lane has {}",
                steps_per_launch(&kernel.schedule),
                WARP * width
            );
            return Err(decline(kernel, Decline::TileShape, message));
        }
        check_selects(subject, kernel, rows.saturating_mul(width))?;
        // Narrow tiles leave room for more rows: two or more of their rows share a warp.
        let lanes = WARP.min((needed as u64).div_ceil(width as u64).next_power_of_two() as i64);
        let of_warp = WARP / lanes;
        let parts = (top + tile_rows + south + rows - 1) / rows;
        let parts = (parts + of_warp - 1) / of_warp * of_warp;
        let registers = registers(subject, kernel, (rows, width))?;
        if registers > MOST_REGISTERS {
            let message = format!(
                "the cells of a lane with {rows} x {width} cells take {registers} registers, and \
                 the strategy patch holds {MOST_REGISTERS} at most; give a lane fewer cells, or \
                 choose another strategy"
            );
            return Err(decline(kernel, Decline::Registers, message));
        }
        let threads = u32::try_from(parts * lanes).unwrap_or(u32::MAX);
        let limit = limit(registers, threads, subject.device);
        let mut total = BTreeMap::new();
        for piece in kernel.applies().flat_map(|apply| &apply.pieces) {
            total.insert(piece.function, pieces::is_total(module, program, piece)?);
        }
        let wraps = tiled::wraps(program, kernel)?;
        Ok(Self { rows, width, lanes, parts, top, left, registers, limit, total, wraps })
    }

    /// Threads of a block: parts, and lanes of a row.
    pub fn threads(&self) -> [i64; 2] {
        [self.parts, self.lanes]
    }

    /// Whether every function has a result for any operands, so that all cells can be computed.
    pub fn all_total(&self) -> bool {
        self.total.values().all(|total| *total)
    }

    /// Cells of a lane.
    pub fn cells(&self) -> usize {
        usize::try_from(self.rows * self.width).unwrap_or(0)
    }

    /// The number of a lane's own cell.
    pub fn number(&self, row: i64, column: i64) -> Option<usize> {
        usize::try_from(row * self.width + column).ok()
    }

    /// Rows and columns of a lane's cells, in the order of their numbers.
    pub fn positions(&self) -> impl Iterator<Item = (i64, i64)> + use<'c> {
        let (rows, width) = (self.rows, self.width);
        (0..rows).flat_map(move |row| (0..width).map(move |column| (row, column)))
    }

    /// Cells at both ends of the grid that need no tile of their own, because a tile has no halo
    /// where the grid ends. For columns this holds only if tiles then still begin with a sector.
    pub fn margin(&self, subject: &Subject, kernel: &Kernel) -> Result<Vec<[i64; 2]>, Error> {
        let &[rows, columns] = kernel.schedule.tile.as_slice() else { return Ok(Vec::new()) };
        if self.wraps || !self.all_total() {
            return Ok(Vec::new());
        }
        let mut whole = true;
        for tile in kernel.tiles() {
            let element = subject.program.field(tile.field)?.element;
            whole &= lanes::whole_sectors(element, self.left);
        }
        let [below, right] = self.behind([rows, columns]);
        let columns = if whole { [self.left, right] } else { [0, 0] };
        Ok(vec![[self.top, below], columns])
    }

    /// Rows and columns of the block behind the tile's last.
    fn behind(&self, [rows, columns]: [i64; 2]) -> [i64; 2] {
        let below = self.parts * self.rows - self.top - rows;
        [below, self.lanes * self.width - self.left - columns]
    }

    /// The cells that an operation touches without checks: a load touches all of the block.
    pub fn touched(&self, kernel: &Kernel<'c>, op: &TileOp<'c>, halo: &Halo) -> Halo {
        match (op, kernel.schedule.tile.as_slice()) {
            (TileOp::Load { .. }, &[rows, columns]) => {
                let [below, right] = self.behind([rows, columns]);
                Halo { lower: vec![-self.top, -self.left], upper: vec![below, right] }
            }
            _ => halo.clone(),
        }
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
fn registers(
    subject: &Subject,
    kernel: &Kernel,
    (rows, width): (i64, i64),
) -> Result<i64, Error> {
    let program = subject.program;
    let words = |field: &str| Ok::<_, Error>(lanes::words(program.field(field)?.element));
    let mut most = 0;
    for (place, op) in kernel.body.iter().enumerate() {
        let TileOp::Apply(apply) = op else { continue };
        let (mut held, mut widest, mut new) = (0, 1, 0);
        for tile in live(kernel, place) {
            held += words(kernel.tile(tile)?.field)? * rows * width;
        }
        let mut reach = Halo::none(2);
        for read in footprint::of_pieces(program, &apply.pieces)? {
            if read.reach.lower.len() == 2 {
                reach = reach.hull(&read.reach);
            }
            widest = words(read.field)?.max(widest);
        }
        for (field, _) in &apply.outputs {
            new += words(field)?;
        }
        most = most.max(lane_registers((rows, width), (held, widest, new), &reach));
    }
    Ok(most)
}

/// Registers of a lane of some rows and columns that holds cells of so many words, and reads cells
/// of `widest` words each in reach for new values of `new` words. Fitted to what ptxas of CUDA 13.0
/// needs for stars and boxes of radius 1 and 2 without spilling.
pub fn lane_registers(
    (rows, width): (i64, i64),
    (held, widest, new): (i64, i64, i64),
    reach: &Halo,
) -> i64 {
    let ([up, before], [down, after]) = (reach.lower.as_slice(), reach.upper.as_slice()) else {
        return held + OVERHEAD;
    };
    let (others, columns) = (down - up, after - before);
    // New rows take the registers of old ones, but for those that are still read.
    let beside = (1 - up).clamp(1, rows) * width * new;
    held + held / 4 + widest * (others * width + columns * (others + 1)) + beside + OVERHEAD
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
