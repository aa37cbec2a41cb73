//! New values of a plane: the point function of each cell on cells in flight.

use super::in_flight::{InFlight, Position};
use super::layout::Layout;
use super::rims::Rims;
use crate::kernel::evaluate::{At, Distance, Rules, cell_in_registers};
use crate::kernel::frame::Frame;
use crate::kernel::lane_cells::{self, Beyond, BoxCells, LaneCells};
use crate::kernel::lanes;
use crate::kernel::pieces::{self, PieceCase};
use melior::ir::ValueLike;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::Piece;
use stencil_dialects::tiled::Apply;

/// A piece with its conditions: of cells, and of the plane.
type PieceHere<'c, 's> = (&'s Piece<'c>, Option<&'s BoxCells<'c>>, Option<Val<'c>>);

/// A cell whose new values are computed.
struct Cell<'c, 's> {
    state: &'s InFlight<'c>,
    apply: &'s Apply<'c>,
    /// Its place in the lane: row and column.
    position: (i64, i64),
    point: Vec<Val<'c>>,
    /// Whether it may lie at a rim of columns.
    at_rim: bool,
    rules: Rules,
}

/// What the new values of a lane's cells depend on beside the cells in flight.
pub struct Updates<'c, 'p> {
    /// The kernel that is made.
    pub frame: &'p Frame<'c, 'p>,
    /// The facts of the tile that are known at compile time.
    pub layout: &'p Layout<'c>,
    /// The lane's cells.
    pub cells: &'p LaneCells<'c>,
    /// The content of the tile beyond the grid.
    pub beyond: Beyond,
}

impl<'c> Updates<'c, '_> {
    /// Adds the cells of other lanes to a value's planes, those that come in now.
    pub fn take_edges(
        &self,
        builder: &Builder<'c>,
        state: &mut InFlight<'c>,
        value: usize,
    ) -> Result<(), Error> {
        let window = self.layout.pipeline.windows.get(value);
        let window = window.ok_or_else(|| Error::internal("a value without a window"))?;
        let width = self.layout.width;
        for row in &window.rows {
            for edge in &row.edges {
                let own = (row.row, edge.column.rem_euclid(width));
                let cell = state.get(value, own, edge.first)?;
                let cell = lanes::shuffle(builder, cell, edge.column.div_euclid(width))?;
                state.push(value, (row.row, edge.column), cell)?;
            }
        }
        Ok(())
    }

    /// New values of a plane: for each cell of the lane, one value of every updated field.
    pub fn apply(
        &self,
        builder: &Builder<'c>,
        state: &InFlight<'c>,
        (operation, apply): (usize, &Apply<'c>),
        plane: Val<'c>,
        rims: Rims<'c, '_>,
    ) -> Result<Vec<Vec<Val<'c>>>, Error> {
        let plane = match self.beyond.repeated_grid(self.frame.scope.program, apply)? {
            Some(grid) if rims.planes => self.beyond.plane(self.frame, builder, grid, plane)?,
            _ => plane,
        };
        let free = rims.rim_checks.is_none() && !rims.planes;
        let rules = match self.beyond {
            _ if free => Rules::Unneeded,
            Beyond::Repeated => Rules::Wrapped,
            Beyond::Nearest => Rules::All,
        };
        let points = rims
            .rim_checks
            .and_then(|rim_checks| rim_checks.repeated.get(&operation))
            .unwrap_or(self.cells);
        let cell = |(position, (row, column)): (Position, _)| Cell {
            state,
            apply,
            position,
            point: LaneCells::point(plane, row, column),
            at_rim: rims.columns.is_none_or(|columns| columns.contains(&position.1)),
            rules,
        };
        let cells: Vec<_> = self.layout.positions().zip(points.each()).map(cell).collect();
        if free {
            let piece = apply.main.ok_or_else(|| Error::internal("an apply of no main piece"))?;
            return cells.iter().map(|at| self.evaluate(builder, at, &piece)).collect();
        }
        // Without checks of cells there is one piece.
        let mut pieces_here = Vec::new();
        for (number, piece) in apply.pieces.iter().enumerate() {
            let covered = rims
                .rim_checks
                .map(|rim_checks| rim_checks.piece((operation, number)))
                .transpose()?;
            pieces_here.push((piece, covered));
        }
        let all = |builder: &Builder<'c>, planes: &[Option<Val<'c>>]| {
            let pieces: Vec<_> = pieces_here
                .iter()
                .zip(planes)
                .map(|((piece, covered), plane)| (*piece, *covered, *plane))
                .collect();
            let cell = |(number, at)| self.cell(builder, at, number, &pieces);
            cells.iter().enumerate().map(cell).collect::<Result<Vec<_>, _>>()
        };
        if !rims.planes {
            return all(builder, &vec![None; pieces_here.len()]);
        }
        let mut in_planes = Vec::new();
        for (piece, _) in &pieces_here {
            in_planes.push(lane_cells::in_planes(
                self.frame,
                builder,
                (piece.lower, piece.upper),
                plane,
            )?);
        }
        // The usual single piece is a branch for the whole plane; several are conditions of each
        // cell.
        if let [inside] = in_planes.as_slice() {
            let old = cells
                .iter()
                .map(|at| self.old(builder, at))
                .collect::<Result<Vec<_>, _>>()?
                .concat();
            let types: Vec<_> = old.iter().map(|value| value.r#type()).collect();
            let new = |builder: &Builder<'c>| all(builder, &[None]).map(|cells| cells.concat());
            let flat = builder.choose(*inside, &types, new, |_| Ok(old))?;
            return Ok(flat.chunks(apply.outputs.len().max(1)).map(<[_]>::to_vec).collect());
        }
        all(builder, &in_planes.into_iter().map(Some).collect::<Vec<_>>())
    }

    /// New values of one of the lane's cells, for pieces with their conditions: of cells, by the
    /// cell's number, and of the plane.
    fn cell(
        &self,
        builder: &Builder<'c>,
        at: &Cell<'c, '_>,
        number: usize,
        pieces: &[PieceHere<'c, '_>],
    ) -> Result<Vec<Val<'c>>, Error> {
        let mut cases = Vec::new();
        for (piece, covered, plane) in pieces {
            let covered = covered.filter(|_| at.at_rim);
            let inside = covered.and_then(|cells| cells.covered.get(number)).copied();
            let conditions: Vec<_> = plane.iter().copied().chain(inside).collect();
            let Some(covered) = builder.all(&conditions)? else {
                return self.evaluate(builder, at, piece);
            };
            let total = self.layout.total.get(piece.function) == Some(&true);
            cases.push(PieceCase { piece, covered, total });
        }
        let evaluate = |builder: &Builder<'c>, piece: &Piece<'c>| self.evaluate(builder, at, piece);
        pieces::values(builder, &cases, &self.old(builder, at)?, &evaluate)
    }

    /// The values of the updated fields before the apply; zeros for those that have none where no
    /// piece lies.
    fn old(&self, builder: &Builder<'c>, at: &Cell<'c, '_>) -> Result<Vec<Val<'c>>, Error> {
        let old = |(field, _): &(&str, _)| match at.apply.kept(field) {
            Some(tile) => self.held(at, tile, &vec![0; at.point.len()]),
            None => builder.zero(self.frame.scope.program.field(field)?.element),
        };
        at.apply.outputs.iter().map(old).collect()
    }

    fn evaluate(
        &self,
        builder: &Builder<'c>,
        at: &Cell<'c, '_>,
        piece: &Piece<'c>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let fetch = |builder: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
            cell_in_registers(builder, distances, &|offset| self.read(at, field, offset))
        };
        let partial = at
            .apply
            .partial
            .map(|tile| self.held(at, tile, &vec![0; at.point.len()]))
            .transpose()?;
        let (point, step) = (at.point.as_slice(), at.apply.step);
        let at = At { point, step, rules: at.rules, fetch: &fetch, current: None, partial };
        self.frame.scope.evaluate(builder, piece, &at)
    }

    fn read(&self, at: &Cell<'c, '_>, field: &str, offset: &[i64]) -> Result<Val<'c>, Error> {
        let tile =
            at.apply.input(field).ok_or_else(|| Error::internal(format!("no tile of @{field}")))?;
        self.held(at, tile, offset)
    }

    /// A cell of a tile at an offset.
    fn held(&self, at: &Cell<'c, '_>, tile: Val<'c>, offset: &[i64]) -> Result<Val<'c>, Error> {
        let (row, column) = at.position;
        let (plane, position) = match offset {
            [plane, columns] => (plane, (row, column + columns)),
            [plane, rows, columns] => (plane, (row + rows, column + columns)),
            _ => return Err(Error::internal("a read that has not two or three offsets")),
        };
        let Some((_, output)) = at.apply.outputs.first() else {
            return Err(Error::internal("an apply of nothing"));
        };
        let age = self.layout.window(*output)?.lag - plane - self.layout.window(tile)?.lag;
        at.state.get(self.layout.value(tile)?, position, age)
    }
}
