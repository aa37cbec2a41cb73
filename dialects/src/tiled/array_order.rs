//! The order of dimensions of an array of affine loops, as attributes of the allocation that holds
//! it, and of the function's argument.

use crate::attribute::{self, read_optional};
use crate::error::Error;
use crate::mlir::{self, Op};
use melior::Context;
use melior::ir::operation::OperationLike;

const TRANSPOSED: &str = "tiled.transposed";
const NOTE: &str = "tiled.layout_note";
const ARGUMENTS: &str = "arg_attrs";

/// The name of the array that an allocation is the transpose of.
///
/// # Errors
/// An attribute that is no text.
pub fn transposed_of<'c>(allocation: Op<'c>) -> Result<Option<&'c str>, Error> {
    read_optional(allocation, TRANSPOSED, attribute::as_string)
}

/// Says of which array an allocation is the transpose.
pub fn set_transposed<'c>(context: &'c Context, allocation: Op<'c>, of: &str) {
    mlir::set_attribute(allocation, TRANSPOSED, attribute::string(context, of));
}

/// What [`set_layout_note`] notes at an allocation.
///
/// # Errors
/// An attribute that is no text.
pub fn layout_note<'c>(allocation: Op<'c>) -> Result<Option<&'c str>, Error> {
    read_optional(allocation, NOTE, attribute::as_string)
}

/// Notes at an allocation why its dimensions have their order.
pub fn set_layout_note<'c>(context: &'c Context, allocation: Op<'c>, note: &str) {
    mlir::set_attribute(allocation, NOTE, attribute::string(context, note));
}

/// What [`set_argument_note`] notes.
///
/// # Errors
/// An attribute that is no text, with the place of the function.
pub fn argument_note<'c>(function: Op<'c>, place: usize) -> Result<Option<&'c str>, Error> {
    let all = mlir::attribute(function, ARGUMENTS).and_then(attribute::as_array);
    let own = all.unwrap_or_default().get(place).copied();
    let Some(note) = own.and_then(|own| attribute::entry(own, NOTE)) else { return Ok(None) };
    let wrong = || {
        let message = format!("{NOTE} has to be a string; it is {note}");
        Error::new(mlir::place(function.location()), message)
    };
    attribute::as_string(note).map(Some).ok_or_else(wrong)
}

/// Notes at an argument, of so many, why kernels use its dimensions in their order.
pub fn set_argument_note<'c>(
    context: &'c Context,
    function: Op<'c>,
    (place, of): (usize, usize),
    note: &str,
) {
    let all = mlir::attribute(function, ARGUMENTS).and_then(attribute::as_array);
    let mut all = all.unwrap_or_default();
    all.resize(of.max(all.len()), attribute::dictionary(context, &[]));
    if let Some(slot) = all.get_mut(place) {
        let mut entries = mlir::entries(*slot).unwrap_or_default();
        entries.retain(|(name, _)| *name != NOTE);
        entries.push((NOTE, attribute::string(context, note)));
        *slot = attribute::dictionary(context, &entries);
    }
    mlir::set_attribute(function, ARGUMENTS, attribute::array(context, &all));
}
