//! Where results of operators on bits lie.

use super::{Bound, Checker, Range};
use crate::program::{Affine, Expr};
use stencil_runtime::array::Element;

impl Checker<'_> {
    /// `a & b`: from 0 to whichever of them is not negative.
    pub(super) fn masked(&mut self, left: &Expr, right: &Expr, element: Element) -> Range {
        let mut found = Range::of_type(element);
        for operand in [left, right] {
            let range = self.cut(operand);
            if let Some(needs) = self.not_negative(&range) {
                let upper = Range { lower: Vec::new(), upper: range.upper }.needing(&needs).upper;
                let zero = Bound::one(Affine::number(0)).needing(&needs);
                found =
                    Range::new([vec![zero], found.lower].concat(), [upper, found.upper].concat());
            }
        }
        found
    }

    /// `a >> b`: from 0 to `a`, where that is not negative.
    pub(super) fn shifted_down(&mut self, left: &Expr, element: Element) -> Range {
        let range = self.cut(left);
        match self.not_negative(&range) {
            Some(needs) => {
                Range { lower: vec![Bound::one(Affine::number(0))], ..range }.needing(&needs)
            }
            None => Range::of_type(element),
        }
    }
}
