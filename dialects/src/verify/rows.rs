//! Rules for a sweep that stores rows in place of a matrix: rows lie where they say, and values of
//! rows are those of its own points.

use super::at;
use crate::affine::Linear;
use crate::error::Error;
use crate::stencil::{Argument, Program};
use crate::tiled::{Kernel, LastRows, MOST_CELLS, RowValue};

/// Checks the rows of a kernel and its values of rows.
pub(super) fn verify(program: &Program, kernel: &Kernel) -> Result<(), Error> {
    for rows in &kernel.rows.last {
        verify_last(program, kernel, rows)?;
    }
    kernel.rows.values.iter().try_for_each(|row| verify_value(program, kernel, row))
}

fn updates(kernel: &Kernel, field: &str) -> bool {
    kernel.applies().flat_map(|apply| &apply.outputs).any(|(name, _)| *name == field)
}

fn verify_last(program: &Program, kernel: &Kernel, last: &LastRows) -> Result<(), Error> {
    let &LastRows { field, rows, handed, kept } = last;
    let wrong = |message| Err(at(kernel.op, format!("tiled.last_rows names {message}")));
    if !updates(kernel, field) || kernel.stores(field) {
        return wrong(format!("@{field}, which no tiled.apply updates, or which is stored"));
    }
    let (whole, part) = (program.grid_of(field)?, program.grid_of(rows)?);
    if program.field(field)?.element != program.field(rows)?.element {
        return wrong(format!("@{rows}, whose cells have not the type of those of @{field}"));
    }
    let known = [handed, kept].iter().all(|rows| (0..=MOST_CELLS).contains(rows));
    let ends = Linear::of_map(part.lower).zip(Linear::of_map(part.upper));
    let count = ends.as_ref().and_then(|(lower, upper)| upper.first()?.minus(lower.first()?));
    let columns = |map| Linear::of_map(map).and_then(|ends| ends.get(1).cloned());
    let fits = count.is_some_and(|gap| gap.is_constant() && gap.constant + 1 == handed + kept)
        && part.upper == whole.upper
        && columns(part.lower) == columns(whole.lower);
    if !(known && fits) {
        let count = format!("{handed} + {kept}");
        return wrong(format!("@{rows}, whose grid is not the last {count} rows of @{field}"));
    }
    Ok(())
}

fn verify_value(program: &Program, kernel: &Kernel, row: &RowValue) -> Result<(), Error> {
    let wrong = |message| Err(at(kernel.op, format!("tiled.row_values names {message}")));
    let RowValue { piece, value, place, .. } = row;
    let beyond = || wrong(format!("@{}, which reads more than new values here", piece.function));
    if !program.gathered(piece.function)?.is_empty() {
        return beyond();
    }
    for argument in program.arguments(piece.function)? {
        let own = match argument {
            Argument::Read { field, offset } => {
                updates(kernel, field) && offset.iter().all(|cells| *cells == 0)
            }
            Argument::Scalar(_) | Argument::Param(_) | Argument::Coordinate(_) => true,
            _ => false,
        };
        if !own {
            return beyond();
        }
    }
    let bounds = |map| Linear::of_map(map).unwrap_or_default();
    let swept = kernel.applies().flat_map(|apply| &apply.outputs).next();
    let Some((swept, _)) = swept else { return Ok(()) };
    let swept = program.grid_of(swept)?;
    let (top, bottom, left) = (bounds(swept.lower), bounds(swept.upper), bounds(piece.lower));
    for field in [Some(value), place.as_ref()].into_iter().flatten() {
        let grid = program.grid_of(field)?;
        let (first, last) = (bounds(grid.lower), bounds(grid.upper));
        let column = left.len() == 2
            && (first.len(), last.len()) == (2, 2)
            && (first.first(), last.first()) == (top.first(), bottom.first())
            && (first.get(1), last.get(1)) == (left.get(1), left.get(1));
        if !column {
            return wrong(format!("@{field}, whose grid is not the first column of the box"));
        }
    }
    Ok(())
}
