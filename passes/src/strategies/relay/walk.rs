//! The walk of a block along its tile: the loops over rows.

use super::layout::Layout;
use super::rings::Rings;
use super::transfers::{Group, ShareChecks, Shares};
use crate::kernel::frame::Frame;
use crate::kernel::interior::Limits;
use crate::kernel::lane_cells::{Beyond, LaneCells};
use crate::kernel::lanes::WARP;
use crate::strategies::stream::in_flight::InFlight;
use crate::strategies::stream::rims::{RimChecks, Rims};
use crate::strategies::stream::updates::Updates;
use melior::ir::operation::OperationLike;
use std::collections::VecDeque;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::tiled::{Kernel, TileOp};

/// The code of one walk.
pub struct Walk<'c, 'p> {
    /// The kernel that is made.
    frame: &'p Frame<'c, 'p>,
    /// The same as the warp sees it, whose steps are later ones.
    later: Frame<'c, 'p>,
    kernel: &'p Kernel<'c>,
    layout: &'p Layout<'c>,
    cells: LaneCells<'c>,
    shares: Shares<'c, 'p>,
    rings: Rings<'c>,
    /// Rows that the warp runs behind those that are loaded.
    behind: Val<'c>,
    /// The tile's first row.
    first: Val<'c>,
    /// The first row that is loaded, and the end of the loop.
    ends: (Val<'c>, Val<'c>),
    beyond: Beyond,
}

/// The rims that a tile may meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// None.
    Inner,
    /// Rims of columns.
    Columns,
    /// Those of rows and columns.
    Rim,
}

/// The checks of a tile at a rim.
struct Checks<'c> {
    /// Whether it may be a rim of rows.
    rows: bool,
    lane: RimChecks<'c>,
    shares: ShareChecks<'c>,
}

/// The first slots of the halves of the rings: of the one that is filled, and of the other, whose
/// rows are taken.
#[derive(Clone, Copy)]
struct Halves<'c> {
    put: Val<'c>,
    take: Val<'c>,
}

impl<'c, 'p> Walk<'c, 'p> {
    /// Computes what all loops need.
    pub fn new(
        frame: &'p Frame<'c, 'p>,
        kernel: &'p Kernel<'c>,
        layout: &'p Layout<'c>,
        tile_rows: Val<'c>,
    ) -> Result<Self, Error> {
        let builder = &frame.builder;
        let ([first, origin], [warp, lane]) = (frame.origin.as_slice(), frame.thread.as_slice())
        else {
            return Err(Error::internal("a tile that has not two dimensions"));
        };
        let beyond = if layout.stage.wraps { Beyond::Repeated } else { Beyond::Nearest };
        let last = frame.scope.bounds(builder, frame.scope.hull.upper)?.first().copied();
        let last = last.ok_or_else(|| Error::internal("a grid of no dimensions"))?;
        let left = builder.add_constant(builder.binary("arith.subi", last, *first)?, 1)?;
        let rows = builder.binary("arith.minsi", tile_rows, left)?;
        let width = layout.stage.width;
        let column = builder.multiply_constant(*lane, width)?;
        let left = builder.add_constant(builder.add(*origin, column)?, -layout.left)?;
        let columns = (0..width).map(|cell| builder.add_constant(left, cell));
        let cells = LaneCells { rows: vec![None], columns: columns.collect::<Result<_, _>>()? };
        let thread = builder.add(builder.multiply_constant(*warp, WARP)?, *lane)?;
        let tile_columns = kernel.schedule.tile.last().copied().unwrap_or(1);
        let shares = Shares::new(frame, layout, (thread, tile_columns), (*first, rows), beyond)?;
        let buffer = frame.shared.first().copied();
        let buffer = buffer.ok_or_else(|| Error::internal("a block without rings"))?;
        let mut start = builder.add_constant(*first, -layout.above)?;
        if beyond == Beyond::Nearest {
            // Rows before the grid alone are skipped.
            let grid = frame.scope.program.grid_of(layout.field)?;
            if let Some(lower) = frame.scope.bounds(builder, grid.lower)?.first() {
                start = builder.binary("arith.maxsi", *lower, start)?;
            }
        }
        let end = builder.add_constant(builder.add(*first, rows)?, layout.fill())?;
        let steps = builder.multiply_constant(*warp, layout.steps)?;
        Ok(Self {
            frame,
            later: frame.later(builder, steps)?,
            kernel,
            layout,
            cells,
            shares,
            rings: Rings::new(builder, layout, buffer, (*warp, *lane))?,
            behind: builder.multiply_constant(*warp, layout.behind)?,
            first: *first,
            ends: (start, end),
            beyond,
        })
    }

