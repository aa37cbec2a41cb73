//! What a point of a sweep reads and stores.

use std::collections::BTreeSet;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::{self, Argument, Piece, Program};
use stencil_runtime::model::Swept;

/// What a point of the piece that moves most moves, of a function that stores some values. Absolute
/// reads count where their field has as many dimensions as the points: those of other fields lie
/// side by side.
pub fn of(
    program: &Program,
    pieces: &[Piece],
    (stored, rank): (usize, usize),
) -> Result<Swept, Error> {
    let mut most = Swept::default();
    for piece in pieces {
        let (mut current, mut old) = (BTreeSet::new(), BTreeSet::new());
        for argument in program.arguments(piece.function)? {
            match argument {
                Argument::Current { field, offset } => drop(current.insert((field, offset))),
                Argument::Read { field, offset } => drop(old.insert((field, offset))),
                _ => {}
            }
        }
        let mut absolute = 0;
        for gather in stencil::gathers(program.function(piece.function)?)? {
            absolute += usize::from(program.grid_of(gather.field)?.rank() == rank);
        }
        let found = Swept {
            current: count(current.len()),
            old: count(old.len() + absolute),
            stored: count(stored),
        };
        if found.current + found.old > most.current + most.old {
            most = found;
        }
    }
    Ok(Swept { stored: count(stored), ..most })
}

/// Whether a function reads no old value of a field that it updates, so that it may update them in
/// place. Cells that no piece covers keep their values where they lie.
pub fn reads_no_old<'c>(
    program: &Program<'c>,
    pieces: &[Piece<'c>],
    updates: &[(&'c str, Val<'c>)],
) -> Result<bool, Error> {
    let updated = |field: &str| updates.iter().any(|(updated, _)| *updated == field);
    for piece in pieces {
        for argument in program.arguments(piece.function)? {
            if matches!(argument, Argument::Read { field, .. } if updated(field)) {
                return Ok(false);
            }
        }
    }
    Ok(!program.gathered_by(pieces)?.into_iter().any(updated))
}

/// As many as a point function may have: limits of the language keep it small.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX / 4)
}
