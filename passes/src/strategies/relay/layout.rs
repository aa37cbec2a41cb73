//! The work of a block on its tile, as far as it is known at compile time: the steps of a warp, how
//! far each warp runs behind the one before, and the rows of shared memory.

use super::NAME;
use super::chain::{self, Part};
use super::registers;
use crate::kernel::lanes::{self, WARP, WIDEST};
use crate::strategies::stream::layout::Layout as Stage;
use crate::strategies::stream::registers::{self as stream_registers, PREFETCH};
use crate::subject::Subject;
use melior::ir::Type;
use melior::ir::operation::OperationLike;
use std::collections::BTreeSet;
use stencil_dialects::affine::Linear;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{Halo, Kernel, TileOp};

/// How a kernel's steps are shared among the warps of a block. Rows and columns are relative to the
/// tile's first cell.
pub struct Layout<'c> {
    /// The first warp's part of the kernel: the load, some applies and the store. Every warp runs
    /// its code.
    pub part: Kernel<'c>,
    /// The pipeline of that part.
    pub stage: Stage<'c>,
    /// Warps of a block.
    pub warps: i64,
    /// Steps of a warp.
    pub steps: i64,
    /// The field.
    pub field: &'c str,
    /// The type of its cells.
    pub element: Type<'c>,
    /// Rows between two barriers.
    pub rows: i64,
    /// Rows beyond those that are loaded which are brought into the level 2 cache; 0 for none.
    pub prefetch: i64,
    /// Cells of a row of all lanes.
    pub row_cells: i64,
    /// Neighbouring cells of a row that a thread loads and stores.
    pub group: i64,
    /// Cells before the tile's first column.
    pub left: i64,
    /// Rows that a warp runs behind the one before.
    pub behind: i64,
    /// Rows before the tile's first.
    pub above: i64,
    /// Rows after the tile's last.
    pub below: i64,
    /// The columns of a lane that rims of columns may lie in; any where there are none.
    pub rim_columns: Option<BTreeSet<i64>>,
    /// Registers that a lane needs, estimated.
    pub estimate: i64,
    /// Registers that a lane may take.
    pub limit: i64,
}

impl<'c> Layout<'c> {
    /// Plans a kernel; `rows` is how many lie between two barriers, and `warps` the number of
    /// warps where one is asked for.
    pub fn plan(
        subject: &Subject<'c, '_>,
        kernel: &Kernel<'c>,
        (rows, warps): (i64, Option<i64>),
    ) -> Result<Self, Error> {
        let (&[_, columns], &[1, width]) =
            (kernel.schedule.tile.as_slice(), kernel.schedule.per_thread.as_slice())
        else {
            let (tile, each) = (&kernel.schedule.tile, &kernel.schedule.per_thread);
            let message = format!(
                "the strategy {NAME} needs a grid of two dimensions and tiled.per_thread = \
                 [1, cells per lane], and here tile and tiled.per_thread are {tile:?} and {each:?}"
            );
            return Err(decline(kernel, Decline::TileShape, message));
        };
        let chain = chain::of(kernel)?;
        let field = chain.field;
        let element = subject.program.field(field)?.element;
        let words = lanes::words(element);
        let Part { kernel: part, stage, warps } =
            chain.share(subject, kernel, (width, words), warps)?;
        let halo = reach(kernel)?;
        let [above, west] = ends(&halo.lower)?.map(|cells| -cells);
        let [below, east] = ends(&halo.upper)?;
        let sector = i64::try_from(lanes::cells_of_a_sector(element)).unwrap_or(1);
        let left = lanes::whole(west, sector);
        let row_cells = WARP * width;
        if left + columns + east > row_cells {
            let message = format!(
                "a tile {columns} columns wide needs {} columns with its halo, and a warp with \
                 {width} cells per lane has {row_cells}",
                left + columns + east
            );
            return Err(decline(kernel, Decline::TileShape, message));
        }
        let (loaded, stored) = part_ends(&part, &stage)?;
        let estimate = registers::estimate(&stage.pipeline, (width, words));
        let limit = stream_registers::limit(estimate, warps * WARP, subject.device);
        let steps = chain.steps(warps);
        let behind = rows + stored - loaded;
        let rim_columns = match stage.selects || stage.wraps || stage.total.values().any(|all| !all)
        {
            true => None,
            false => rim_columns(subject.program, &part, (left, row_cells))?,
        };
        Ok(Self {
            part,
            stage,
            warps,
            steps,
            field,
            element,
            rows,
            prefetch: stream_registers::prefetch_of_devices(PREFETCH, &subject.devices),
            row_cells,
            group: group(element, columns),
            left,
            behind,
            above,
            below,
            rim_columns,
            estimate,
            limit,
        })
    }

