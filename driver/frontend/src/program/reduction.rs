//! Reductions, and the condition that ends a run: values computed over many points.

use super::{Expr, FieldId, Piece, Repetition};
use crate::source::Span;
use stencil_runtime::number::Numeral;

/// `reduce NAME : TYPE = OPERATION(VALUE) on BOX`: one value made of those of all points of a box.
///
/// Its value lies in the one cell of a field of its own, of the role
/// [`Reduction`](super::Role::Reduction); an absolute read of that cell is a use of the value.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduction {
    /// The field that holds the value.
    pub field: FieldId,
    /// How values are combined.
    pub combine: Combine,
    /// The box, with one value of the field's type.
    pub piece: Piece,
    /// The value before the first step; 0 where nothing reads it.
    pub initial: Option<Numeral>,
    /// How many functions of a step run before it. Reductions between the same functions are
    /// computed in order.
    pub place: usize,
    /// The `repeat`s that it stands in, the outer one first.
    pub repeats: Vec<Repetition>,
    /// Where it is declared.
    pub span: Span,
}

/// How two values become one. `count`, `any` and `all` are sums and extrema of 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// The sum; the order is part of the language.
    Sum,
    /// The smaller one; a NaN where one is a NaN.
    Min,
    /// The larger one; a NaN where one is a NaN.
    Max,
    /// The smaller one of conditions, which are 0 or 1; 1 where there is none.
    All,
}

/// `until CONDITION every COUNT`
#[derive(Clone, Debug, PartialEq)]
pub struct Until {
    /// A condition on reductions, scalars, sizes and the step that was taken last.
    pub condition: Expr,
    /// The condition is looked at each time after so many steps.
    pub every: i64,
    /// The condition as it is written.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}
