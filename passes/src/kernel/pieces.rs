//! Selects a cell's new values among pieces. A branch stands only where a function may have no
//! result.

use melior::ir::{Module, ValueLike};
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::{self, Argument, Boundary, Piece, Program};

/// A piece that may cover a cell.
pub struct PieceCase<'c, 'p> {
    /// The piece.
    pub piece: &'p Piece<'c>,
    /// Whether it covers the cell.
    pub covered: Val<'c>,
    /// Whether its function has a result at every cell where it is evaluated; see [`is_total`] and
    /// [`is_total_where_covered`].
    pub total: bool,
}

/// Evaluates a piece's function at the cell.
pub type Evaluate<'c, 'e> = dyn Fn(&Builder<'c>, &Piece<'c>) -> Result<Vec<Val<'c>>, Error> + 'e;

/// The values of the piece that covers the cell, else `old`.
pub fn values<'c>(
    builder: &Builder<'c>,
    cases: &[PieceCase<'c, '_>],
    old: &[Val<'c>],
    evaluate: &Evaluate<'c, '_>,
) -> Result<Vec<Val<'c>>, Error> {
    let Some((case, rest)) = cases.split_first() else { return Ok(old.to_vec()) };
    if case.total {
        let new = evaluate(builder, case.piece)?;
        let others = values(builder, rest, old, evaluate)?;
        return new
            .into_iter()
            .zip(others)
            .map(|(new, other)| builder.select(case.covered, new, other))
            .collect();
    }
    let types: Vec<_> = old.iter().map(|value| value.r#type()).collect();
    builder.choose(
        case.covered,
        &types,
        |builder| evaluate(builder, case.piece),
        |builder| values(builder, rest, old, evaluate),
    )
}

/// Whether a point function has a result for all operands. Integer division by zero and an absolute
/// read outside the grid have none. The expressions of the boundary rules of its reads count too.
pub fn is_total(module: &Module, program: &Program, piece: &Piece) -> Result<bool, Error> {
    let divides = |name: &str| DIVISIONS.contains(&name);
    let gathers = stencil::gathers(stencil::function(module, piece.function)?)?;
    // The value of a reduction is there at every point.
    let cells = gathers.iter().filter_map(|gather| program.field(gather.field).ok());
    let inside = cells.into_iter().all(|field| field.role.is_reduced());
    Ok(inside && has_none(module, program, piece, divides)?)
}

/// Whether a point function has a result for all operands at a point that its piece covers. Its
/// absolute reads lie inside the grid there.
pub fn is_total_where_covered(
    module: &Module,
    program: &Program,
    piece: &Piece,
) -> Result<bool, Error> {
    has_none(module, program, piece, |name: &str| DIVISIONS.contains(&name))
}

/// Whether the boundary rule of a field, if it has one, has a value for all operands.
pub fn rule_is_total(module: &Module, program: &Program, field: &str) -> Result<bool, Error> {
    let Some(Boundary::Value(rule)) = program.field(field)?.boundary else { return Ok(true) };
    let mut operations = mlir::walk(stencil::function(module, rule)?).into_iter();
    Ok(!operations.any(|op| DIVISIONS.contains(&mlir::name(op))))
}

/// Operations without a result for some operands.
pub const DIVISIONS: [&str; 7] = [
    "arith.divsi",
    "arith.divui",
    "arith.remsi",
    "arith.remui",
    "arith.ceildivsi",
    "arith.ceildivui",
    "arith.floordivsi",
];

/// Whether a point function and the rules of its reads have no operation of some names.
fn has_none(
    module: &Module,
    program: &Program,
    piece: &Piece,
    partial: impl Fn(&str) -> bool,
) -> Result<bool, Error> {
    let function = stencil::function(module, piece.function)?;
    let mut functions = vec![function];
    for argument in stencil::arguments(function)? {
        if let Argument::Read { field, .. } = argument
            && let Some(Boundary::Value(rule)) = program.field(field)?.boundary
        {
            functions.push(stencil::function(module, rule)?);
        }
    }
    Ok(!functions.into_iter().flat_map(mlir::walk).any(|op| partial(mlir::name(op))))
}
