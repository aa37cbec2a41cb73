//! Functions in MLIR from another program, which take the place of point functions.

use crate::failure::Failure;
use crate::inline_calls;
use crate::session::Session;
use melior::Context;
use melior::ir::Module;
use stencil_dialects::error::{Error, Place};
use stencil_dialects::mlir;
use stencil_frontend::program::Program;
use stencil_frontend::source::Source;
use stencil_passes::affine::lower_affine_nest;
use stencil_passes::stencil::compute_element;

/// Checks a program for the reference, which runs its own functions: others may not take their
/// place.
pub(crate) fn checked(session: &Session, source: &Source) -> Result<Program, Failure> {
    match &session.options().element {
        None => session.check(source),
        Some(element) => Err(Failure::user(format!(
            "the reference runs the program's own functions, and those of {} take their place; \
             compare with another target, or leave the option element out",
            element.name
        ))),
    }
}

/// Puts functions in MLIR in the place of a module's point functions: each in that of its name, or
/// in that of the only one where it is called `compute_element`.
///
/// # Errors
/// A function that does not fit, and a module of affine loops, which has no point functions. The
/// place is in the source of the functions.
pub fn replace_functions<'c>(
    context: &'c Context,
    module: &Module<'c>,
    element: &Source,
) -> Result<(), Error> {
    if lower_affine_nest::function(module)?.is_some() {
        return Err(Error::new(
            Place::file(&element.name),
            "a function of affine loops has no point functions that others could replace; leave \
             the option element out",
        ));
    }
    let parsed = mlir::parse_module(context, &element.text, &element.name);
    let mut by = parsed.map_err(|error| {
        error.with_note(Place::file(&element.name), "the option element takes functions in MLIR")
    })?;
    inline_calls::run(context, &mut by)?;
    compute_element::replace(module, &by)
}
