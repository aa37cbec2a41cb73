//! The arguments of a point function whose values something uses.

use std::collections::BTreeSet;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};
use stencil_dialects::stencil::{self, Argument};

/// The used arguments of a function, in order.
///
/// # Errors
/// A function whose arguments have no meaning.
pub fn of<'c>(function: Op<'c>) -> Result<Vec<Argument<'c>>, Error> {
    let operands = mlir::walk(function).into_iter().flat_map(mlir::operands);
    let used: BTreeSet<usize> = operands.map(mlir::key).collect();
    let arguments = stencil::arguments_with_values(function)?.into_iter();
    let kept = arguments.filter(|(_, value)| used.contains(&mlir::key(*value)));
    Ok(kept.map(|(argument, _)| argument).collect())
}
