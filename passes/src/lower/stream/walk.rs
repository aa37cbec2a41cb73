//! The walk of a warp down its strip: the loop over rows.

use super::super::emit::Frame;
use super::super::pieces::{self, Candidate};
use super::super::{interior, lanes};
use super::checks::{Clamp, Cut};
use super::in_flight::InFlight;
use super::strip::Strip;
use crate::analysis::index_width::constant_extents;
use melior::ir::operation::OperationLike;
use melior::ir::{Module, ValueLike};
use std::collections::{BTreeMap, VecDeque};
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::Piece;
use stencil_dialects::tiled::{Apply, Kernel, TileOp};

/// Rows that a tile at a rim loads before their turn.
const RIM_AHEAD: i64 = 2;

/// The code of one walk.
pub struct Walk<'c, 'p> {
    frame: &'p Frame<'c, 'p>,
    module: &'p Module<'c>,
    kernel: &'p Kernel<'c>,
    strip: &'p Strip<'c>,
    /// The lane's columns.
    columns: Vec<Val<'c>>,
    /// Whether the lane's cells belong to the tile.
    in_tile: Val<'c>,
    /// The first iteration's row.
    start: Val<'c>,
}

/// What a tile at a rim checks; empty for others.
struct Checks<'c> {
    /// Grids, one an operation that loads or stores.
    grids: BTreeMap<usize, (Cut<'c>, Clamp<'c>)>,
    /// Pieces, by their operation and place.
    pieces: BTreeMap<(usize, usize), Cut<'c>>,
}

impl<'c, 'p> Walk<'c, 'p> {
    /// Computes what both versions need.
    pub fn new(
        frame: &'p Frame<'c, 'p>,
        builder: &Builder<'c>,
        module: &'p Module<'c>,
        kernel: &'p Kernel<'c>,
        strip: &'p Strip<'c>,
    ) -> Result<Self, Error> {
        let ([lane], [first_row, first_column]) = (frame.thread.as_slice(), frame.origin.as_slice()) else {
            return Err(Error::internal("a warp's tile has two dimensions"));
        };
        let (width, columns) = (strip.width, kernel.schedule.tile.get(1).copied().unwrap_or(0));
        let offset = builder.binary("arith.muli", *lane, builder.index(width)?)?;
        let column = builder.add_constant(builder.add(*first_column, offset)?, -strip.left)?;
        let beyond = builder.add_constant(*lane, -(strip.left / width))?;
        Ok(Self {
            frame,
            module,
            kernel,
            strip,
            columns: (0..width).map(|cell| builder.add_constant(column, cell)).collect::<Result<_, _>>()?,
            in_tile: builder.compare(Compare::Below, beyond, builder.index(columns / width)?)?,
            start: builder.add_constant(*first_row, strip.first)?,
        })
    }

    /// The loop over rows.
    pub fn rows(&self, builder: &Builder<'c>, checked: bool) -> Result<(), Error> {
        let checks = if checked { Some(self.checks(builder)?) } else { None };
        let strip = self.strip;
        // Tiles at a rim are few: a short body takes fewer registers, and the kernel as many as the
        // larger of both versions.
        let unroll = if checked { 1 } else { strip.pipeline.unroll };
        let rows = builder.index(self.kernel.schedule.tile.first().copied().unwrap_or(1))?;
        let (rows, iterations) = if checked {
            let rows = builder.binary("arith.minsi", rows, self.rows_left(builder)?)?;
            (rows, builder.add_constant(rows, strip.fill)?)
        } else {
            (rows, builder.index(strip.iterations(self.kernel))?)
        };
        let end = builder.add(self.start, iterations)?;
        let initial = self.initial(builder, checks.as_ref())?;
        let bounds = (self.start, end, builder.index(unroll)?);
        builder.carry(bounds, &initial.flat(), |builder, row, carried| {
            let mut state = initial.with(carried);
            for number in 0..unroll {
                let row = builder.add_constant(row, number)?;
                self.iteration(builder, &mut state, row, rows, checks.as_ref())?;
                state.age();
            }
            Ok(state.flat())
        })?;
        Ok(())
    }

    /// Rows loaded before their turn; fewer at a rim, to save registers.
    fn ahead(&self, checks: Option<&Checks<'c>>) -> i64 {
        let ahead = self.strip.pipeline.ahead;
        if checks.is_some() { ahead.min(RIM_AHEAD) } else { ahead }
    }

