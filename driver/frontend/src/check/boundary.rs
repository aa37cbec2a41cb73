//! Boundary rules: `boundary FIELD = nearest | periodic | reflect | EXPR`.

use super::names::Symbol;
use super::{Checker, Scope};
use crate::ast::{self, Name};
use crate::diagnostics::Diagnostic;
use crate::program::{Boundary, Expr, FieldId};
use crate::source::Span;

/// Names of the coordinates in a rule, slowest dimension first.
pub const COORDINATES: [&str; 3] = ["x0", "x1", "x2"];

/// The rules that are names.
const RULES: [(&str, Boundary); 3] = [
    ("nearest", Boundary::Nearest),
    ("periodic", Boundary::Periodic),
    ("reflect", Boundary::Reflect),
];

impl Checker<'_> {
    pub(super) fn boundary(&mut self, name: &Name, rule: &ast::Expr, span: Span) {
        let field = match self.resolve_field(name) {
            None => {
                self.sound = false;
                return;
            }
            Some(Symbol::Field(id)) => id,
            Some(other) => {
                let message = format!(
                    "a boundary belongs to a field, but `{}` is {}",
                    name.node,
                    other.describe()
                );
                let error = Diagnostic::error(message, name.span, "not a field");
                self.report(error.help("name the field whose reads lead outside of its grid"));
                return;
            }
        };
        if let Some(first) =
            self.bounded.get(&name.node).copied().filter(|first| *first != name.span)
        {
            let error = Diagnostic::error(
                format!("`{}` has two boundary rules", name.node),
                span,
                "again here",
            );
            self.report(error.see(first, "first here").help("leave one of them out"));
            return;
        }
        let named = |(known, _): &&(&str, Boundary)| match &rule.node {
            ast::ExprKind::Name(word) => word == known,
            _ => false,
        };
        let leaves = self.leaf_fields(field);
        let boundaries: Vec<Boundary> = match RULES.iter().find(named) {
            Some((_, rule)) => vec![rule.clone(); leaves.len()],
            None => self
                .outside_values(field, rule)
                .into_iter()
                .flatten()
                .map(Boundary::Value)
                .collect(),
        };
        for (leaf, boundary) in leaves.into_iter().zip(boundaries) {
            if let Some(field) = self.program.fields.get_mut(leaf) {
                field.boundary = Some(boundary);
            }
        }
    }

    /// The values of a rule that is an expression, one for each number of a cell.
    fn outside_values(&mut self, field: FieldId, rule: &ast::Expr) -> Option<Vec<Expr>> {
        let grid = self.program.fields.get(field)?.grid;
        let dimensions = self.program.grids.get(grid)?.region.lower.len();
        let coordinate = |name: &&str| Some(Name::new((*name).to_owned(), rule.span));
        self.scope = Scope {
            rule: Some(field),
            coordinates: COORDINATES.iter().take(dimensions).map(coordinate).collect(),
            ..Scope::default()
        };
        let values = self.piece_value(rule, Some(field));
        let lets: Vec<_> = std::mem::take(&mut self.scope.frames).into_iter().flatten().collect();
        self.scope = Scope::default();
        Some(values?.into_iter().map(|value| value.with_lets(lets.clone())).collect())
    }

    /// Refuses reads of cells in a rule, and in the condition of `until`.
    pub(super) fn reads_in_rule(&mut self, name: &Name, span: Span) -> bool {
        if self.scope.ends_run {
            let label = format!("reads `{}`", name.node);
            let error = Diagnostic::error("the condition of `until` reads no cells", span, label);
            self.report(error.help("reduce them, as in `reduce most : f32 = max(A[0]) on [0..9]`"));
            return true;
        }
        if self.scope.rule.is_none() {
            return false;
        }
        let error = Diagnostic::error(
            "a boundary rule reads no cells",
            span,
            format!("reads `{}`", name.node),
        );
        self.report(
            error.help("`nearest` is the value of the field's nearest cell inside the grid"),
        );
        true
    }
}
