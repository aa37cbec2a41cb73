//! The code of a tile: loads, applies on all cells of a lane, and stores.

use super::hand_over::{HandOver, Rows, foreign_rows};
use super::layout::{Layout, Position, of_three};
use super::place::{Cells, Place};
use super::rims::Rims;
use crate::analysis::footprint;
use crate::kernel::frame::Frame;
use crate::kernel::hazards::Hazards;
use crate::kernel::lane_cells;
use crate::kernel::lanes;
use melior::ir::operation::OperationLike;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::Piece;
use stencil_dialects::tiled::{Apply, Kernel, TileOp};

/// A lane's cells of tile values, row by row, by [`mlir::key`].
pub type State<'c> = BTreeMap<usize, Vec<Val<'c>>>;

/// The cells that an apply reads, by field and position.
pub type Window<'c> = BTreeMap<(&'c str, Position), Val<'c>>;

/// The code of one tile.
pub struct TileCode<'c, 'p> {
    /// The kernel that is made.
    pub frame: &'p Frame<'c, 'p>,
    /// The tile kernel.
    pub kernel: &'p Kernel<'c>,
    /// Which cells a lane holds.
    pub layout: &'p Layout<'c>,
    /// Which rows are handed over.
    pub hand_over: &'p HandOver<'c>,
    /// Where they lie.
    pub rows: &'p Rows<'c, 'p>,
    /// The lane's cells.
    pub place: &'p Place<'c>,
}