    /// The whole tile: a version without checks for tiles at no rim, and one with.
    pub fn tile(&self) -> Result<(), Error> {
        let builder = &self.frame.builder;
        self.begin(builder)?;
        let limits = Limits::of(self.frame, self.kernel, |op, halo| {
            Ok(match op {
                TileOp::Load { .. } => self.layout.loaded(self.kernel),
                _ => halo.clone(),
            })
        })?;
        // Without checks all cells of the layout are computed, those beyond the halo too.
        let limits = limits.filter(|_| self.layout.stage.total.values().all(|total| *total));
        let Some(limits) = limits else { return self.version(builder, Version::Rim) };
        let version = |version| {
            move |builder: &Builder<'c>| self.version(builder, version).map(|()| Vec::new())
        };
        let [from, to] = limits.range(self.frame, builder)?;
        let rows = self.kernel.schedule.tile.first().copied().unwrap_or(1);
        let (first, last) = (self.first, builder.add_constant(self.first, rows - 1)?);
        let after = builder.compare(Compare::Ge, first, from)?;
        let rows = builder.both(after, builder.compare(Compare::Le, last, to)?)?;
        let columns = limits.condition(self.frame, builder, self.kernel, 1)?;
        let columns = columns.ok_or_else(|| Error::internal("a kernel without limits"))?;
        // All dimensions tell other pieces from the main one.
        let single = self.layout.part.applies().all(|apply| apply.pieces.len() == 1);
        let at_columns = if single { Version::Columns } else { Version::Rim };
        let beside = |builder: &Builder<'c>| {
            builder.choose(columns, &[], version(Version::Inner), version(at_columns))
        };
        builder.choose(rows, &[], beside, version(Version::Rim)).map(|_| ())
    }

    /// Zeros in place of the rows that each warp hands over before the first barrier.
    fn begin(&self, builder: &Builder<'c>) -> Result<(), Error> {
        let zero = builder.zero(self.layout.element)?;
        let zeros = vec![zero; usize::try_from(self.layout.stage.width).unwrap_or(1)];
        let mut slots = self.layout.rows..2 * self.layout.rows;
        slots.try_for_each(|slot| self.rings.put(builder, builder.index(slot)?, &zeros))
    }

    /// The loop over rows.
    fn version(&self, builder: &Builder<'c>, version: Version) -> Result<(), Error> {
        let checks = match version {
            Version::Inner => None,
            Version::Columns | Version::Rim => {
                let about = (&self.layout.part, &self.cells);
                let vector = |_: &str| Ok(1);
                let lane = RimChecks::new(&self.later, builder, about, self.beyond, vector)?;
                let rows = version == Version::Rim;
                Some(Checks { rows, lane, shares: self.shares.checks(builder)? })
            }
        };
        let (checks, rows) = (checks.as_ref(), self.layout.rows);
        let (start, end) = self.ends;
        let first = self.load(builder, start, checks)?;
        self.fill(builder, builder.index(rows)?, &first)?;
        barrier(builder)?;
        let initial = self.initial(builder)?;
        // At a rim of rows registers matter more than moves.
        let body = if version == Version::Rim { rows } else { self.layout.body() };
        let bounds = (start, end, builder.index(body)?);
        builder.carry(bounds, &initial.flat(), |builder, row, carried| {
            let mut state = initial.with(carried);
            for first in (0..body).step_by(usize::try_from(rows).unwrap_or(1)) {
                let row = builder.add_constant(row, first)?;
                state = self.between_barriers(builder, state, row, checks)?;
            }
            Ok(state.flat())
        })?;
        Ok(())
    }

    /// Zeros in all windows.
    fn initial(&self, builder: &Builder<'c>) -> Result<InFlight<'c>, Error> {
        let stage = &self.layout.stage;
        let zeros = stage.elements.iter().map(|element| builder.zero(*element));
        let zeros = zeros.collect::<Result<Vec<_>, _>>()?;
        let waiting = vec![VecDeque::new(); zeros.len()];
        Ok(InFlight::new(&stage.pipeline, stage.width, &zeros, waiting))
    }

    /// The thread's cells of the rows from one on, as many as lie between two barriers.
    fn load(
        &self,
        builder: &Builder<'c>,
        first: Val<'c>,
        checks: Option<&Checks<'c>>,
    ) -> Result<Vec<Vec<Vec<Val<'c>>>>, Error> {
        let checks = checks.map(|checks| &checks.shares);
        let row = |row| self.shares.load(builder, builder.add_constant(first, row)?, checks);
        (0..self.layout.rows).map(row).collect()
    }

    /// Puts loaded rows into the slots from one on.
    fn fill(
        &self,
        builder: &Builder<'c>,
        first: Val<'c>,
        rows: &[Vec<Vec<Val<'c>>>],
    ) -> Result<(), Error> {
        for (row, cells) in (0..).zip(rows) {
            let slot = builder.add_constant(first, row)?;
            self.shares.keep(builder, cells, |builder, place, cells| {
                self.rings.fill(builder, (slot, place), cells)
            })?;
        }
        Ok(())
    }

    /// The work between two barriers. `first` is the row that the first warp takes first.
    fn between_barriers(
        &self,
        builder: &Builder<'c>,
        state: InFlight<'c>,
        first: Val<'c>,
        checks: Option<&Checks<'c>>,
    ) -> Result<InFlight<'c>, Error> {
        let layout = self.layout;
        let halves = self.halves(builder, first)?;
        let group = layout.group;
        let mut done = Vec::new();
        for row in 0..layout.rows {
            let slot = builder.add_constant(halves.take, row)?;
            let cells = |share: &Group<'c>| self.rings.done(builder, (slot, share.place), group);
            done.push(self.shares.groups.iter().map(cells).collect::<Result<Vec<_>, _>>()?);
        }
        let next = self.load(builder, builder.add_constant(first, layout.rows)?, checks)?;
        if layout.prefetch > 0 && !checks.is_some_and(|checks| checks.rows) {
            for number in 0..layout.rows {
                let row = builder.add_constant(first, layout.rows + layout.prefetch + number)?;
                self.shares.prefetch(builder, row, checks.map(|checks| &checks.shares))?;
            }
        }
        for (number, cells) in (0..).zip(&done) {
            let row = builder.add_constant(first, number - layout.fill())?;
            self.shares.store(builder, row, cells, checks.map(|checks| &checks.shares))?;
        }
        let first = builder.binary("arith.subi", first, self.behind)?;
        let mut state = state;
        if checks.is_some_and(|checks| checks.rows) && layout.rows > 1 {
            let bounds = (builder.index(0)?, builder.index(layout.rows)?, builder.index(1)?);
            let flat = builder.carry(bounds, &state.flat(), |builder, number, carried| {
                let mut state = state.with(carried);
                self.row(builder, &mut state, (first, number), halves, checks)?;
                Ok(state.flat())
            })?;
            state = state.with(&flat);
        } else {
            for number in 0..layout.rows {
                self.row(builder, &mut state, (first, builder.index(number)?), halves, checks)?;
            }
        }
        self.fill(builder, halves.put, &next)?;
        barrier(builder)?;
        Ok(state)
    }

    /// The halves that are used between two barriers. `first` is the first row after one.
    fn halves(&self, builder: &Builder<'c>, first: Val<'c>) -> Result<Halves<'c>, Error> {
        let rows = self.layout.rows;
        let turn = builder.binary("arith.subi", first, self.ends.0)?;
        let turn = match rows {
            1 => turn,
            _ => builder.binary("arith.divui", turn, builder.index(rows)?)?,
        };
        let put = builder.binary("arith.andi", turn, builder.index(1)?)?;
        let put = builder.multiply_constant(put, rows)?;
        Ok(Halves { put, take: builder.binary("arith.subi", builder.index(rows)?, put)? })
    }

    /// One row of the warp: the first one since the last barrier, and its number since then.
    fn row(
        &self,
        builder: &Builder<'c>,
        state: &mut InFlight<'c>,
        (first, number): (Val<'c>, Val<'c>),
        halves: Halves<'c>,
        checks: Option<&Checks<'c>>,
    ) -> Result<(), Error> {
        let (stage, part) = (&self.layout.stage, &self.layout.part);
        let row = builder.add(first, number)?;
        let slot = |builder: &Builder<'c>, half| builder.add(half, number);
        let rims = Rims {
            planes: checks.is_some_and(|checks| checks.rows),
            rim_checks: checks.map(|checks| &checks.lane),
            columns: self.layout.rim_columns.as_ref(),
        };
        let (frame, cells, beyond) = (&self.later, &self.cells, self.beyond);
        let updates = Updates { frame, layout: stage, cells, beyond };
        let push = |state: &mut InFlight<'c>, tile, cells: &[Val<'c>]| {
            let value = stage.value(tile)?;
            for (position, cell) in stage.positions().zip(cells) {
                state.push(value, position, *cell)?;
            }
            updates.take_edges(builder, state, value)
        };
        let mut loaded = 0;
        for (operation, op) in part.body.iter().enumerate() {
            match op {
                TileOp::Load { tile, .. } => {
                    loaded = stage.window(*tile)?.lag;
                    let taken = self.rings.take(builder, slot(builder, halves.take)?)?;
                    push(state, *tile, &taken)?;
                }
                TileOp::Apply(apply) => {
                    let builder = &Builder { location: apply.op.location(), ..*builder };
                    let Some((_, tile)) = apply.outputs.first() else { continue };
                    let lag = stage.window(*tile)?.lag - loaded;
                    let row = builder.add_constant(row, -lag)?;
                    let new = updates.apply(builder, state, (operation, apply), row, rims)?;
                    push(state, *tile, &new.concat())?;
                }
                TileOp::Store { tile, .. } => {
                    let value = stage.value(*tile)?;
                    let cells = stage.positions().map(|position| state.get(value, position, 0));
                    let cells = cells.collect::<Result<Vec<_>, _>>()?;
                    self.rings.put(builder, slot(builder, halves.put)?, &cells)?;
                }
            }
        }
        state.age();
        Ok(())
    }
}

fn barrier(builder: &Builder) -> Result<(), Error> {
    builder.op("gpu.barrier", &[], &[], &[]).map(|_| ())
}
