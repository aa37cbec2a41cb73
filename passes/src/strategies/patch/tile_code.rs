//! The code of a tile: loads, applies on all cells of a lane, and stores.

use super::hand_over::{HandOver, Rows, foreign_rows, read_rows};
use super::layout::{Layout, Position, of_three};
use super::place::{Cells, Place};
use super::rims::{ApplyRims, Rims};
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

/// The checks of a tile at a rim.
pub use super::rims::Rims as Checks;

/// The tile values so far, and the buffers in use.
#[derive(Default)]
pub struct Values<'c> {
    state: State<'c>,
    hazards: Hazards,
}

impl<'c> Values<'c> {
    /// A lane's cells of a tile.
    pub fn cells(&self, tile: Val<'c>) -> Result<&[Val<'c>], Error> {
        held(&self.state, tile)
    }
}

/// The code of one tile.
#[derive(Clone, Copy)]
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
        let rims = self.rims(builder, checked)?;
        let (rims, mut values) = (rims.as_ref(), Values::default());
        for (operation, op) in self.kernel.body.iter().enumerate() {
            match op {
                TileOp::Load { op, field, tile } => {
                    let builder = &Builder { location: op.location(), ..*builder };
                    let cells = self.load(builder, operation, field, rims)?;
                    self.begin(builder, *tile, cells, &mut values)?;
                }
                TileOp::Apply(apply) => {
                    let checks = rims.map(|rims| rims.of_apply(operation)).transpose()?;
                    self.apply(builder, apply, &mut values, checks)?;
                }
                TileOp::Store { op, field, tile } => {
                    let builder = &Builder { location: op.location(), ..*builder };
                    let rows = &self.place.in_tile;
                    self.store(builder, operation, (field, values.cells(*tile)?), (rows, rims))?;
                }
            }
        }
        Ok(())
    }

    /// The checks of all operations, if there are any.
    pub fn rims(&self, builder: &Builder<'c>, checked: bool) -> Result<Option<Rims<'c>>, Error> {
        let about = (self.kernel, self.layout, self.place);
        let rims = || Rims::new(self.frame, builder, about, |field| self.vector(field));
        checked.then(rims).transpose()
    }

    /// Makes a lane's cells those of a tile value, and hands over the rows that others read.
    pub fn begin(
        &self,
        builder: &Builder<'c>,
        tile: Val<'c>,
        cells: Vec<Val<'c>>,
        values: &mut Values<'c>,
    ) -> Result<(), Error> {
        values.hazards.before(builder, &[], self.hand_over.buffer(tile).as_slice())?;
        self.rows.put(builder, tile, &cells)?;
        values.state.insert(mlir::key(tile), cells);
        Ok(())
    }

    /// The code of an apply.
    pub fn apply(
        &self,
        builder: &Builder<'c>,
        apply: &Apply<'c>,
        values: &mut Values<'c>,
        checks: Option<&ApplyRims<'c>>,
    ) -> Result<(), Error> {
        let (builder, checked) =
            (&Builder { location: apply.op.location(), ..*builder }, checks.is_some());
        let buffers = |tiles: &[(&str, Val<'c>)]| {
            let buffers = tiles.iter().map(|(_, tile)| self.hand_over.buffer(*tile));
            buffers.flatten().collect::<Vec<_>>()
        };
        let taken = self.taken(apply, checked)?;
        let mut window = self.own_rows(builder, apply, &values.state, checked)?;
        values.hazards.before(builder, &buffers(&taken), &[])?;
        // All lanes take part in shuffles, so that these stand before all branches. Other rows are
        // loaded where they are used, for they take registers.
        if !self.wanted(apply, (checked, true))?.is_empty() {
            let rows: Vec<_> = self.layout.rows().collect();
            self.other_rows(builder, apply, &mut window, (&rows, checked))?;
            self.columns(builder, apply, &mut window, (checked, true))?;
        }
        let outputs = match checks {
            None => self.inner(builder, apply, &window)?,
            Some(checks) => self.at_rim(builder, apply, &window, checks)?,
        };
        values.hazards.before(builder, &[], &buffers(&apply.outputs))?;
        for ((_, tile), cells) in apply.outputs.iter().zip(outputs) {
            self.rows.put(builder, *tile, &cells)?;
            values.state.insert(mlir::key(*tile), cells);
        }
        Ok(())
    }

    /// See [`lanes::aligned_cells`].
    pub fn vector(&self, field: &str) -> Result<i64, Error> {
        lanes::aligned_cells(&self.frame.scope, field, self.layout.width)
    }

    /// The lane's cells of a field.
    pub fn load(
        &self,
        builder: &Builder<'c>,
        operation: usize,
        field: &str,
        rims: Option<&Rims<'c>>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let buffer = self.frame.source(field)?;
        let checks = rims.map(|rims| grid(rims, operation)).transpose()?;
        let at = checks.map_or(&self.place.cells, |(_, kept)| kept);
        let cells = |builder: &Builder<'c>| {
            let mut loaded = Vec::new();
            for row in self.layout.rows() {
                loaded.extend(self.row(builder, (field, buffer), row, at)?);
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

    /// Replaces those rows of a lane's cells whose condition holds by what a buffer has.
    pub fn renew(
        &self,
        builder: &Builder<'c>,
        (operation, field, buffer): (usize, &str, Val<'c>),
        cells: &[Val<'c>],
        (conditions, rims): (&[Val<'c>], Option<&Rims<'c>>),
    ) -> Result<Vec<Val<'c>>, Error> {
        let checks = rims.map(|rims| grid(rims, operation)).transpose()?;
        let at = checks.map_or(&self.place.cells, |(_, kept)| kept);
        let element = self.frame.scope.program.field(field)?.element;
        let width = usize::try_from(self.layout.width).unwrap_or(1).max(1);
        let mut renewed = Vec::new();
        let rows = self.layout.rows().zip(conditions).zip(cells.chunks(width));
        for ((row, condition), old) in rows {
            renewed.extend(builder.choose(
                *condition,
                &vec![element; old.len()],
                |builder| self.row(builder, (field, buffer), row, at),
                |_| Ok(old.to_vec()),
            )?);
        }
        Ok(renewed)
    }

    /// A row of a lane as a buffer has it, which is whole vectors.
    fn row(
        &self,
        builder: &Builder<'c>,
        (field, buffer): (&str, Val<'c>),
        [plane, row]: [i64; 2],
        at: &Cells<'c>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let (vector, mut loaded) = (self.vector(field)?.max(1), Vec::new());
        for column in (0..self.layout.width / vector).map(|number| number * vector) {
            let cell = self.frame.scope.cell(builder, field, &at.of([plane, row, column])?)?;
            loaded.extend(lanes::load(builder, buffer, &cell, vector, vector)?);
        }
        Ok(loaded)
    }

    /// Stores those rows of the lane whose condition holds.
    pub fn store(
        &self,
        builder: &Builder<'c>,
        operation: usize,
        (field, cells): (&str, &[Val<'c>]),
        (conditions, rims): (&[Val<'c>], Option<&Rims<'c>>),
    ) -> Result<(), Error> {
        let (buffer, vector) = (self.frame.target(field)?, self.vector(field)?);
        let checks = rims.map(|rims| grid(rims, operation)).transpose()?;
        let width = usize::try_from(self.layout.width).unwrap_or(1).max(1);
        // Groups of cells lie all inside or all outside of the grid.
        let group = if checks.is_some() { vector } else { self.layout.width };
        let group = usize::try_from(group).unwrap_or(1).max(1);
        let rows = self.layout.rows().zip(conditions);
        for (([plane, row], stored), cells) in rows.zip(cells.chunks(width)) {
            for (number, cells) in (0..).zip(cells.chunks(group)) {
                let position = [plane, row, number * index(group)];
                let mut conditions = vec![*stored];
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

    /// Adds the rows of other parts that the cells of some of the lane's rows read, as far as they
    /// are not there yet.
    pub fn other_rows(
        &self,
        builder: &Builder<'c>,
        apply: &Apply<'c>,
        window: &mut Window<'c>,
        (rows, checked): (&[[i64; 2]], bool),
    ) -> Result<(), Error> {
        for read in self.reads(apply, checked)? {
            let tile = apply.input(read.field);
            let tile = tile.ok_or_else(|| Error::internal("a tile of no field is read"))?;
            for [plane, row] in read_rows(&read, rows, self.layout)? {
                if window.contains_key(&(read.field, [plane, row, 0])) {
                    continue;
                }
                let cells = self.rows.take(builder, tile, [plane, row])?;
                for (column, cell) in (0..).zip(cells) {
                    window.insert((read.field, [plane, row, column]), cell);
                }
            }
        }
        Ok(())
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
        for (field, [plane, row, column]) in self.wanted(apply, (checked, foreign))? {
            let own = window.get(&(field, [plane, row, column.rem_euclid(width)])).copied();
            let own = own.ok_or_else(|| Error::internal("no lane holds a cell that is read"))?;
            let other = lanes::shuffle(builder, own, column.div_euclid(width))?;
            window.insert((field, [plane, row, column]), other);
        }
        Ok(())
    }

    /// The columns of other lanes that an apply reads, of a lane's own rows or of those of other
    /// parts.
    fn wanted(
        &self,
        apply: &Apply<'c>,
        (checked, foreign): (bool, bool),
    ) -> Result<BTreeSet<(&'c str, Position)>, Error> {
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
        Ok(wanted)
    }
}

/// A lane's cells of a tile.
fn held<'s, 'c>(state: &'s State<'c>, tile: Val<'c>) -> Result<&'s [Val<'c>], Error> {
    let cells = state.get(&mlir::key(tile)).map(Vec::as_slice);
    cells.ok_or_else(|| Error::internal("a tile is used before it is made"))
}

impl<'c> Checks<'c> {
    /// Whether a cell of a lane lies in the grid of a load or a store, per dimension.
    pub fn inside(&self, operation: usize, position: Position) -> Result<Vec<Val<'c>>, Error> {
        grid(self, operation)?.0.of(position)
    }
}

/// The checks of a load or a store.
fn grid<'r, 'c>(rims: &'r Rims<'c>, operation: usize) -> Result<&'r (Cells<'c>, Cells<'c>), Error> {
    rims.grids.get(&operation).ok_or_else(|| Error::internal("a field without checks"))
}

fn index(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
