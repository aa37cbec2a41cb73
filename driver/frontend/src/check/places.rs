//! `argmin` and `argmax`: the number of the first point of a box, in row-major order and from 0,
//! that has the smallest or largest value.
//!
//! Two reductions: the value, in a field `NAME.best`, and the least number of a point that has it.
//! A NaN counts as the largest and as the smallest number, as in `min` and `max`.

use super::Checker;
use crate::ast::Name;
use crate::program::*;
use crate::source::Span;
use stencil_runtime::array::Element;

const I64: Type = Type::Element(Element::I64);

impl Checker<'_> {
    /// Adds the reduction to the best value; gives the box with the numbers of the points that have
    /// it, and the largest `i64` at others.
    pub(super) fn placed(
        &mut self,
        (combine, mut piece): (Combine, Piece),
        name: &Name,
        place: usize,
        span: Span,
    ) -> Option<Piece> {
        let value = piece.values.first()?.clone();
        let Type::Element(element) = value.ty else { return None };
        let grid = self.program.fields.get(self.reduction_ahead(name)?)?.grid;
        let best = self.program.fields.push(Field {
            name: format!("{}.best", name.node),
            role: Role::Reduction,
            element,
            boolean: false,
            member: None,
            grid,
            boundary: None,
            span,
        });
        self.program.reductions.push(Reduction {
            field: best,
            combine,
            piece: piece.clone(),
            initial: None,
            place,
            repeats: self.repeats.clone(),
            span,
        });
        let at = vec![integer(0, span)];
        let found = Expr { kind: ExprKind::Gather { field: best, at }, ty: value.ty, span };
        let compared = |op, a: &Expr, b: &Expr| {
            let kind = ExprKind::Binary(op, Box::new(a.clone()), Box::new(b.clone()));
            Expr { kind, ty: Type::Bool, span }
        };
        let mut has = compared(BinaryOp::Eq, &value, &found);
        if element.is_float() {
            let lost = compared(BinaryOp::Ne, &found, &found);
            let nan = compared(BinaryOp::Ne, &value, &value);
            has = compared(BinaryOp::Or, &has, &compared(BinaryOp::And, &lost, &nan));
        }
        let (number, none) = (number_of_point(&piece.region, span), integer(i64::MAX, span));
        let kind = ExprKind::If(Box::new(has), Box::new(number), Box::new(none));
        piece.values = vec![Expr { kind, ty: I64, span }];
        Some(piece)
    }
}

/// The number of a point of a box in row-major order.
fn number_of_point(region: &Region, span: Span) -> Expr {
    let bounds = region.lower.iter().zip(&region.upper).enumerate();
    bounds.fold(integer(0, span), |number, (dimension, (lower, upper))| {
        let coordinate = Expr { kind: ExprKind::Coordinate(dimension), ty: I64, span };
        let extent = sum(difference(upper, lower, span), integer(1, span));
        let own = binary(BinaryOp::Sub, coordinate, affine(lower, span));
        sum(binary(BinaryOp::Mul, number, extent), own)
    })
}

fn difference(a: &Affine, b: &Affine, span: Span) -> Expr {
    binary(BinaryOp::Sub, affine(a, span), affine(b, span))
}

fn affine(value: &Affine, span: Span) -> Expr {
    value.terms.iter().fold(integer(value.constant, span), |all, (param, factor)| {
        let param = Expr { kind: ExprKind::Param(*param), ty: I64, span };
        sum(all, binary(BinaryOp::Mul, integer(*factor, span), param))
    })
}

fn integer(value: i64, span: Span) -> Expr {
    Expr { kind: ExprKind::Int(value.into()), ty: I64, span }
}

fn sum(a: Expr, b: Expr) -> Expr {
    binary(BinaryOp::Add, a, b)
}

fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    let span = a.span;
    Expr { kind: ExprKind::Binary(op, Box::new(a), Box::new(b)), ty: I64, span }
}
