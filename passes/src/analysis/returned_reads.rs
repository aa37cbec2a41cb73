//! Results of point functions that are values of a field at the point itself, as in `P' = U`.

use melior::ir::Module;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::{self, Argument, Piece};

/// The field that a point function reads at the point for one of its results and returns as it is.
pub fn returned_read<'c>(
    module: &Module<'c>,
    piece: &Piece<'c>,
    place: usize,
) -> Result<Option<&'c str>, Error> {
    let function = stencil::function(module, piece.function)?;
    let body = mlir::operations(stencil::function_body(function)?);
    let returned = body.last().and_then(|op| mlir::operands(*op).get(place).copied());
    let Some(returned) = returned.map(mlir::key) else { return Ok(None) };
    let arguments = stencil::arguments_with_values(function)?;
    let found = arguments.into_iter().find(|(_, value)| mlir::key(*value) == returned);
    Ok(match found {
        Some((Argument::Read { field, offset }, _)) if offset.iter().all(|cells| *cells == 0) => {
            Some(field)
        }
        _ => None,
    })
}
