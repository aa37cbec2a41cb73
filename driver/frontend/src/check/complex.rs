//! Complex numbers: vecs of two floats, the real part and the imaginary one.

use super::Checker;
use super::aggregates::Tree;
use super::expressions::Value;
use crate::ast::{self, BinaryOp, Name, Spanned};
use crate::diagnostics::Diagnostic;
use crate::program::{Expr, ExprKind, MathFunction, Type, UnaryOp};
use crate::source::Span;

/// A function of complex numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Complex {
    /// The product of two.
    Product,
    /// The same with the other sign of the imaginary part.
    Conjugate,
    /// The absolute value.
    Absolute,
}

impl Complex {
    /// The function of a name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "cmul" => Some(Self::Product),
            "conj" => Some(Self::Conjugate),
            "cabs" => Some(Self::Absolute),
            _ => None,
        }
    }
}

impl Checker<'_> {
    /// `cmul(a, b)`, `conj(a)`, `cabs(a)`
    pub(super) fn complex(
        &mut self,
        function: Complex,
        name: &Name,
        arguments: &[ast::Expr],
        span: Span,
    ) -> Option<Tree> {
        let parts: Vec<_> = arguments.iter().map(|one| self.parts(name, one)).collect();
        let count = if function == Complex::Product { 2 } else { 1 };
        if !self.arity(count, name, arguments.len(), span) {
            return None;
        }
        let parts: Vec<[Value; 2]> = parts.into_iter().collect::<Option<_>>()?;
        let mut infix = |op, a: &Value, b: &Value| {
            self.binary(&Spanned::new(op, span), a.clone(), b.clone(), span)
        };
        match (function, parts.as_slice()) {
            (Complex::Product, [[a, b], [c, d]]) => {
                let (ac, bd) = (infix(BinaryOp::Mul, a, c)?, infix(BinaryOp::Mul, b, d)?);
                let (ad, bc) = (infix(BinaryOp::Mul, a, d)?, infix(BinaryOp::Mul, b, c)?);
                let real = infix(BinaryOp::Sub, &ac, &bd)?;
                Some(Tree::Vec(vec![Tree::One(real), Tree::One(infix(BinaryOp::Add, &ad, &bc)?)]))
            }
            (Complex::Conjugate, [[a, b]]) => {
                let kind = ExprKind::Unary(UnaryOp::Neg, Box::new(b.expr.clone()));
                let expr = Expr { kind, ty: b.expr.ty, span };
                let negative = Value { expr, literal: b.literal };
                Some(Tree::Vec(vec![Tree::One(a.clone()), Tree::One(negative)]))
            }
            (_, [[a, b]]) => {
                let (aa, bb) = (infix(BinaryOp::Mul, a, a)?, infix(BinaryOp::Mul, b, b)?);
                let Value { expr: sum, literal } = infix(BinaryOp::Add, &aa, &bb)?;
                let ty = sum.ty;
                let kind = ExprKind::Call(MathFunction::Sqrt, vec![sum]);
                Some(Tree::One(Value { expr: Expr { kind, ty, span }, literal }))
            }
            _ => None,
        }
    }

    /// The two parts of an argument, each computed once.
    fn parts(&mut self, name: &Name, argument: &ast::Expr) -> Option<[Value; 2]> {
        let tree = self.tree(argument)?;
        let float = |value: &Value| {
            value.literal.is_some()
                || matches!(value.expr.ty, Type::Element(element) if element.is_float())
        };
        if let Tree::Vec(lanes) = &tree
            && let [Tree::One(real), Tree::One(imaginary)] = lanes.as_slice()
            && float(real)
            && float(imaginary)
        {
            return Some([self.shared(real.clone()), self.shared(imaginary.clone())]);
        }
        let found = self.describe(&tree);
        let message = format!("`{}` takes vecs of two floats, not {found}", name.node);
        let error = Diagnostic::error(message, argument.span, "");
        self.report(error.help("a complex number is `vec(real, imaginary)`"));
        None
    }
}
