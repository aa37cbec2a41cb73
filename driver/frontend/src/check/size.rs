//! How large a program is when all of it is written out.

use super::Checker;
use crate::diagnostics::Diagnostic;
use crate::limits;
use crate::program::{Boundary, Expr, ExprKind, Piece, Program};

impl Checker<'_> {
    /// Refuses programs that would take too long to compile.
    pub(super) fn not_too_large(&mut self) {
        let pieces = self.program.functions.iter().flat_map(|function| &function.pieces);
        let (mut count, mut operations) = (0, 0);
        let mut beyond = None;
        for piece in pieces {
            count += 1;
            operations += piece_size(&self.program, piece);
            let what = match (count > limits::ALL_PIECES, operations > limits::OPERATIONS) {
                (true, _) => format!("a program has at most {} pieces", limits::ALL_PIECES),
                (_, true) => format!("a program has at most {} operations", limits::OPERATIONS),
                _ => continue,
            };
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

/// Operations, reads and literals of a piece.
fn piece_size(program: &Program, piece: &Piece) -> usize {
    let lets = piece.lets.iter().map(|(_, value)| value);
    lets.chain(&piece.values).map(|value| size(program, value)).sum()
}

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
