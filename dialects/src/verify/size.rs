//! Refuses programs that would take too long to verify and compile.

use super::at;
use crate::error::Error;
use crate::limits;
use crate::mlir::{self, Op};
use crate::stencil::{Apply, Argument, Program};
use melior::ir::Module;

/// Counts what a program has; one error for each limit that is passed, at the first operation
/// beyond it.
pub(super) fn verify(module: &Module, program: &Program, errors: &mut Vec<Error>) {
    let mut at_most = |most: usize, what: &str, beyond: Option<Op>| {
        if let Some(op) = beyond {
            errors.push(at(op, format!("a program has at most {most} {what}")));
        }
    };
    let params = program.params.get(limits::PARAMS).map(|_| mlir::module_op(module));
    at_most(limits::PARAMS, "run-time sizes", params);
    let scalars = program.scalars.get(limits::SCALARS).map(|scalar| scalar.op);
    at_most(limits::SCALARS, "scalars", scalars);
    let fields = program.fields.get(limits::FIELDS).map(|field| field.op);
    at_most(limits::FIELDS, "fields", fields);
    let applies = program.applies.get(limits::APPLIES).map(|apply| apply.op);
    at_most(limits::APPLIES, "applies", applies);
    let checks = program.checks.get(limits::CHECKS).map(|check| check.op);
    at_most(limits::CHECKS, "checks", checks);
    let (mut pieces, mut reads) = (0, 0);
    for apply in &program.applies {
        let before = (pieces, reads);
        pieces += apply.pieces.len();
        for piece in &apply.pieces {
            // A function without meaning is the business of others.
            let arguments = program.arguments(piece.function).unwrap_or_default();
            let of_read = |argument: &Argument| match argument {
                Argument::Read { field, .. } | Argument::Current { field, .. } => {
                    let has_rule = program.field(field).is_ok_and(|of| of.boundary.is_some());
                    1 + usize::from(has_rule)
                }
                _ => 0,
            };
            reads += arguments.iter().map(of_read).sum::<usize>();
        }
        let passes = |before: usize, now: usize, most: usize| {
            (before <= most && now > most).then_some(apply.op)
        };
        at_most(limits::ALL_PIECES, "pieces", passes(before.0, pieces, limits::ALL_PIECES));
        at_most(limits::READS, "different reads", passes(before.1, reads, limits::READS));
    }
}

/// The limit of one apply that is passed, if any.
pub(super) fn beyond(apply: &Apply) -> Option<Error> {
    let counts = [
        (apply.updates.len(), limits::UPDATES, "updated fields"),
        (apply.pieces.len(), limits::PIECES, "pieces"),
    ];
    let (found, most, what) = counts.into_iter().find(|(found, most, _)| found > most)?;
    Some(at(apply.op, format!("an apply has at most {most} {what}, and this one has {found}")))
}
