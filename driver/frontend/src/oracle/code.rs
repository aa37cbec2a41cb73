//! Expressions as lists of operations on registers. A register holds one value for each cell of
//! a strip; registers of different types are numbered apart.

use super::outside::{Map, Reach};
use crate::program::*;
use crate::sizes::Sizes;
use cranelift_entity::PrimaryMap;
use stencil_runtime::number::Number;

/// Number of a register among those of its type.
pub type Register = usize;

/// What is known before a run.
pub struct Environment<'a> {
    /// The program.
    pub program: &'a Program,
    /// Values of the run-time sizes.
    pub sizes: &'a Sizes,
    /// Values of the scalars, in order of declaration.
    pub scalars: &'a [Number],
    /// First and last coordinate of every grid.
    pub bounds: &'a PrimaryMap<GridId, Vec<(i64, i64)>>,
}

impl Environment<'_> {
    /// First and last coordinate of a field's grid.
    pub fn bounds_of(&self, field: FieldId) -> &[(i64, i64)] {
        let field = self.program.fields.get(field);
        field.and_then(|field| self.bounds.get(field.grid)).map_or(&[], Vec::as_slice)
    }
}

/// Where a field's cells lie: row-major from the first point of its grid.
pub struct Layout {
    /// Linear index that the point at 0 would have.
    start: i64,
    /// Cells to the next point along a dimension.
    strides: Vec<i64>,
}

impl Layout {
    /// The cells at an offset from each point, on a grid with these first and last coordinates.
    pub fn new(bounds: &[(i64, i64)], offset: &[i64]) -> Self {
        let (mut start, mut stride, mut strides) = (0_i64, 1_i64, Vec::new());
        for ((first, last), offset) in bounds.iter().zip(offset).rev() {
            start = start.wrapping_add(offset.wrapping_sub(*first).wrapping_mul(stride));
            strides.push(stride);
            stride = stride.wrapping_mul((last - first + 1).max(0));
        }
        strides.reverse();
        Self { start, strides }
    }

    /// The linear index at a point, which must lie on the grid with its offset.
    pub fn index(&self, point: &[i64]) -> usize {
        let along = point.iter().zip(&self.strides);
        along.fold(self.start, |index, (at, stride)| index.wrapping_add(at.wrapping_mul(*stride)))
            as usize
    }
}

/// Where a read at an offset takes its value from.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// The old values of a field.
    Old(FieldId),
    /// The new values, as far as they are computed, of the updated field with this number.
    New(usize),
}

/// The code of a piece.
pub struct Code {
    /// In order.
    pub ops: Vec<Op>,
    /// Registers of the values, in the order of the updated fields.
    pub results: Vec<Register>,
}

/// An operation; its last register or its only one without a name is the result, of type `ty`.
pub enum Op {
    /// The same value for all cells.
    Fill { to: Register, value: Constant },
    /// A field's cells at an offset.
    Read { to: Register, from: Source, layout: Layout },
    /// A field's cells, or what a boundary rule takes for those outside the grid.
    Reach { to: Register, from: Source, reach: Reach },
    /// Whether a read lies inside the grid.
    Inside { to: Register, reach: Reach },
    /// A field's cells at places that are computed, on a grid with these first and last
    /// coordinates; with a map, others stand for those outside.
    Gather {
        to: Register,
        field: FieldId,
        at: Vec<Register>,
        bounds: Vec<(i64, i64)>,
        map: Option<Map>,
    },
    /// Whether such places lie inside the grid.
    Holds { to: Register, at: Vec<Register>, bounds: Vec<(i64, i64)> },
    /// The same value as in another register.
    Copy { to: Register, from: Register },
    /// The coordinate along a dimension, `plus` cells further; `last` for the dimension in which a
    /// strip runs.
    Coordinate { to: Register, dimension: usize, last: bool, plus: i64 },
    /// The number of the step.
    Step { to: Register },
    /// `-a` or `~a`, or `!a` for a condition.
    Unary { to: Register, ty: Type, op: UnaryOp, a: Register },
    /// Arithmetic.
    Binary { to: Register, ty: Type, op: BinaryOp, a: Register, b: Register },
    /// A comparison of two values of type `ty`.
    Compare { to: Register, ty: Type, op: BinaryOp, a: Register, b: Register },
    /// A math function.
    Call { to: Register, ty: Type, function: MathFunction, arguments: [Register; 3] },
    /// A conversion.
    Cast { to: Register, ty: Type, from: Type, a: Register },
    /// `if`: each side runs only where some cell needs it.
    Branch { to: Register, ty: Type, condition: Register, sides: Box<[(Vec<Op>, Register); 2]> },
}

/// A value that is known before a run.
#[derive(Clone, Copy)]
pub enum Constant {
    /// A number of its type.
    Number(Number),
    /// A condition.
    Bool(bool),
}
