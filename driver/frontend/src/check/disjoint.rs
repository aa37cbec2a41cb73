//! Disjoint pieces.
//!
//! Two pieces are disjoint if in one dimension one lies wholly before the other. Where that is
//! proved for no dimension and either order, the pieces overlap for all sizes if it is refuted
//! for all of them: an error. Otherwise the first dimension that can separate them in exactly one
//! order must do so, by a check; where both orders remain possible the user has to say more.

use super::Checker;
use super::prove::Facts;
use super::regions::{bounds_of, may_be_empty};
use crate::diagnostics::{Diagnostic, MOST_SHOWN};
use crate::limits;
use crate::program::{Affine, Check, Grid, Piece};

impl Checker<'_> {
    /// No two pieces of a function overlap.
    pub(super) fn disjoint(&mut self, pieces: &[Piece], grids: &[Grid], function: &str) {
        for (index, second) in pieces.iter().enumerate() {
            for first in pieces.iter().take(index) {
                // A program beyond these limits is refused without further proofs.
                let many_checks = self.program.checks.len() > limits::CHECKS;
                if many_checks || self.errors.len() > MOST_SHOWN {
                    return;
                }
                self.pair_disjoint(first, second, grids, function);
            }
        }
    }

    fn pair_disjoint(&mut self, first: &Piece, second: &Piece, grids: &[Grid], function: &str) {
        // Sizes are not negative.
        let before = |end: &Affine, start: &Affine| {
            let gap = start.minus(end);
            gap.is_some_and(|gap| gap.constant > 0 && gap.terms.iter().all(|(_, by)| *by >= 0))
        };
        for dimension in 0..first.region.lower.len() {
            let both = (bounds_of(&first.region, dimension), bounds_of(&second.region, dimension));
            if let (Some(a), Some(b)) = both
                && (before(a.1, b.0) || before(b.1, a.0))
            {
                return; // The common case, without a proof.
            }
        }
        let mut facts = Facts::default();
        for piece in [first, second] {
            facts.add_points(&piece.region);
            for grid in grids {
                facts.add_inside(&piece.region, &grid.region);
            }
        }
        let mut orders: Vec<Vec<Affine>> = Vec::new();
        for dimension in 0..first.region.lower.len() {
            let a = bounds_of(&first.region, dimension);
            let b = bounds_of(&second.region, dimension);
            let (Some((a_lower, a_upper)), Some((b_lower, b_upper))) = (a, b) else {
                return;
            };
            let gap = |end: &Affine, start: &Affine| start.minus(end)?.shifted(-1);
            let both = [gap(a_upper, b_lower), gap(b_upper, a_lower)];
            if both.iter().flatten().any(|value| facts.prove(value)) {
                return;
            }
            orders.push(both.into_iter().flatten().filter(|value| !facts.refute(value)).collect());
        }
        if facts.contradictory() {
            return; // One of them is empty.
        }
        let text = |span| crate::lexer::shorten(self.source.slice(span));
        let names = format!("`{}` and `{}` of `{function}`", text(first.span), text(second.span));
        if orders.iter().all(Vec::is_empty) {
            let error = Diagnostic::error(
                format!("the pieces {names} overlap"),
                second.span,
                "second piece",
            )
            .see(first.span, "first piece")
            .help("a point may lie in one piece only; both ends of a range are inclusive");
            self.report(error);
            return;
        }
        let Some(value) = orders.iter().find_map(|order| match order.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        }) else {
            let message = format!("it depends on the sizes whether the pieces {names} overlap");
            let error = Diagnostic::error(
                message,
                second.span,
                "before or behind the first piece?",
            )
            .see(first.span, "first piece")
            .help(
                "write the bounds so that one piece always comes first, as in `[0..K-1]` and \
                    `[K..N-1]`",
            );
            self.report(error);
            return;
        };
        let needed = value.show_condition(&self.program.params);
        // Which piece's emptiness counts: one is enough, and a check that is too strict is safe.
        let unless_empty = may_be_empty(&second.region).or_else(|| may_be_empty(&first.region));
        let message = format!("the pieces {names} overlap unless {needed}");
        self.program.checks.push(Check { value, unless_empty, message, span: second.span });
    }
}
