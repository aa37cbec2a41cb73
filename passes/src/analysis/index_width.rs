//! The bits that an index needs: 32 where every size that bounds the points of a kernel is known
//! and small enough, else 64. The reasons are in `docs/decisions/005-index-width.md`.

use melior::ir::AffineMap;
use stencil_dialects::affine::Linear;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::{Argument, Grid, Program, Role, arguments};

/// Room for a tile that reaches beyond the grid, in cells of one dimension.
const SLACK: i64 = 1 << 21;

/// 32 if the cells of every grid, and coordinates with slack around, can be counted in a signed
/// 32-bit integer, and the bounds of all pieces are known.
/// Cells outside of the grid have coordinates, but no number among the cells.
/// The size of a table may be open: a run checks that its cells can be counted.
pub fn of(program: &Program) -> Result<u32, Error> {
    let fits = |number: i64| number < i64::from(i32::MAX);
    let near = |map| {
        let far = |bound: &Linear| {
            bound.constant.checked_abs().and_then(|distance| distance.checked_add(SLACK))
        };
        Linear::of_map(map)
            .is_some_and(|bounds| bounds.iter().all(|bound| far(bound).is_some_and(fits)))
    };
    // The bound of an empty piece may lie anywhere, and kernels compute it.
    let known = |map| {
        near(map) && Linear::of_map(map).is_some_and(|all| all.iter().all(Linear::is_constant))
    };
    let mut pieces = program.applies.iter().flat_map(|apply| &apply.pieces);
    if !pieces.all(|piece| known(piece.lower) && known(piece.upper)) {
        return Ok(64);
    }
    for grid in &program.grids {
        let small = match constant_extents(grid.lower, grid.upper) {
            Some(extents) => extents
                .iter()
                .try_fold(1_i64, |product, extent| product.checked_mul(*extent))
                .is_some_and(fits),
            None => is_table(program, grid)?,
        };
        if !(small && near(grid.lower) && near(grid.upper)) {
            return Ok(64);
        }
    }
    Ok(32)
}

/// Whether the numbers of each array of structs can be counted in a signed 32-bit integer. A run
/// checks those whose size is open.
pub fn records_fit(program: &Program) -> bool {
    program.records().iter().all(|record| {
        let Ok(grid) = program.grid_of(record.name) else { return false };
        let extents = constant_extents(grid.lower, grid.upper).unwrap_or_default();
        let numbers = i64::try_from(record.numbers.len()).unwrap_or(i64::MAX);
        let cells = extents.iter().fold(1, |all: i64, extent| all.saturating_mul(*extent));
        let filled = cells.saturating_add(record.block - 1);
        filled.saturating_mul(numbers) < i64::from(i32::MAX)
    })
}

/// Whether a grid has const fields alone that are read at computed coordinates alone. No index of a
/// kernel runs over its points.
fn is_table(program: &Program, grid: &Grid) -> Result<bool, Error> {
    let mut fields = program.fields.iter().filter(|field| field.grid == grid.name);
    if !fields.all(|field| field.role == Role::Const) {
        return Ok(false);
    }
    let pieces = program.applies.iter().flat_map(|apply| &apply.pieces);
    let reduced = program.reduces.iter().map(|reduce| reduce.function);
    for function in pieces.map(|piece| piece.function).chain(reduced) {
        for argument in arguments(program.function(function)?)? {
            if let Argument::Read { field, .. } = argument
                && program.field(field)?.grid == grid.name
            {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Cells per dimension, slowest first, where all bounds are constants; 0 for an empty one.
pub fn constant_extents(lower: AffineMap, upper: AffineMap) -> Option<Vec<i64>> {
    let (lower, upper) = (Linear::of_map(lower)?, Linear::of_map(upper)?);
    lower
        .iter()
        .zip(&upper)
        .map(|(lower, upper)| {
            let length = upper.minus(lower)?;
            length
                .is_constant()
                .then(|| length.constant.checked_add(1).map(|cells| cells.max(0)))?
        })
        .collect()
}
