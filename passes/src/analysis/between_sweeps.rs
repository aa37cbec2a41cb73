//! What a point of a sweep waits for in the sweep before, where both run at once.
//!
//! The sweeps of a launch exchange two buffers. Sweep `s + 1` reads the old values that sweep `s`
//! wrote, and writes the buffer from which sweep `s` read its own old values. At point `p`, it may
//! begin when sweep `s` has computed
//!
//! | point | why |
//! |---|---|
//! | `p + o` for each offset `o` of an old value | its value is read |
//! | `p - o` | it read the cell that is overwritten |
//! | `p - c` for each offset `c` of a new value | the same, where a field has one buffer |
//! | `p` | each sweep is behind the one before at each point |
//!
//! Sweeps farther apart are ordered through those between them.

use crate::analysis::footprint;
use crate::analysis::wavefront::Vectors;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::stencil::{Argument, Boundary, Piece, Program};
use stencil_dialects::tiled::Halo;

/// Offsets that are looked at one by one.
const MOST_OFFSETS: usize = 1 << 16;

/// The distances to the points of the sweep before for which a point waits.
///
/// # Errors
/// A decline: old values at places that no distance bounds.
pub fn distances<'c>(
    program: &Program<'c>,
    pieces: &[Piece<'c>],
    updates: &[&'c str],
) -> Result<Vectors, Error> {
    let decline = |text: &str| Error::declined(Decline::Height, text);
    let updated = |field: &str| updates.contains(&field);
    if program.gathered_by(pieces)?.iter().any(|field| updated(field)) {
        return Err(decline(
            "the function reads a field at computed places that it updates, so each sweep needs \
             the one before whole; leave pyramid-height out",
        ));
    }
    let mut found = Vectors::new();
    let mut add = |field: &str, reach: &Halo, old: bool| -> Result<(), Error> {
        let declared = program.field(field)?;
        let beside = reach.lower.iter().chain(&reach.upper).any(|cells| *cells != 0);
        if declared.boundary == Some(Boundary::Periodic) && beside {
            return Err(decline(
                "the function reads values beyond an end of a periodic field, which the sweep \
                 before has at its other end; leave pyramid-height out",
            ));
        }
        let read = footprint::Read { field: declared.name, reach: reach.clone() };
        let lengths = reach.lower.iter().zip(&reach.upper);
        let count = lengths.fold(1_u64, |all, (lower, upper)| {
            all.saturating_mul(upper.abs_diff(*lower).saturating_add(1))
        });
        if usize::try_from(count).is_ok_and(|count| count <= MOST_OFFSETS) {
            for offset in read.offsets() {
                found.insert(offset.iter().map(|cells| cells.saturating_neg()).collect());
                found.extend(old.then_some(offset));
            }
            return Ok(());
        }
        Err(decline(
            "the function reads values too far away for several sweeps at once; leave \
             pyramid-height out",
        ))
    };
    for piece in pieces {
        for argument in program.arguments(piece.function)? {
            match argument {
                Argument::Read { field, offset } if updated(field) => {
                    add(field, &Halo::of_read(program.field(field)?, offset), true)?;
                }
                Argument::Current { field, offset } => {
                    add(field, &Halo::of_read(program.field(field)?, offset), false)?;
                }
                _ => {}
            }
        }
        let here = vec![0; piece.lower.result_count()];
        if let Some(field) = updates.first() {
            add(field, &Halo { lower: here.clone(), upper: here }, true)?;
        }
    }
    Ok(found)
}
