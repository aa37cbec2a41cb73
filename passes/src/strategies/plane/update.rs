//! New values of a plane, and their stores.

use super::held::Place;
use super::layout::Layout;
use crate::kernel::evaluate::{At, Distance, Rules};
use crate::kernel::frame::Frame;
use crate::kernel::lane_cells::{self, BoxCells, LaneCells};
use crate::kernel::lanes;
use crate::kernel::pieces::{self, PieceCase};
use melior::ir::Type;
use std::collections::BTreeMap;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::Piece;
use stencil_dialects::tiled::{Apply, Kernel};

/// The cells that a thread can read, by field and place.
pub type Cells<'c> = BTreeMap<String, BTreeMap<Place, Vec<Val<'c>>>>;

/// The code of an apply.
pub struct Update<'c, 'p> {
    frame: &'p Frame<'c, 'p>,
    apply: &'p Apply<'c>,
    width: i64,
    /// The thread's own cells.
    cells: LaneCells<'c>,
    pieces: Vec<PieceCode<'c, 'p>>,
    stores: Vec<Store<'c>>,
}

struct PieceCode<'c, 'p> {
    piece: &'p Piece<'c>,
    /// The thread's cells that it covers.
    covered: BoxCells<'c>,
    total: bool,
}

struct Store<'c> {
    field: &'c str,
    /// The output's number.
    output: usize,
    /// The thread's cells in the field's grid.
    inside: BoxCells<'c>,
    /// Cells of an access.
    vector: i64,
}

impl<'c, 'p> Update<'c, 'p> {
    /// Computes what the loop needs.
    pub fn new(
        frame: &'p Frame<'c, 'p>,
        (kernel, apply): (&'p Kernel<'c>, &'p Apply<'c>),
        layout: &Layout<'c>,
        cells: LaneCells<'c>,
    ) -> Result<Self, Error> {
        let (scope, builder) = (&frame.scope, &frame.builder);
        let covers = |bounds| BoxCells::new(frame, builder, bounds, &cells);
        let (mut all, mut stores) = (Vec::new(), Vec::new());
        for piece in &apply.pieces {
            let covered = covers((piece.lower, piece.upper))?;
            let total = pieces::is_total(scope.module, scope.program, piece)?;
            all.push(PieceCode { piece, covered, total });
        }
        for (output, (field, _)) in apply.outputs.iter().enumerate() {
            if kernel.stores(field) {
                let grid = scope.program.grid_of(field)?;
                let inside = covers((grid.lower, grid.upper))?;
                let vector = lanes::aligned_cells(scope, field, layout.width)?;
                stores.push(Store { field, output, inside, vector });
            }
        }
        Ok(Self { frame, apply, width: layout.width, cells, pieces: all, stores })
    }

    /// The new values of the thread's cells in a plane, one of every output for each cell; `own`
    /// has the thread's own cells, and `read` gives those of others too.
    pub fn values(
        &self,
        builder: &Builder<'c>,
        plane: Val<'c>,
        own: &Cells<'c>,
        read: &dyn Fn(&Builder<'c>) -> Result<Cells<'c>, Error>,
    ) -> Result<Vec<Vec<Val<'c>>>, Error> {
        let mut in_planes = Vec::new();
        for code in &self.pieces {
            let bounds = (code.piece.lower, code.piece.upper);
            in_planes.push(lane_cells::in_planes(self.frame, builder, bounds, plane)?);
        }
        let flat = match in_planes.as_slice() {
            // The usual single piece is a branch for the whole plane.
            [inside] => builder.choose(
                *inside,
                &self.types()?,
                |builder| self.all(builder, plane, &[None], &read(builder)?),
                |builder| Ok(self.old(builder, own)?.concat()),
            )?,
            several => {
                let planes: Vec<_> = several.iter().copied().map(Some).collect();
                self.all(builder, plane, &planes, &read(builder)?)?
            }
        };
        Ok(flat.chunks(self.apply.outputs.len().max(1)).map(<[_]>::to_vec).collect())
    }

