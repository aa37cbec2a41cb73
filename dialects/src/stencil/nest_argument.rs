//! External names of the arguments of a function of affine loops.

use crate::attribute;
use crate::error::Error;
use crate::mlir::{self, Op};
use melior::ir::operation::OperationLike;

const NAME: &str = "stencil.name";
const EXTENTS: &str = "stencil.extents";

/// The names of an argument: `{stencil.name = "A", stencil.extents = ["N", "M"]}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NestArgument<'c> {
    /// Its own, if it has one.
    pub name: Option<&'c str>,
    /// The sizes that its dynamic extents are, the slowest first; none where they have no names.
    pub extents: Option<Vec<&'c str>>,
}

/// The names of a function's argument.
///
/// # Errors
/// An attribute that is no string, or no list of strings.
pub fn nest_argument<'c>(function: Op<'c>, place: usize) -> Result<NestArgument<'c>, Error> {
    let all = mlir::attribute(function, "arg_attrs").and_then(attribute::as_array);
    let Some(named) = all.unwrap_or_default().get(place).copied() else {
        return Ok(NestArgument::default());
    };
    let wrong = |what: &str| {
        let place = mlir::place(function.location());
        Error::new(place, format!("{what}; it is {named}"))
    };
    let name = attribute::entry(named, NAME).map(|name| {
        attribute::as_string(name).ok_or_else(|| wrong("stencil.name has to be a string"))
    });
    let extents = attribute::entry(named, EXTENTS).map(|names| {
        attribute::as_strings(names).ok_or_else(|| wrong("stencil.extents has to list strings"))
    });
    Ok(NestArgument { name: name.transpose()?, extents: extents.transpose()? })
}
