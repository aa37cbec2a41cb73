//! How large a program is when all of it is written out.

use super::Checker;
use crate::diagnostics::Diagnostic;
use crate::limits;
use crate::program::{Boundary, Expr, ExprKind, FieldId, Piece, Program};
use std::collections::BTreeSet;

impl Checker<'_> {
    /// Refuses programs that would take too long to compile.
    pub(super) fn not_too_large(&mut self) {
        let pieces = self.program.functions.iter().flat_map(|function| &function.pieces);
        let reduced = self.program.reductions.iter().map(|reduction| &reduction.piece);
        let pieces = pieces.chain(reduced);
        let mut sums = [0; 2];
        let beyond = pieces.into_iter().find_map(|piece| {
            let found = [reads(&self.program, piece), operations(&self.program, piece)];
            sums.iter_mut().zip(found).for_each(|(sum, more)| *sum += more);
            let passed = LIMITS.iter().zip(sums).find(|((most, ..), sum)| sum > most);
            passed.map(|(limit, _)| (limit, piece.span))
        });
        if let Some(((most, what, help), span)) = beyond {
            let message = format!("a program has at most {most} {what}");
            let error = Diagnostic::error(message, span, "too many with this piece");
            self.report(error.help(help));
        }
        if let Some(first) = self.program.checks.get(limits::CHECKS) {
            let message = format!("a run checks at most {} conditions on sizes", limits::CHECKS);
            let error = Diagnostic::error(message, first.span, "too many with this one");
            self.report(error.help("write sizes that bounds and offsets can be compared with"));
        }
    }
}

/// The limits of all pieces together, with their remedies.
const LIMITS: [(usize, &str, &str); 2] = [
    (
        limits::READS,
        "different reads",
        "use temp fields for sums along each dimension; reads of fields with a boundary rule count \
         twice",
    ),
    (limits::OPERATIONS, "operations", "structs, vecs and boundary rules count at each use"),
];

/// Different cells that a piece reads at offsets. Those of a field with a boundary rule count
/// twice: their coordinates are computed one by one.
fn reads(program: &Program, piece: &Piece) -> usize {
    let mut found = BTreeSet::new();
    piece.exprs().for_each(|value| different_reads(value, &mut found));
    let has_rule = |(field, ..): &&(FieldId, Vec<i64>, bool)| {
        program.fields.get(*field).is_some_and(|field| field.boundary.is_some())
    };
    found.len() + found.iter().filter(has_rule).count()
}

/// Operations, reads and literals of a piece.
fn operations(program: &Program, piece: &Piece) -> usize {
    piece.exprs().map(|value| size(program, value)).sum()
}

/// Adds the cells that an expression reads at offsets.
fn different_reads(expr: &Expr, found: &mut BTreeSet<(FieldId, Vec<i64>, bool)>) {
    if let ExprKind::Read { field, offset, current } = &expr.kind {
        found.insert((*field, offset.clone(), *current));
    }
    expr.children().into_iter().for_each(|part| different_reads(part, found));
}

/// Operations, reads and literals of an expression.
fn size(program: &Program, expr: &Expr) -> usize {
    let rule = match &expr.kind {
        ExprKind::Read { field, .. } | ExprKind::Gather { field, .. } => {
            match program.fields.get(*field).and_then(|field| field.boundary.as_ref()) {
                Some(Boundary::Value(value)) => size(program, value),
                _ => 0,
            }
        }
        _ => 0,
    };
    let parts = expr.children().into_iter().map(|part| size(program, part));
    parts.fold(1 + rule, usize::saturating_add)
}
