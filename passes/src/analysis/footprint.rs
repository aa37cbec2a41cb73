//! The footprint of an apply: which cells of which fields a point's new values come from.

use melior::ir::Module;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::{self, Argument, Piece};

/// One cell that a point function reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Read<'c> {
    /// The field.
    pub field: &'c str,
    /// Cells from the point, one number a dimension, slowest first.
    pub offset: Vec<i64>,
}

/// The cells that any of the pieces reads, sorted, each once.
pub fn of_pieces<'c>(module: &Module<'c>, pieces: &[Piece<'c>]) -> Result<Vec<Read<'c>>, Error> {
    let mut reads = Vec::new();
    for piece in pieces {
        for argument in stencil::arguments(stencil::function(module, piece.function)?)? {
            if let Argument::Read { field, offset } = argument {
                reads.push(Read { field, offset });
            }
        }
    }
    reads.sort();
    reads.dedup();
    Ok(reads)
}

/// Whether a piece divides or calls a mathematical function: long sequences of instructions, many of
/// which are under way at once.
pub fn has_long_operations<'c>(module: &Module<'c>, pieces: &[Piece<'c>]) -> Result<bool, Error> {
    for piece in pieces {
        let body = mlir::walk(stencil::function(module, piece.function)?);
        if body.into_iter().map(mlir::name).any(|name| name.starts_with("math.") || name == "arith.divf" || name == "arith.remf") {
            return Ok(true);
        }
    }
    Ok(false)
}