    /// Threads of a block per dimension, slowest first.
    pub fn threads(&self) -> Vec<i64> {
        vec![self.warps, WARP]
    }

    /// Rows that a block's last warp runs behind the rows that are loaded.
    pub fn fill(&self) -> i64 {
        self.warps * self.behind
    }

    /// Rows of the loop's body: a multiple of those between two barriers.
    pub fn body(&self) -> i64 {
        lanes::whole(self.stage.pipeline.unroll, self.rows)
    }

    /// The cells around a tile that a block without checks loads.
    pub fn loaded(&self, kernel: &Kernel) -> Halo {
        let columns = kernel.schedule.tile.last().copied().unwrap_or(1);
        Halo {
            lower: vec![-self.above, -self.left],
            upper: vec![self.below, self.row_cells - self.left - columns],
        }
    }

    /// Cells at both ends of the grid that need no tile of their own: the first row of tiles has
    /// only the rows at the rim, because code with checks is slower.
    pub fn margin(&self, kernel: &Kernel<'c>) -> Vec<[i64; 2]> {
        let rows = kernel.schedule.tile.first().copied().unwrap_or(1);
        let first = self.above.max(1);
        let before = if !self.stage.wraps && rows > first { first - rows } else { 0 };
        vec![[before, 0], [0, 0]]
    }
}

/// Cells of the widest access of which a tile's row has a whole number.
fn group(element: Type, columns: i64) -> i64 {
    let widest = WIDEST / (4 * lanes::words(element)).min(WIDEST);
    (1..=widest).rev().find(|cells| columns % cells == 0 && widest % cells == 0).unwrap_or(1)
}

/// How far all loads and applies of a kernel reach.
fn reach(kernel: &Kernel) -> Result<Halo, Error> {
    let mut halo = Halo::none(kernel.schedule.tile.len());
    for op in &kernel.body {
        match op {
            TileOp::Load { tile, .. } => halo = halo.hull(&kernel.tile(*tile)?.halo),
            TileOp::Apply(apply) => halo = halo.hull(&apply.halo),
            TileOp::Store { .. } => {}
        }
    }
    Ok(halo)
}

fn ends(bounds: &[i64]) -> Result<[i64; 2], Error> {
    <[i64; 2]>::try_from(bounds).map_err(|_| Error::internal("a halo of other dimensions"))
}

/// The lags of the loaded and of the stored value.
fn part_ends<'c>(part: &Kernel<'c>, stage: &Stage<'c>) -> Result<(i64, i64), Error> {
    let (mut loaded, mut stored) = (0, 0);
    for op in &part.body {
        match op {
            TileOp::Load { tile, .. } => loaded = stage.window(*tile)?.lag,
            TileOp::Store { tile, .. } => stored = stage.window(*tile)?.lag,
            TileOp::Apply(_) => {}
        }
    }
    Ok((loaded, stored))
}

/// The columns of a lane that hold the first or the last columns of the grid in some tile, those
/// that no piece covers; none where they are not known, or as many as a lane has. A tile's rows
/// begin `left` cells before the tile and have `row_cells`.
fn rim_columns<'c>(
    program: &Program<'c>,
    part: &Kernel<'c>,
    (left, row_cells): (i64, i64),
) -> Result<Option<BTreeSet<i64>>, Error> {
    let schedule = &part.schedule;
    let (Some(columns), Some(width)) = (schedule.tile.last(), schedule.per_thread.last()) else {
        return Ok(None);
    };
    let last_of = |map| Linear::of_map(map).and_then(|bounds| bounds.last().cloned());
    let gap = |from, to| {
        let gap = last_of(to)?.minus(&last_of(from)?)?;
        gap.is_constant().then_some(gap.constant)
    };
    let mut found = BTreeSet::new();
    for apply in part.applies() {
        let ([piece], [(field, _)]) = (apply.pieces.as_slice(), apply.outputs.as_slice()) else {
            return Ok(None);
        };
        let grid = program.grid_of(field)?;
        let (Some(before), Some(after), Some(last)) = (
            gap(grid.lower, piece.lower),
            gap(piece.upper, grid.upper),
            gap(grid.lower, grid.upper),
        ) else {
            return Ok(None);
        };
        if before >= *width || after >= *width {
            return Ok(None);
        }
        for column in (0..before).chain(last + 1 - after..=last) {
            let place = column + left;
            let tiles = (place - row_cells).div_euclid(*columns) + 1..=place.div_euclid(*columns);
            found.extend(tiles.map(|tile| (place - tile * columns).rem_euclid(*width)));
        }
    }
    Ok(Some(found))
}

/// A decline at the tile kernel.
pub fn decline(kernel: &Kernel, reason: Decline, message: String) -> Error {
    Error::declined(reason, message).at(mlir::place(kernel.op.location()))
}
