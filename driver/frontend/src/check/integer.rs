//! Integer expressions over sizes: bounds of boxes, values of params, offsets, steps.

use super::Checker;
use super::names::Symbol;
use crate::ast::{BinaryOp, Expr, ExprKind, UnaryOp};
use crate::diagnostics::Diagnostic;
use crate::program::Affine;

impl Checker<'_> {
    /// The affine form of an integer expression; `None` after an error. `what` names its use.
    pub fn affine(&mut self, expr: &Expr, what: &str) -> Option<Affine> {
        match &expr.node {
            ExprKind::Int(value) => {
                let value = i64::try_from(*value).ok().map(Affine::number);
                self.within_range(value, expr)
            }
            ExprKind::Name(name) => self.size(name, expr, what),
            ExprKind::Unary(UnaryOp::Neg, inner) => {
                let inner = self.affine(inner, what)?;
                self.within_range(inner.times(-1), expr)
            }
            ExprKind::Binary(op, left, right) => {
                let pair = (self.affine(left, what), self.affine(right, what));
                let (Some(a), Some(b)) = pair else {
                    return None;
                };
                match op.node {
                    BinaryOp::Add => self.within_range(a.plus(&b), expr),
                    BinaryOp::Sub => self.within_range(a.minus(&b), expr),
                    BinaryOp::Mul => self.product(expr, &a, &b),
                    BinaryOp::Div | BinaryOp::Rem => self.quotient(expr, op.node, &a, &b),
                    _ => self.no_integer(expr, what),
                }
            }
            ExprKind::Broken => None,
            _ => self.no_integer(expr, what),
        }
    }

    /// The value of an integer expression that no run-time size may occur in.
    pub fn constant(&mut self, expr: &Expr, what: &str) -> Option<i64> {
        let affine = self.affine(expr, what)?;
        let value = affine.as_number();
        if value.is_none() {
            let names = affine.show(&self.program.params);
            let error = Diagnostic::error(
                format!("{what} must be constant"),
                expr.span,
                format!("`{names}` is known at run time only"),
            );
            self.report(error.help(self.give_value(&affine)));
        }
        value
    }

    fn size(&mut self, name: &str, expr: &Expr, what: &str) -> Option<Affine> {
        if let Some(number) = self.number_of_range(name) {
            return Some(Affine::number(number));
        }
        let coordinate = self.scope.coordinates.iter().flatten().find(|known| known.node == name);
        if coordinate.is_some() || self.scope.locals.iter().any(|local| local.name == name) {
            let error = Diagnostic::error(
                format!("{what} must be the same at all points, but `{name}` is not"),
                expr.span,
                "",
            );
            self.report(match what {
                super::OFFSET => error.help(
                    "an offset counts from the present point: `A[0]` is the value here, \
                         `A(i)` the one at the coordinate `i`",
                ),
                _ => error.help("boxes are rectangular; use `if` for another shape"),
            });
            return None;
        }
        if super::names::is_reserved(name) {
            let error =
                Diagnostic::error(format!("{what} cannot be made of `{name}`"), expr.span, "");
            self.report(error.help("only integers and params may occur here"));
            return None;
        }
        match self.resolve(name, expr.span)? {
            Symbol::Param(id) => match self.program.params.get(id)?.value {
                Some(value) => Some(Affine::number(value)),
                None => Some(Affine::param(id)),
            },
            other => {
                let message =
                    format!("{what} is made of sizes, but `{name}` is {}", other.describe());
                let error = Diagnostic::error(message, expr.span, "");
                self.report(error.help("only integers and params may occur here"));
                None
            }
        }
    }

    fn product(&mut self, expr: &Expr, a: &Affine, b: &Affine) -> Option<Affine> {
        match (a.as_number(), b.as_number()) {
            (_, Some(number)) => self.within_range(a.times(number), expr),
            (Some(number), _) => self.within_range(b.times(number), expr),
            (None, None) => {
                let error = Diagnostic::error(
                    "a product of two run-time sizes is not affine",
                    expr.span,
                    "",
                );
                self.report(error.help(self.give_value(b)));
                None
            }
        }
    }

    fn quotient(&mut self, expr: &Expr, op: BinaryOp, a: &Affine, b: &Affine) -> Option<Affine> {
        match (a.as_number(), b.as_number()) {
            (_, Some(0)) => {
                let error = Diagnostic::error("division by zero", expr.span, "");
                self.report(error.help("the divisor is always 0"));
                None
            }
            (Some(x), Some(y)) => {
                let value = match op {
                    BinaryOp::Div => x.checked_div(y),
                    _ => x.checked_rem(y),
                };
                self.within_range(value.map(Affine::number), expr)
            }
            _ => {
                let error = Diagnostic::error("a run-time size cannot be divided", expr.span, "");
                let whose = if a.as_number().is_none() { a } else { b };
                self.report(error.help(self.give_value(whose)));
                None
            }
        }
    }

    fn within_range(&mut self, value: Option<Affine>, expr: &Expr) -> Option<Affine> {
        if value.is_none() {
            let text = crate::lexer::shorten(self.source.slice(expr.span));
            let error = Diagnostic::error(
                format!("size overflow: `{text}` does not fit 64 bits"),
                expr.span,
                "",
            );
            self.report(error.help("sizes lie between -2^63 and 2^63 - 1"));
        }
        value
    }

    fn no_integer(&mut self, expr: &Expr, what: &str) -> Option<Affine> {
        let error = Diagnostic::error(
            format!("{what} must be an integer expression of sizes"),
            expr.span,
            "",
        );
        self.report(error.help(match expr.node {
            ExprKind::Float(_) if what == super::PARAM => {
                "a param is an integer; another number is a scalar, as in `scalar c : f32 = 0.5`"
            }
            _ => "made of integers, params, `+ - * / %` and parentheses",
        }));
        None
    }

    fn give_value(&self, affine: &Affine) -> String {
        let first = affine.terms.first().and_then(|(id, _)| self.program.params.get(*id));
        let name = first.map_or("N", |param| param.name.as_str());
        format!("give `{name}` a value: `param {name} = 64` in the file, or `-D {name}=64`")
    }
}
