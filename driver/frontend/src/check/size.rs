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
        let (mut count, mut operations, mut reads) = (0, 0, 0);
        let mut beyond = None;
        for piece in pieces {
            count += 1;
            operations += values(piece).map(|value| size(&self.program, value)).sum::<usize>();
            let mut read = BTreeSet::new();
            values(piece).for_each(|value| different_reads(value, &mut read));
            reads += read.len();
            let passed = [
                (count, limits::ALL_PIECES, "pieces"),
                (reads, limits::READS, "different reads"),
                (operations, limits::OPERATIONS, "operations"),
            ];
            let passed = passed.into_iter().find(|(found, most, _)| found > most);
            let Some((_, most, what)) = passed else { continue };
            let what = format!("a program has at most {most} {what}");
            beyond = Some((what, piece.span));
            break;
        }
        if let Some((message, span)) = beyond {
            let error = Diagnostic::error(message, span, "too many with this piece");
            self.report(
                error
                    .help("structs, vecs and boundary rules count at each use; write two programs"),
            );
        }
    }
}

/// The expressions of a piece.
fn values(piece: &Piece) -> impl Iterator<Item = &Expr> {
    piece.lets.iter().map(|(_, value)| value).chain(&piece.values)
}

/// Adds the cells that an expression reads at offsets.
fn different_reads(expr: &Expr, found: &mut BTreeSet<(FieldId, Vec<i64>)>) {
    if let ExprKind::Read { field, offset } = &expr.kind {
        found.insert((*field, offset.clone()));
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
