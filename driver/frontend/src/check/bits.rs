//! What operators on bits take: integers, and shifts by less than their bits.

use super::Checker;
use crate::ast;
use crate::diagnostics::Diagnostic;
use crate::program::{BinaryOp, Expr, ExprKind, Type};
use crate::source::Span;
use stencil_runtime::array::Element;

impl Checker<'_> {
    /// Whether a type has bits that an operator works on.
    pub(super) fn has_bits(&mut self, symbol: &str, element: Element, span: Span) -> bool {
        if !element.is_float() {
            return true;
        }
        let error = Diagnostic::error(
            format!("`{symbol}` works on the bits of integers, not on {element}"),
            span,
            "",
        );
        self.report(match symbol {
            "^" => error.help("write a power as `pow(a, b)`, a square as `a * a`"),
            _ => error.help("convert the operands to integers, as in `u32(a)`"),
        });
        false
    }

    /// Whether the operands of an operator on bits are integers, and a shift that is written as a
    /// literal is by less than their bits. True of other operators.
    pub(super) fn bits_fit(
        &mut self,
        op: BinaryOp,
        right: &Expr,
        written: bool,
        span: Span,
    ) -> bool {
        let Type::Element(element) = right.ty else { return true };
        if !op.is_bitwise() {
            return true;
        }
        let symbol = ast::symbol(op);
        if !self.has_bits(symbol, element, span) {
            return false;
        }
        let bits = 8 * element.size() as i128;
        let ExprKind::Int(count) = right.kind else { return true };
        if !op.is_shift() || !written || (0..bits).contains(&count) {
            return true;
        }
        let error = Diagnostic::error(
            format!("a shift of {element} by {count}, which has {bits} bits"),
            right.span,
            format!("not from 0 to {}", bits - 1),
        );
        self.report(error.help("shift by less, or in a wider type"));
        false
    }
}
