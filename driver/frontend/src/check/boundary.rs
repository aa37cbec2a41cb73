//! Boundary rules: `boundary FIELD = nearest | periodic | reflect | EXPR`.

use super::names::Symbol;
use super::{Checker, Scope};
use crate::ast::{self, ExprKind, Name};
use crate::diagnostics::Diagnostic;
use crate::program::{Boundary, Expr, FieldId, Type};
use crate::source::Span;

/// Names of the coordinates in a rule, slowest dimension first.
pub const COORDINATES: [&str; 3] = ["x0", "x1", "x2"];

/// The rules that are names.
const RULES: [(&str, Boundary); 3] =
    [("nearest", Boundary::Nearest), ("periodic", Boundary::Periodic), ("reflect", Boundary::Reflect)];

/// Cells that a read of a field with a rule may lie from its point: room for indices beyond the grid.
pub const FARTHEST: i64 = 1 << 15;

impl Checker<'_> {
    pub(super) fn boundary(&mut self, name: &Name, rule: &ast::Expr, span: Span) {
        let field = match self.resolve(name, name.span) {
            None => {
                self.sound = false;
                return;
            }
            Some(Symbol::Field(id)) => id,
            Some(other) => {
                let message = format!("a boundary belongs to a field, but `{}` is {}", name.node, other.describe());
                self.report(Diagnostic::error(message, name.span, ""));
                return;
            }
        };
        if let Some(first) = self.bounded.get(&name.node).copied().filter(|first| *first != name.span) {
            let error = Diagnostic::error(format!("`{}` has two boundary rules", name.node), span, "again here");
            self.report(error.see(first, "first here").help("leave one of them out"));
            return;
        }
        let named = |(known, _): &&(&str, Boundary)| matches!(&rule.node, ExprKind::Name(word) if word == known);
        let boundary = match RULES.iter().find(named) {
            Some((_, rule)) => Some(rule.clone()),
            None if self.shapes.contains_key(&field) => {
                let help = "take nearest, periodic or reflect, or one field for each number";
                self.unsupported("expression boundary of structs and vecs", span, help);
                None
            }
            None => self.outside_value(field, rule).map(Boundary::Value),
        };
        for leaf in self.leaf_fields(field) {
            if let Some(field) = self.program.fields.get_mut(leaf) {
                field.boundary = boundary.clone();
            }
        }
    }

    /// The value of a rule that is an expression.
    fn outside_value(&mut self, field: FieldId, rule: &ast::Expr) -> Option<Expr> {
        let grid = self.program.fields.get(field)?.grid;
        let dimensions = self.program.grids.get(grid)?.region.lower.len();
        let coordinate = |name: &&str| Some(Name::new((*name).to_owned(), rule.span));
        self.scope = Scope {
            rule: Some(field),
            coordinates: COORDINATES.iter().take(dimensions).map(coordinate).collect(),
            ..Scope::default()
        };
        let value = self.piece_value(rule, Some(field)).and_then(|values| values.into_iter().next());
        let shared = std::mem::take(&mut self.scope.frames).into_iter().flatten().rev();
        let value = value.map(|value| {
            shared.fold(value, |body, (id, shared)| {
                let (ty, span) = (body.ty, body.span);
                Expr { kind: crate::program::ExprKind::Let(id, Box::new(shared), Box::new(body)), ty, span }
            })
        });
        self.scope = Scope::default();
        value
    }

    /// `nearest` in a rule; `None` for other names and places.
    pub(super) fn nearest(&self, name: &str) -> Option<Type> {
        let field = self.program.fields.get(self.scope.rule?)?;
        (name == "nearest").then_some(Type::Element(field.element))
    }

    /// Refuses reads of cells in a rule.
    pub(super) fn reads_in_rule(&mut self, name: &Name, span: Span) -> bool {
        if self.scope.rule.is_none() {
            return false;
        }
        let error = Diagnostic::error("a boundary rule reads no cells", span, format!("reads `{}`", name.node));
        self.report(error.help("`nearest` is the value of the field's nearest cell inside the grid"));
        true
    }
}