impl<'c> TileCode<'c, '_> {
    /// The whole tile; `checked` where cells may lie outside the grid or a piece.
    pub fn body(&self, builder: &Builder<'c>, checked: bool) -> Result<(), Error> {
        let about = (self.kernel, self.layout, self.place);
        let rims = match checked {
            true => Some(Rims::new(self.frame, builder, about, |field| self.vector(field))?),
            false => None,
        };
        let (rims, mut state, mut hazards) = (rims.as_ref(), State::new(), Hazards::default());
        for (operation, op) in self.kernel.body.iter().enumerate() {
            match op {
                TileOp::Load { op, field, tile } => {
                    let builder = &Builder { location: op.location(), ..*builder };
                    let cells = self.load(builder, operation, field, rims)?;
                    let buffer = self.hand_over.buffer(*tile);
                    hazards.before(builder, &[], buffer.as_slice())?;
                    self.rows.put(builder, *tile, &cells)?;
                    state.insert(mlir::key(*tile), cells);
                }
                TileOp::Apply(apply) => {
                    let builder = &Builder { location: apply.op.location(), ..*builder };
                    let buffers = |tiles: &[(&str, Val<'c>)]| {
                        let buffers = tiles.iter().map(|(_, tile)| self.hand_over.buffer(*tile));
                        buffers.flatten().collect::<Vec<_>>()
                    };
                    let taken = self.taken(apply, checked)?;
                    let mut window = self.own_rows(builder, apply, &state, checked)?;
                    hazards.before(builder, &buffers(&taken), &[])?;
                    self.other_rows(builder, apply, &mut window, checked)?;
                    let outputs = match rims {
                        None => self.inner(builder, apply, &window)?,
                        Some(rims) => self.at_rim(builder, (operation, apply), &window, rims)?,
                    };
                    hazards.before(builder, &[], &buffers(&apply.outputs))?;
                    for ((_, tile), cells) in apply.outputs.iter().zip(outputs) {
                        self.rows.put(builder, *tile, &cells)?;
                        state.insert(mlir::key(*tile), cells);
                    }
                }
                TileOp::Store { op, field, tile } => {
                    let builder = &Builder { location: op.location(), ..*builder };
                    self.store(builder, operation, (field, held(&state, *tile)?), rims)?;
                }
            }
        }
        Ok(())
    }

    /// See [`lanes::aligned_cells`].
    fn vector(&self, field: &str) -> Result<i64, Error> {
        lanes::aligned_cells(&self.frame.scope, field, self.layout.width)
    }

    /// The lane's cells of a field.
    fn load(
        &self,
        builder: &Builder<'c>,
        operation: usize,
        field: &str,
        rims: Option<&Rims<'c>>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let (buffer, vector) = (self.frame.source(field)?, self.vector(field)?);
        let checks = rims.map(|rims| grid(rims, operation)).transpose()?;
        let at = checks.map_or(&self.place.cells, |(_, kept)| kept);
        let cells = |builder: &Builder<'c>| {
            let (mut loaded, each) = (Vec::new(), usize::try_from(vector).unwrap_or(1).max(1));
            // Rows are whole vectors.
            for position in self.layout.positions().step_by(each) {
                let cell = self.frame.scope.cell(builder, field, &at.of(position)?)?;
                loaded.extend(lanes::load(builder, buffer, &cell, vector, vector)?);
            }
            Ok(loaded)
        };
        let declared = self.frame.scope.program.grid_of(field)?;
        let some = match checks {
            Some(_) => lane_cells::some(self.frame, builder, declared)?,
            None => None,
        };
        let Some(some) = some else { return cells(builder) };
        let element = self.frame.scope.program.field(field)?.element;
        let types: Vec<_> = self.layout.positions().map(|_| element).collect();
        builder.choose(some, &types, cells, |builder| {
            types.iter().map(|ty| builder.zero(*ty)).collect()
        })
    }

    /// Stores those of the lane's cells that belong to the tile.
    fn store(
        &self,
        builder: &Builder<'c>,
        operation: usize,
        (field, cells): (&str, &[Val<'c>]),
        rims: Option<&Rims<'c>>,
    ) -> Result<(), Error> {
        let (buffer, vector) = (self.frame.target(field)?, self.vector(field)?);
        let checks = rims.map(|rims| grid(rims, operation)).transpose()?;
        let width = usize::try_from(self.layout.width).unwrap_or(1).max(1);
        // Groups of cells lie all inside or all outside of the grid.
        let group = if checks.is_some() { vector } else { self.layout.width };
        let group = usize::try_from(group).unwrap_or(1).max(1);
        let rows = self.layout.rows().zip(&self.place.in_tile);
        for (([plane, row], in_tile), cells) in rows.zip(cells.chunks(width)) {
            for (number, cells) in (0..).zip(cells.chunks(group)) {
                let position = [plane, row, number * index(group)];
                let mut conditions = vec![*in_tile];
                if let Some((inside, _)) = checks {
                    conditions.extend(inside.of(position)?);
                }
                let condition = builder.all(&conditions)?;
                let condition = condition.ok_or_else(|| Error::internal("a row of no tile"))?;
                builder.when(condition, |builder| {
                    let point = self.place.cells.of(position)?;
                    let at = self.frame.scope.cell(builder, field, &point)?;
                    lanes::store(builder, cells, buffer, &at, vector)
                })?;
            }
        }
        Ok(())
    }

    /// What an apply reads: without checks, its main piece alone.
    fn reads(&self, apply: &Apply<'c>, checked: bool) -> Result<Vec<footprint::Read<'c>>, Error> {
        let pieces: &[Piece<'c>] = if checked { &apply.pieces } else { apply.main.as_slice() };
        footprint::of_pieces(self.frame.scope.program, pieces)
    }

    /// The tiles of which an apply takes rows of other parts.
    fn taken(&self, apply: &Apply<'c>, checked: bool) -> Result<Vec<(&'c str, Val<'c>)>, Error> {
        let mut foreign = BTreeSet::new();
        for read in self.reads(apply, checked)? {
            if !foreign_rows(&read, self.layout)?.is_empty() {
                foreign.insert(read.field);
            }
        }
        let taken = apply.inputs.iter().filter(|(field, _)| foreign.contains(field));
        Ok(taken.copied().collect())
    }

    /// The cells that an apply reads in a lane's own rows. Those of other lanes come by shuffles,
    /// in which all lanes take part; they need not wait for the barrier.
    fn own_rows(
        &self,
        builder: &Builder<'c>,
        apply: &Apply<'c>,
        state: &State<'c>,
        checked: bool,
    ) -> Result<Window<'c>, Error> {
        let mut window = Window::new();
        for (field, tile) in &apply.inputs {
            for (position, cell) in self.layout.positions().zip(held(state, *tile)?) {
                window.insert((*field, position), *cell);
            }
        }
        self.columns(builder, apply, &mut window, (checked, false))?;
        Ok(window)
    }

    /// Adds those in rows of other parts.
    fn other_rows(
        &self,
        builder: &Builder<'c>,
        apply: &Apply<'c>,
        window: &mut Window<'c>,
        checked: bool,
    ) -> Result<(), Error> {
        for read in self.reads(apply, checked)? {
            let tile = apply.input(read.field);
            let tile = tile.ok_or_else(|| Error::internal("a tile of no field is read"))?;
            for [plane, row] in foreign_rows(&read, self.layout)? {
                if window.contains_key(&(read.field, [plane, row, 0])) {
                    continue;
                }
                let cells = self.rows.take(builder, tile, [plane, row])?;
                for (column, cell) in (0..).zip(cells) {
                    window.insert((read.field, [plane, row, column]), cell);
                }
            }
        }
        self.columns(builder, apply, window, (checked, true))
    }

    /// Adds the columns of other lanes, of a lane's own rows or of those of other parts.
    fn columns(
        &self,
        builder: &Builder<'c>,
        apply: &Apply<'c>,
        window: &mut Window<'c>,
        (checked, foreign): (bool, bool),
    ) -> Result<(), Error> {
        let width = self.layout.width;
        let mut wanted = BTreeSet::new();
        for read in self.reads(apply, checked)? {
            for offset in read.offsets() {
                let [back, down, right] = of_three(&offset, 0)?;
                for [plane, row, cell] in self.layout.positions() {
                    let (plane, row, column) = (plane + back, row + down, cell + right);
                    let beside = !(0..width).contains(&column);
                    if beside && self.layout.is_foreign([plane, row]) == foreign {
                        wanted.insert((read.field, [plane, row, column]));
                    }
                }
            }
        }
        for (field, [plane, row, column]) in wanted {
            let own = window.get(&(field, [plane, row, column.rem_euclid(width)])).copied();
            let own = own.ok_or_else(|| Error::internal("no lane holds a cell that is read"))?;
            let other = lanes::shuffle(builder, own, column.div_euclid(width))?;
            window.insert((field, [plane, row, column]), other);
        }
        Ok(())
    }
}

/// A lane's cells of a tile.
fn held<'s, 'c>(state: &'s State<'c>, tile: Val<'c>) -> Result<&'s [Val<'c>], Error> {
    let cells = state.get(&mlir::key(tile)).map(Vec::as_slice);
    cells.ok_or_else(|| Error::internal("a tile is used before it is made"))
}

/// The checks of a load or a store.
fn grid<'r, 'c>(rims: &'r Rims<'c>, operation: usize) -> Result<&'r (Cells<'c>, Cells<'c>), Error> {
    rims.grids.get(&operation).ok_or_else(|| Error::internal("a field without checks"))
}

fn index(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
