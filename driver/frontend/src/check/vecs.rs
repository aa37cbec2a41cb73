//! Vecs: written out, their lanes, and operators before them.

use super::Checker;
use super::aggregates::Tree;
use super::expressions::{Literal, Value};
use super::types::MOST_LANES;
use crate::ast::{self, Spanned, UnaryOp};
use crate::diagnostics::Diagnostic;
use crate::limits;
use crate::program::{Expr, ExprKind, Type};
use crate::source::Span;

impl Checker<'_> {
    /// `vec(a, b, ...)`
    pub(super) fn vec_literal(&mut self, arguments: &[ast::Expr], span: Span) -> Option<Tree> {
        let lanes: Vec<_> = arguments.iter().map(|argument| self.tree(argument)).collect();
        let lanes: Vec<Tree> = lanes.into_iter().collect::<Option<_>>()?;
        if lanes.is_empty() || lanes.len() as i64 > MOST_LANES {
            let message = format!("a vec has 1 to {MOST_LANES} lanes, not {}", lanes.len());
            self.report(Diagnostic::error(message, span, ""));
            return None;
        }
        let numbers: usize = lanes.iter().map(|lane| lane.leaves().len()).sum();
        if numbers > limits::CELL {
            let message = format!("a vec has at most {} numbers, not {numbers}", limits::CELL);
            self.report(Diagnostic::error(message, span, "").help("use several vecs"));
            return None;
        }
        // The first lane with a type gives it to the others.
        if let Some(lead) = lanes.iter().find(|lane| lane.is_typed()).cloned() {
            let like = |lane| self.like(&lead, lane, span);
            return Some(Tree::Vec(lanes.into_iter().map(like).collect::<Option<_>>()?));
        }
        let all = lanes.iter().flat_map(Tree::leaves);
        let widest: Option<Literal> = all.filter_map(|value| value.literal).max();
        let widened = |value| Value { literal: widest, ..value };
        Some(Tree::Vec(lanes.into_iter().map(|lane| lane.map(&widened)).collect()))
    }

    /// A lane of a vec in the type of another lane.
    fn like(&mut self, lead: &Tree, lane: Tree, span: Span) -> Option<Tree> {
        match (lead, lane) {
            (Tree::One(lead), Tree::One(lane)) => {
                let (_, expr, literal) = self.unify(lead.clone(), lane, "the lanes of a vec")?;
                Some(Tree::One(Value { expr, literal }))
            }
            (Tree::Vec(leads), Tree::Vec(lanes)) if leads.len() == lanes.len() => {
                let pairs = leads.iter().zip(lanes);
                let inner = pairs.map(|(lead, lane)| self.like(lead, lane, span));
                Some(Tree::Vec(inner.collect::<Option<_>>()?))
            }
            (Tree::Struct(id, _), Tree::Struct(other, parts)) if *id == other => {
                Some(Tree::Struct(other, parts))
            }
            (lead, lane) => {
                let (lead, lane) = (self.describe(lead), self.describe(&lane));
                let message = format!("the lanes of a vec have different types: {lead} and {lane}");
                self.report(Diagnostic::error(message, span, "").help("give all lanes one type"));
                None
            }
        }
    }

    /// `e.0`
    pub(super) fn lane(
        &mut self,
        inner: &ast::Expr,
        lane: &Spanned<u64>,
        span: Span,
    ) -> Option<Tree> {
        let tree = self.tree(inner)?;
        let Tree::Vec(lanes) = tree else {
            let message = format!("`.{}` needs a vec, not {}", lane.node, self.describe(&tree));
            self.report(Diagnostic::error(message, span, ""));
            return None;
        };
        let count = lanes.len();
        let found = usize::try_from(lane.node).ok().and_then(|lane| lanes.into_iter().nth(lane));
        if found.is_none() {
            let message = format!("there is no lane {} in a vec of {count}", lane.node);
            self.report(
                Diagnostic::error(message, lane.span, "")
                    .help(format!("lanes are 0 to {}", count - 1)),
            );
        }
        found
    }

    /// `-a` of a vec of numbers, `!a` of one of conditions.
    pub(super) fn turned(&mut self, op: UnaryOp, lanes: Vec<Tree>, span: Span) -> Option<Tree> {
        let lane = |lane| match lane {
            Tree::One(lane) if (lane.expr.ty == Type::Bool) == (op == UnaryOp::Not) => {
                let ty = lane.expr.ty;
                let kind = ExprKind::Unary(op, Box::new(lane.expr));
                Some(Tree::One(Value { expr: Expr { kind, ty, span }, literal: lane.literal }))
            }
            Tree::Vec(lanes) => self.turned(op, lanes, span),
            other => {
                let (symbol, of) = match op {
                    UnaryOp::Not => ("!", "conditions"),
                    _ => ("-", "numbers"),
                };
                let found = self.describe(&other);
                let message = format!("`{symbol}` takes vecs of {of}; a lane is {found}");
                let error = Diagnostic::error(message, span, "");
                self.report(error.help("take the parts: `.name`, `.0`"));
                None
            }
        };
        Some(Tree::Vec(lanes.into_iter().map(lane).collect::<Option<_>>()?))
    }
}