    /// Types of the new values, cell by cell.
    fn types(&self) -> Result<Vec<Type<'c>>, Error> {
        let element = |(field, _): &(&str, _)| Ok(self.frame.scope.program.field(field)?.element);
        let types = self.apply.outputs.iter().map(element).collect::<Result<Vec<_>, Error>>()?;
        Ok(types.repeat(self.cells.columns.len()))
    }

    /// New values where pieces lie, in planes that satisfy their conditions.
    fn all(
        &self,
        builder: &Builder<'c>,
        plane: Val<'c>,
        planes: &[Option<Val<'c>>],
        cells: &Cells<'c>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let mut values = Vec::new();
        let old = self.old(builder, cells)?;
        for (number, ((row, column), old)) in self.cells.each().zip(&old).enumerate() {
            let mut cases = Vec::new();
            for (code, plane) in self.pieces.iter().zip(planes) {
                let covered = code.covered.covered.get(number).copied();
                let conditions: Vec<_> = covered.into_iter().chain(*plane).collect();
                let covered = builder.all(&conditions)?;
                let covered = covered.ok_or_else(|| Error::internal("a piece of no cells"))?;
                cases.push(PieceCase { piece: code.piece, covered, total: code.total });
            }
            let point = LaneCells::point(plane, row, column);
            let evaluate = |builder: &Builder<'c>, piece: &Piece<'c>| {
                self.evaluate(builder, piece, (number, &point), cells)
            };
            values.extend(pieces::values(builder, &cases, old, &evaluate)?);
        }
        Ok(values)
    }

    /// The values before the step, of every output for each cell; zeros of a field that has none.
    fn old(&self, builder: &Builder<'c>, cells: &Cells<'c>) -> Result<Vec<Vec<Val<'c>>>, Error> {
        let mut all = Vec::new();
        for number in 0..self.cells.columns.len() {
            let mut values = Vec::new();
            for (field, _) in &self.apply.outputs {
                values.push(match self.apply.kept(field) {
                    Some(_) => self.cell(cells, field, (number, [0; 3]))?,
                    None => builder.zero(self.frame.scope.program.field(field)?.element)?,
                });
            }
            all.push(values);
        }
        Ok(all)
    }

    fn evaluate(
        &self,
        builder: &Builder<'c>,
        piece: &Piece<'c>,
        (number, point): (usize, &[Val<'c>]),
        cells: &Cells<'c>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let fetch = |_: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
            let constant = |distance: &Distance<'c>| match distance {
                Distance::Constant(cells) => Ok(*cells),
                Distance::Mapped(..) => Err(Error::internal("a rule that a load has followed")),
            };
            let offset = distances.iter().map(constant).collect::<Result<Vec<_>, _>>()?;
            let offset = match *offset.as_slice() {
                [plane, row, column] => [plane, row, column],
                [plane, column] => [plane, 0, column],
                _ => return Err(Error::internal("a read that has not two or three offsets")),
            };
            self.cell(cells, field, (number, offset))
        };
        // Cells outside the grid were loaded as their rules have them.
        let (step, rules) = (self.apply.step, Rules::Unneeded);
        let at = At { point, step, rules, fetch: &fetch, current: None, partial: None };
        self.frame.scope.evaluate(builder, piece, &at)
    }

    /// A cell at an offset from one of the thread's own.
    fn cell(
        &self,
        cells: &Cells<'c>,
        field: &str,
        (number, [plane, row, column]): (usize, Place),
    ) -> Result<Val<'c>, Error> {
        let found = || {
            let column = i64::try_from(number).ok()? + column;
            let segment = cells.get(field)?.get(&[plane, row, column.div_euclid(self.width)])?;
            segment.get(usize::try_from(column.rem_euclid(self.width)).ok()?).copied()
        };
        let missing = || format!("no cell of @{field} at {:?} is held", [plane, row, column]);
        found().ok_or_else(|| Error::internal(missing()))
    }

    /// Stores new values of a plane.
    pub fn store(
        &self,
        builder: &Builder<'c>,
        plane: Val<'c>,
        values: &[Vec<Val<'c>>],
    ) -> Result<(), Error> {
        let scope = &self.frame.scope;
        for store in &self.stores {
            let buffer = self.frame.target(store.field)?;
            let grid = scope.program.grid_of(store.field)?;
            // Planes beyond the grid of all fields are not walked.
            let in_planes = match scope.hull.alike {
                true => None,
                false => Some(lane_cells::in_planes(
                    self.frame,
                    builder,
                    (grid.lower, grid.upper),
                    plane,
                )?),
            };
            let new: Vec<_> =
                values.iter().filter_map(|cell| cell.get(store.output)).copied().collect();
            let access = usize::try_from(store.vector).unwrap_or(1).max(1);
            // Cells of an access lie all inside or all outside.
            for ((cells, inside), (row, column)) in new
                .chunks(access)
                .zip(store.inside.covered.iter().step_by(access))
                .zip(self.cells.each().step_by(access))
            {
                let conditions: Vec<_> = in_planes.into_iter().chain([*inside]).collect();
                let condition = builder.all(&conditions)?.unwrap_or(*inside);
                builder.when(condition, |builder| {
                    let point = LaneCells::point(plane, row, column);
                    let at = scope.cell(builder, store.field, &point)?;
                    lanes::store(builder, cells, buffer, &at, store.vector)
                })?;
            }
        }
        Ok(())
    }
}
