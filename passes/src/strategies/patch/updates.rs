//! New values: the point function of each cell of a lane, on the cells of a window.

use super::layout::{Position, of_three};
use super::rims::{ApplyRims, is_total};
use super::tile_code::{TileCode, Window};
use crate::kernel::evaluate::{At, Distance, Rules, cell_in_registers};
use crate::kernel::pieces::{self, PieceCase};
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::Piece;
use stencil_dialects::tiled::Apply;

/// New values of an apply: for each output the lane's cells.
type Outputs<'c> = Vec<Vec<Val<'c>>>;

/// A cell whose new values are computed.
struct Cell<'c, 's> {
    apply: &'s Apply<'c>,
    window: &'s Window<'c>,
    /// Its place in the lane.
    position: Position,
    point: Vec<Val<'c>>,
}

impl<'c> TileCode<'c, '_> {
    /// New values in a tile at no rim.
    pub fn inner(
        &self,
        builder: &Builder<'c>,
        apply: &Apply<'c>,
        window: &Window<'c>,
    ) -> Result<Outputs<'c>, Error> {
        let piece = apply.main.ok_or_else(|| Error::internal("an apply of no main piece"))?;
        let values = self.each(builder, (apply, false), window, |window, position| {
            let point = self.place.cells.of(position)?;
            let cell = Cell { apply, window, position, point };
            self.evaluate(builder, &cell, &piece, Rules::Unneeded)
        })?;
        Ok(by_output(&values, apply))
    }

    /// New values cell by cell. Rows of other parts are loaded before the row that reads them.
    fn each(
        &self,
        builder: &Builder<'c>,
        (apply, checked): (&Apply<'c>, bool),
        window: &Window<'c>,
        values: impl Fn(&Window<'c>, Position) -> Result<Vec<Val<'c>>, Error>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let (mut window, mut all) = (window.clone(), Vec::new());
        for [plane, row] in self.layout.rows() {
            self.other_rows(builder, apply, &mut window, (&[[plane, row]], checked))?;
            for column in 0..self.layout.width {
                all.extend(values(&window, [plane, row, column])?);
            }
        }
        Ok(all)
    }

    /// New values in a tile at a rim: with few checks where the lane's rows lie at none.
    pub fn at_rim(
        &self,
        builder: &Builder<'c>,
        apply: &Apply<'c>,
        window: &Window<'c>,
        checks: &ApplyRims<'c>,
    ) -> Result<Outputs<'c>, Error> {
        let all = |builder: &Builder<'c>, free| {
            self.each(builder, (apply, true), window, |window, position| {
                let cells = checks.repeated.as_ref().unwrap_or(&self.place.cells);
                let cell = Cell { apply, window, position, point: cells.of(position)? };
                self.checked(builder, &cell, checks, free)
            })
        };
        let Some(free) = &checks.free else { return Ok(by_output(&all(builder, false)?, apply)) };
        let mut types = Vec::new();
        for _ in self.layout.positions() {
            for (field, _) in &apply.outputs {
                types.push(self.frame.scope.program.field(field)?.element);
            }
        }
        let values = builder.choose(
            free.rows,
            &types,
            |builder| all(builder, true),
            |builder| all(builder, false),
        )?;
        Ok(by_output(&values, apply))
    }

    /// New values of a cell that a piece may cover; `free` where its row and plane lie at no rim.
    fn checked(
        &self,
        builder: &Builder<'c>,
        cell: &Cell<'c, '_>,
        checks: &ApplyRims<'c>,
        free: bool,
    ) -> Result<Vec<Val<'c>>, Error> {
        let [.., column] = cell.position;
        let at_rim = |free: &super::rims::Free<'c>| free.columns.contains(&column);
        if free
            && !checks.free.as_ref().is_some_and(at_rim)
            && let Some(main) = &cell.apply.main
        {
            return self.evaluate(builder, cell, main, Rules::Unneeded);
        }
        let rules = match (free, self.layout.wraps) {
            (true, _) => Rules::Fastest,
            (false, true) => Rules::Wrapped,
            (false, false) => Rules::All,
        };
        let mut cases = Vec::new();
        for (piece, inside) in cell.apply.pieces.iter().zip(&checks.pieces) {
            let mut conditions = inside.of(cell.position)?;
            if free && cell.apply.main.as_ref() == Some(piece) {
                // Its row lies in the piece.
                conditions = conditions.pop().into_iter().collect();
            }
            let total = is_total(self.layout, piece);
            if let Some(computed) = checks.computed.as_ref().filter(|_| !total) {
                conditions.extend(computed.of(cell.position)?);
            }
            let covered = builder.all(&conditions)?;
            let covered = covered.ok_or_else(|| Error::internal("a piece without checks"))?;
            cases.push(PieceCase { piece, covered, total });
        }
        let evaluate =
            |builder: &Builder<'c>, piece: &Piece<'c>| self.evaluate(builder, cell, piece, rules);
        pieces::values(builder, &cases, &self.old(builder, cell)?, &evaluate)
    }

    /// The values of the updated fields before the apply; zeros for those that have none where no
    /// piece lies.
    fn old(&self, builder: &Builder<'c>, cell: &Cell<'c, '_>) -> Result<Vec<Val<'c>>, Error> {
        let old = |(field, _): &(&'c str, Val<'c>)| match cell.apply.kept(field) {
            Some(_) => read(cell, field, &vec![0; self.layout.rank]),
            None => builder.zero(self.frame.scope.program.field(field)?.element),
        };
        cell.apply.outputs.iter().map(old).collect()
    }

    fn evaluate(
        &self,
        builder: &Builder<'c>,
        cell: &Cell<'c, '_>,
        piece: &Piece<'c>,
        rules: Rules,
    ) -> Result<Vec<Val<'c>>, Error> {
        let fetch = |builder: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
            cell_in_registers(builder, distances, &|offset| read(cell, field, offset))
        };
        let (point, step) = (cell.point.as_slice(), cell.apply.step);
        let at = At { point, step, rules, fetch: &fetch, current: None, partial: None };
        self.frame.scope.evaluate(builder, piece, &at)
    }
}

/// A cell of the window at an offset.
fn read<'c>(cell: &Cell<'c, '_>, field: &str, offset: &[i64]) -> Result<Val<'c>, Error> {
    let ([plane, row, column], [back, down, right]) = (cell.position, of_three(offset, 0)?);
    let value = cell.window.get(&(field, [plane + back, row + down, column + right])).copied();
    value.ok_or_else(|| Error::internal(format!("no cell of @{field} is there to read")))
}

/// Values cell by cell, as the cells of each output.
fn by_output<'c>(values: &[Val<'c>], apply: &Apply<'c>) -> Outputs<'c> {
    let outputs = apply.outputs.len();
    let each = |number| values.iter().skip(number).step_by(outputs.max(1)).copied().collect();
    (0..outputs).map(each).collect()
}
