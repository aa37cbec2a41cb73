//! Literals take the type of their context.
//!
//! A [`Value`] made of literals alone has no type yet. `adopt` gives it one: every literal in it
//! is rounded once, from its own text, to that type.

use super::Checker;
use super::expressions::{Literal, Value};
use super::names::type_name;
use crate::diagnostics::Diagnostic;
use crate::program::{Expr, ExprKind, Type, UnaryOp};
use crate::source::Span;
use stencil_runtime::array::Element;

impl Checker<'_> {
    /// An integer literal.
    pub(super) fn int_literal(&mut self, value: u64, negative: bool, span: Span) -> Option<Value> {
        let wide = if negative { -i128::from(value) } else { i128::from(value) };
        let Ok(value) = i64::try_from(wide) else {
            let error = Diagnostic::error("this integer does not fit i64", span, "");
            self.report(error.help(format!("write `{wide}.0` for a float")));
            return None;
        };
        let expr = Expr { kind: ExprKind::Int(value), ty: Type::Element(Element::I64), span };
        Some(Value { expr, literal: Some(Literal::Int) })
    }

    /// A float literal.
    pub(super) fn float_literal(&mut self, text: &str, span: Span) -> Option<Value> {
        let value = text.parse::<f64>().ok()?;
        self.singles.insert(span, text.parse::<f32>().unwrap_or(value as f32));
        let expr = Expr { kind: ExprKind::Float(value), ty: Type::Element(Element::F64), span };
        Some(Value { expr, literal: Some(Literal::Float) })
    }

    /// Gives a value of literals the type; another value must have it already.
    pub(super) fn adopt(&mut self, value: Value, ty: Type) -> Option<Expr> {
        match value.literal {
            None if value.expr.ty == ty => Some(value.expr),
            None => None, // Whoever calls has compared the types.
            Some(_) => self.retype(value.expr, ty),
        }
    }

    /// Gives a value of literals the type that it has on its own: f64, or i64 if all are integers.
    pub(super) fn settle(&mut self, value: Value) -> Option<Expr> {
        match value.literal {
            None => Some(value.expr),
            Some(Literal::Int) => self.retype(value.expr, Type::Element(Element::I64)),
            Some(Literal::Float) => self.retype(value.expr, Type::Element(Element::F64)),
        }
    }

    fn retype(&mut self, expr: Expr, ty: Type) -> Option<Expr> {
        let Type::Element(element) = ty else {
            return None;
        };
        let span = expr.span;
        let mut boxed = |expr: Box<Expr>| self.retype(*expr, ty).map(Box::new);
        let kind = match expr.kind {
            ExprKind::Int(value) => self.int_as(value, element, span)?,
            ExprKind::Float(value) => self.float_as(value, element, span)?,
            ExprKind::Unary(UnaryOp::Neg, inner) => {
                let inner = boxed(inner)?;
                match inner.kind {
                    ExprKind::Float(value) => ExprKind::Float(-value),
                    ExprKind::Int(value) => match value.checked_neg() {
                        Some(value) => ExprKind::Int(value),
                        None => ExprKind::Unary(UnaryOp::Neg, inner),
                    },
                    _ => ExprKind::Unary(UnaryOp::Neg, inner),
                }
            }
            ExprKind::Unary(op, inner) => ExprKind::Unary(op, boxed(inner)?),
            ExprKind::Binary(op, a, b) => ExprKind::Binary(op, boxed(a)?, boxed(b)?),
            ExprKind::If(condition, a, b) => ExprKind::If(condition, boxed(a)?, boxed(b)?),
            ExprKind::Let(id, value, body) => ExprKind::Let(id, value, boxed(body)?),
            ExprKind::Call(function, arguments) => {
                let retyped: Option<Vec<Expr>> =
                    arguments.into_iter().map(|argument| self.retype(argument, ty)).collect();
                let arguments = retyped?;
                if !self.takes(function, element, span) {
                    return None;
                }
                ExprKind::Call(function, arguments)
            }
            // Nothing else is made of literals alone.
            other => other,
        };
        Some(Expr { kind, ty, span })
    }

    fn int_as(&mut self, value: i64, element: Element, span: Span) -> Option<ExprKind> {
        match element {
            Element::I64 => Some(ExprKind::Int(value)),
            Element::I32 if i32::try_from(value).is_ok() => Some(ExprKind::Int(value)),
            Element::I32 => {
                let message = format!("`{value}` does not fit i32");
                self.report(Diagnostic::error(message, span, "").help("compute in i64"));
                None
            }
            Element::F32 => Some(ExprKind::Float(f64::from(value as f32))),
            Element::F64 => Some(ExprKind::Float(value as f64)),
        }
    }

    fn float_as(&mut self, value: f64, element: Element, span: Span) -> Option<ExprKind> {
        let text = crate::lexer::shorten(self.source.slice(span));
        match element {
            Element::F64 => Some(ExprKind::Float(value)),
            Element::F32 => {
                let single = self.singles.get(&span).copied().unwrap_or(value as f32);
                let fits = single.is_finite() && (single != 0.0 || value == 0.0);
                if fits {
                    return Some(ExprKind::Float(f64::from(single)));
                }
                let message = format!("`{text}` is too {} for f32", if single == 0.0 { "small" } else { "large" });
                let error = Diagnostic::error(message, span, "");
                self.report(error.help("the f32 numbers reach from about 1e-45 to 3.4e38; use f64"));
                None
            }
            Element::I32 | Element::I64 => {
                let name = type_name(element);
                let message = format!("a float literal where {name} is needed");
                let error = Diagnostic::error(message, span, format!("not an {name}"));
                self.report(error.help("write an integer, or convert the other operand to a float"));
                None
            }
        }
    }
}
