//! Literals take the type of their context.
//!
//! A [`Value`] made of literals alone has no type yet. `adopt` gives it one: every literal in it
//! is rounded once, from its own text, to that type.

use super::Checker;
use super::expressions::{Literal, Value};
use crate::diagnostics::Diagnostic;
use crate::program::{Expr, ExprKind, Type, UnaryOp};
use crate::source::Span;
use stencil_runtime::array::Element;
use stencil_runtime::number::Number;

impl Checker<'_> {
    /// An integer literal.
    pub(super) fn int_literal(&mut self, value: u64, span: Span) -> Value {
        let expr =
            Expr { kind: ExprKind::Int(value.into()), ty: Type::Element(Element::I64), span };
        Value { expr, literal: Some(Literal::Int) }
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
            ExprKind::Unary(UnaryOp::Neg, inner) => match inner.kind {
                // The sign belongs to the literal: `-2147483648` fits i32. A float has a `-0`.
                ExprKind::Int(value) if value != 0 || !element.is_float() => {
                    self.int_as(-value, element, span)?
                }
                _ => match boxed(inner)? {
                    inner if let ExprKind::Float(value) = inner.kind => ExprKind::Float(-value),
                    inner => ExprKind::Unary(UnaryOp::Neg, inner),
                },
            },
            ExprKind::Unary(op, inner) => {
                let inner = boxed(inner)?;
                if op == UnaryOp::Inverse && !self.has_bits("~", element, span) {
                    return None;
                }
                ExprKind::Unary(op, inner)
            }
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (boxed(a)?, boxed(b)?);
                if !self.bits_fit(op, &b, true, span) {
                    return None;
                }
                ExprKind::Binary(op, a, b)
            }
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

    fn int_as(&mut self, value: i128, element: Element, span: Span) -> Option<ExprKind> {
        match Number::integer(element, value) {
            Some(number) if element.is_float() => Some(ExprKind::Float(number.as_f64())),
            Some(_) => Some(ExprKind::Int(value)),
            None => {
                let error =
                    Diagnostic::error(format!("`{value}` does not fit {element}"), span, "");
                self.report(match element {
                    unsigned if unsigned.is_unsigned() && value < 0 => {
                        error.help("unsigned numbers are never negative")
                    }
                    Element::I64 if value > 0 && value <= u64::MAX.into() => {
                        error.help("compute in u64")
                    }
                    Element::F16 => error.help(F16_RANGE),
                    short if !short.is_float() && short.size() < 8 => error.help("compute in i64"),
                    _ => error.help(format!("write `{value}.0` for a float")),
                });
                None
            }
        }
    }

    fn float_as(&mut self, value: f64, element: Element, span: Span) -> Option<ExprKind> {
        let text = crate::lexer::shorten(self.source.slice(span));
        if !element.is_float() {
            let error = Diagnostic::error(
                format!("a float literal where {element} is needed"),
                span,
                "not an integer",
            );
            self.report(error.help("write an integer, or convert the other operand to a float"));
            return None;
        }
        let number = match element {
            Element::F32 => Some(self.singles.get(&span).copied().unwrap_or(value as f32).into()),
            other => Number::float(other, value).map(Number::as_f64),
        };
        let fits = |number: &f64| number.is_finite() && (*number != 0.0 || value == 0.0);
        if let Some(number) = number.filter(fits) {
            return Some(ExprKind::Float(number));
        }
        let extent = if number == Some(0.0) { "small" } else { "large" };
        let error = Diagnostic::error(format!("`{text}` is too {extent} for {element}"), span, "");
        self.report(match element {
            Element::F16 => error.help(F16_RANGE),
            Element::Bf16 => {
                error.help("the bf16 numbers reach from about 1e-40 to 3.4e38; use f64")
            }
            _ => error.help("the f32 numbers reach from about 1e-45 to 3.4e38; use f64"),
        });
        None
    }
}

const F16_RANGE: &str = "the f16 numbers reach from about 6e-8 to 65504; use f32";
