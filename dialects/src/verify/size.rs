//! Refuses programs that would take too long to verify and compile.

use super::at;
use crate::error::Error;
use crate::limits;
use crate::mlir::{self, Op};
use crate::stencil::{Apply, Argument, Boundary, Program};
use melior::ir::Module;
use std::collections::BTreeMap;

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
    let mut sizes = Sizes { program, known: BTreeMap::new() };
    let mut before = Counts::default();
    for apply in &program.applies {
        let mut now = before;
        apply.pieces.iter().for_each(|piece| sizes.add(piece.function, &mut now));
        let mut passes = |count: fn(&Counts) -> usize, most: usize, what: &str| {
            let passed = count(&before) <= most && count(&now) > most;
            at_most(most, what, passed.then_some(apply.op));
        };
        passes(|counts| counts.pieces, limits::ALL_PIECES, "pieces");
        passes(|counts| counts.reads, limits::READS, "reads");
        passes(|counts| counts.operations, limits::OPERATIONS, OPERATIONS);
        before = now;
    }
    for reduce in &program.reduces {
        let mut now = before;
        sizes.add(reduce.function, &mut now);
        let passed = before.operations <= limits::OPERATIONS && now.operations > limits::OPERATIONS;
        at_most(limits::OPERATIONS, OPERATIONS, passed.then_some(reduce.op));
        before = now;
    }
}

const OPERATIONS: &str = "operations of point functions, counted for each piece, and of boundary \
                          rules, for each read";

/// What the pieces of a program have together.
#[derive(Clone, Copy, Default)]
struct Counts {
    pieces: usize,
    reads: usize,
    operations: usize,
}

/// The sizes of a program's point functions.
struct Sizes<'p, 'c> {
    program: &'p Program<'c>,
    /// Reads and operations of those that were counted.
    known: BTreeMap<&'c str, (usize, usize)>,
}

impl<'c> Sizes<'_, 'c> {
    /// Adds a piece with this function.
    fn add(&mut self, function: &'c str, counts: &mut Counts) {
        let (reads, operations) = match self.known.get(function) {
            Some(size) => *size,
            None => self.of(function),
        };
        self.known.insert(function, (reads, operations));
        counts.pieces += 1;
        counts.reads += reads;
        counts.operations = counts.operations.saturating_add(operations);
    }

    /// Reads of a function, where those under a boundary rule count twice, and its operations.
    fn of(&self, function: &str) -> (usize, usize) {
        let body = |name| self.program.function(name).map_or(0, |op| mlir::walk(op).len());
        let (mut reads, mut operations) = (0, body(function));
        // A function without meaning is the business of others.
        for argument in self.program.arguments(function).unwrap_or_default() {
            let (Argument::Read { field, .. } | Argument::Current { field, .. }) = argument else {
                continue;
            };
            let rule = self.program.field(field).ok().and_then(|field| field.boundary);
            reads += 1 + usize::from(rule.is_some());
            if let Some(Boundary::Value(rule)) = rule {
                operations = operations.saturating_add(body(rule));
            }
        }
        (reads, operations)
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