    /// Rows of what the tiles cut from the tile's first on.
    fn rows_left(&self, builder: &Builder<'c>) -> Result<Val<'c>, Error> {
        let last = self
            .frame
            .bounds(builder, self.frame.hull.upper)?
            .first()
            .copied()
            .ok_or_else(|| Error::internal("a grid of no dimensions"))?;
        builder.add_constant(builder.binary("arith.subi", last, self.first_row()?)?, 1)
    }

    fn first_row(&self) -> Result<Val<'c>, Error> {
        self.frame.origin.first().copied().ok_or_else(|| Error::internal("a tile of no dimensions"))
    }

    fn first_column(&self) -> Result<Val<'c>, Error> {
        self.columns.first().copied().ok_or_else(|| Error::internal("a lane of no cells"))
    }

    fn checks(&self, builder: &Builder<'c>) -> Result<Checks<'c>, Error> {
        let (mut grids, mut pieces) = (BTreeMap::new(), BTreeMap::new());
        let cut = |bounds| Cut::new(self.frame, builder, bounds, &self.columns);
        for (operation, op) in self.kernel.body.iter().enumerate() {
            match op {
                TileOp::Load { field, .. } | TileOp::Store { field, .. } => {
                    let grid = self.frame.program.grid_of(field)?;
                    let bounds = (grid.lower, grid.upper);
                    grids.insert(operation, (cut(bounds)?, Clamp::new(self.frame, builder, grid, &self.columns)?));
                }
                TileOp::Apply(apply) => {
                    for (place, piece) in apply.pieces.iter().enumerate() {
                        pieces.insert((operation, place), cut((piece.lower, piece.upper))?);
                    }
                }
            }
        }
        Ok(Checks { grids, pieces })
    }

    /// Zeros in all windows, and the first rows of the loads.
    fn initial(&self, builder: &Builder<'c>, checks: Option<&Checks<'c>>) -> Result<InFlight<'c>, Error> {
        let (mut zeros, mut waiting) = (Vec::new(), Vec::new());
        for (operation, op) in self.kernel.body.iter().enumerate() {
            let fields: Vec<&str> = match op {
                TileOp::Load { field, .. } => vec![field],
                TileOp::Apply(apply) => apply.outputs.iter().map(|(field, _)| *field).collect(),
                TileOp::Store { .. } => continue,
            };
            for field in fields {
                let element = self.frame.program.field(field)?.element;
                zeros.push(builder.zero(element)?);
                let mut queue = VecDeque::new();
                if let TileOp::Load { tile, .. } = op {
                    for number in 0..self.ahead(checks) {
                        let row = builder.add_constant(self.start, number - self.strip.lag(*tile)?)?;
                        queue.push_back(self.load(builder, operation, field, row, checks)?);
                    }
                }
                waiting.push(queue);
            }
        }
        Ok(InFlight::new(&self.strip.pipeline, self.strip.width, &zeros, waiting))
    }

    /// One row of every value; `row` is the row of values without lag.
    fn iteration(
        &self,
        builder: &Builder<'c>,
        state: &mut InFlight<'c>,
        row: Val<'c>,
        rows: Val<'c>,
        checks: Option<&Checks<'c>>,
    ) -> Result<(), Error> {
        for (operation, op) in self.kernel.body.iter().enumerate() {
            match op {
                TileOp::Load { op, field, tile } => {
                    let builder = &Builder { location: op.location(), ..*builder };
                    let ahead = builder.add_constant(row, self.ahead(checks) - self.strip.lag(*tile)?)?;
                    let place = self.strip.place(*tile)?;
                    let loaded = self.load(builder, operation, field, ahead, checks)?;
                    let cells = state.exchange(place, loaded)?;
                    self.push(builder, state, place, &cells)?;
                }
                TileOp::Apply(apply) => {
                    let builder = &Builder { location: apply.op.location(), ..*builder };
                    let Some((_, first)) = apply.outputs.first() else { continue };
                    let row = builder.add_constant(row, -self.strip.lag(*first)?)?;
                    let cells = self.apply(builder, state, operation, apply, row, checks)?;
                    for (number, (_, tile)) in apply.outputs.iter().enumerate() {
                        let cells: Vec<_> = cells.iter().filter_map(|values| values.get(number)).copied().collect();
                        self.push(builder, state, self.strip.place(*tile)?, &cells)?;
                    }
                }
                TileOp::Store { op, field, tile } => {
                    let builder = &Builder { location: op.location(), ..*builder };
                    let row = builder.add_constant(row, -self.strip.lag(*tile)?)?;
                    let place = self.strip.place(*tile)?;
                    let cells =
                        (0..self.strip.width).map(|cell| state.get(place, cell, 0)).collect::<Result<Vec<_>, _>>()?;
                    self.store(builder, operation, field, &cells, (row, rows), checks)?;
                }
            }
        }
        Ok(())
    }

    /// A value's new row: the lane's own cells, and those of other lanes that come in with it.
    fn push(
        &self,
        builder: &Builder<'c>,
        state: &mut InFlight<'c>,
        value: usize,
        cells: &[Val<'c>],
    ) -> Result<(), Error> {
        for (column, cell) in (0..).zip(cells) {
            state.push(value, column, *cell)?;
        }
        let window =
            self.strip.pipeline.windows.get(value).ok_or_else(|| Error::internal("a value without a window"))?;
        for edge in &window.edges {
            let width = self.strip.width;
            let cell = state.get(value, edge.column.rem_euclid(width), edge.first)?;
            state.push(value, edge.column, lanes::shuffle(builder, cell, edge.column.div_euclid(width))?)?;
        }
        Ok(())
    }

    /// Cells of the widest access to a field's rows that is sure to be aligned.
    fn vector(&self, field: &str) -> Result<i64, Error> {
        let program = self.frame.program;
        let grid = program.grid_of(field)?;
        let cells = lanes::vector_length(program.field(field)?.element, self.strip.width);
        let shift = interior::difference(self.frame.hull.lower, grid.lower).and_then(|gap| gap.last().copied());
        let pitch = constant_extents(grid.lower, grid.upper).and_then(|extents| extents.last().copied());
        let aligned = |value: Option<i64>| value.is_some_and(|value| value % cells == 0);
        Ok(if aligned(shift) && aligned(pitch) { cells } else { 1 })
    }

    fn load(
        &self,
        builder: &Builder<'c>,
        operation: usize,
        field: &str,
        row: Val<'c>,
        checks: Option<&Checks<'c>>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let buffer = self.frame.source(field)?;
        let Some(checks) = checks else {
            let at = self.frame.cell(builder, field, &[row, self.first_column()?])?;
            return lanes::load(builder, buffer, &at, self.strip.width, self.vector(field)?);
        };
        let (_, clamp) = checks.grids.get(&operation).ok_or_else(|| Error::internal("a load without checks"))?;
        let row = clamp.row(builder, row)?;
        let cells = |builder: &Builder<'c>| {
            let cell = |column: &Val<'c>| builder.load(buffer, &self.frame.cell(builder, field, &[row, *column])?);
            clamp.columns.iter().map(cell).collect::<Result<Vec<_>, _>>()
        };
        let Some(some) = clamp.some else { return cells(builder) };
        let element = self.frame.program.field(field)?.element;
        let types = vec![element; clamp.columns.len()];
        builder.choose(some, &types, cells, |builder| types.iter().map(|ty| builder.zero(*ty)).collect())
    }

    fn store(
        &self,
        builder: &Builder<'c>,
        operation: usize,
        field: &str,
        cells: &[Val<'c>],
        (row, rows): (Val<'c>, Val<'c>),
        checks: Option<&Checks<'c>>,
    ) -> Result<(), Error> {
        let buffer = self.frame.target(field)?;
        let in_rows = builder.compare(Compare::Below, builder.binary("arith.subi", row, self.first_row()?)?, rows)?;
        let Some(checks) = checks else {
            return builder.when(builder.binary("arith.andi", in_rows, self.in_tile)?, |builder| {
                let at = self.frame.cell(builder, field, &[row, self.first_column()?])?;
                lanes::store(builder, cells, buffer, &at, self.vector(field)?)
            });
        };
        let (grid, _) = checks.grids.get(&operation).ok_or_else(|| Error::internal("a store without checks"))?;
        let in_rows = if self.frame.hull.alike {
            in_rows // The loop ends with the grid's rows.
        } else {
            builder.binary("arith.andi", in_rows, grid.row(builder, row)?)?
        };
        builder.when(in_rows, |builder| {
            for ((inside, cell), column) in grid.columns.iter().zip(cells).zip(&self.columns) {
                let inside = builder.binary("arith.andi", *inside, self.in_tile)?;
                builder.when(inside, |builder| {
                    builder.store(*cell, buffer, &self.frame.cell(builder, field, &[row, *column])?)
                })?;
            }
            Ok(())
        })
    }

    /// New values of a row: for each cell of the lane one of every updated field.
    fn apply(
        &self,
        builder: &Builder<'c>,
        state: &InFlight<'c>,
        operation: usize,
        apply: &Apply<'c>,
        row: Val<'c>,
        checks: Option<&Checks<'c>>,
    ) -> Result<Vec<Vec<Val<'c>>>, Error> {
        let cell = |(cell, column): (i64, &Val<'c>)| Cell { state, apply, cell, point: [row, *column] };
        let cells: Vec<_> = (0..).zip(&self.columns).map(cell).collect();
        let Some(checks) = checks else {
            let [piece] = apply.pieces.as_slice() else { return Err(Error::internal("several pieces without checks")) };
            return cells.iter().map(|at| self.evaluate(builder, at, piece)).collect();
        };
        let mut cuts = Vec::new();
        for (place, piece) in apply.pieces.iter().enumerate() {
            cuts.push((
                piece,
                checks.pieces.get(&(operation, place)).ok_or_else(|| Error::internal("a piece without checks"))?,
            ));
        }
        let all = |builder: &Builder<'c>, rows: &[Option<Val<'c>>]| {
            let cell = |(number, at): (usize, &Cell<'c, '_>)| {
                let mut candidates = Vec::new();
                for ((piece, cut), row) in cuts.iter().zip(rows) {
                    let column =
                        cut.columns.get(number).copied().ok_or_else(|| Error::internal("a cell without a column"))?;
                    let conditions: Vec<_> = row.iter().copied().chain([column]).collect();
                    let covered = builder.all(&conditions)?.unwrap_or(column);
                    let total = self.strip.total.get(piece.function) == Some(&true);
                    candidates.push(Candidate { piece, covered, total });
                }
                let evaluate = |builder: &Builder<'c>, piece: &Piece<'c>| self.evaluate(builder, at, piece);
                pieces::values(builder, &candidates, &self.old(at)?, &evaluate)
            };
            cells.iter().enumerate().map(cell).collect::<Result<Vec<_>, _>>()
        };
        // The usual single piece is a branch for the whole row; several are conditions of each cell.
        if let [(_, cut)] = cuts.as_slice() {
            let old = cells.iter().map(|at| self.old(at)).collect::<Result<Vec<_>, _>>()?.concat();
            let types: Vec<_> = old.iter().map(|value| value.r#type()).collect();
            let new = |builder: &Builder<'c>| all(builder, &[None]).map(|cells| cells.concat());
            let flat = builder.choose(cut.row(builder, row)?, &types, new, |_| Ok(old))?;
            return Ok(flat.chunks(apply.outputs.len().max(1)).map(<[_]>::to_vec).collect());
        }
        let rows = cuts.iter().map(|(_, cut)| cut.row(builder, row).map(Some)).collect::<Result<Vec<_>, _>>()?;
        all(builder, &rows)
    }

    /// The values of the updated fields before the apply.
    fn old(&self, at: &Cell<'c, '_>) -> Result<Vec<Val<'c>>, Error> {
        at.apply.outputs.iter().map(|(field, _)| self.read(at, field, &[0, 0])).collect()
    }

    fn evaluate(&self, builder: &Builder<'c>, at: &Cell<'c, '_>, piece: &Piece<'c>) -> Result<Vec<Val<'c>>, Error> {
        self.frame.evaluate(builder, self.module, piece, &at.point, at.apply.step, &|_, field, offset| {
            self.read(at, field, offset)
        })
    }

    fn read(&self, at: &Cell<'c, '_>, field: &str, offset: &[i64]) -> Result<Val<'c>, Error> {
        let tile = at.apply.input(field).ok_or_else(|| Error::internal(format!("no tile of @{field}")))?;
        let (Some((_, output)), [row, column]) = (at.apply.outputs.first(), offset) else {
            return Err(Error::internal("a read that has not two offsets"));
        };
        let age = self.strip.lag(*output)? - row - self.strip.lag(tile)?;
        at.state.get(self.strip.place(tile)?, at.cell + column, age)
    }
}

/// A cell whose new values are computed.
struct Cell<'c, 's> {
    state: &'s InFlight<'c>,
    apply: &'s Apply<'c>,
    /// Its place in the lane.
    cell: i64,
    point: [Val<'c>; 2],
}
