//! Reductions, and the condition that ends a run.
//!
//! The order in which values are combined is part of the language. The points of the box, in
//! row-major order, form blocks of 8,192. The points of a block go to 256 lanes in turn, and each
//! lane begins neutral and combines its own in order. The upper half of the lanes is then combined
//! with the lower one, lane by lane, until one is left: the result of the block. The results of all
//! blocks go to 1,024 lanes in the same way.

use super::OracleError;
use super::code::{Code, Environment};
use super::job::next_row;
use super::lanes::{self, Strip};
use super::numbers::{Number, Wide};
use super::registers::{LANES, Lane, Registers};
use crate::program::*;
use crate::sizes;
use crate::source::Span;
use cranelift_entity::PrimaryMap;
use stencil_runtime::array::{Array, ArrayError, Cell, Element, with_cell};

/// Points of a block.
const BLOCK: usize = 8192;
/// Lanes of a block.
const LANES_OF_BLOCK: usize = 256;
/// Lanes for the results of blocks.
const LANES_OF_ALL: usize = 1024;

/// A reduction, ready to run.
pub struct Reducer {
    /// The field that holds its value.
    pub field: FieldId,
    /// The `repeat`s that it stands in, the outer one first.
    pub repeats: Vec<Repetition>,
    element: Element,
    combine: Combine,
    bounds: Vec<(i64, i64)>,
    code: Code,
    /// Where its expression stands in the source.
    pub span: Span,
}

impl Reducer {
    pub fn new(reduction: &Reduction, environment: &Environment) -> Result<Self, OracleError> {
        let Environment { program, sizes, .. } = environment;
        let bounds = sizes::bounds(program, &reduction.piece.region, sizes)?;
        let code = Code::new(&reduction.piece, bounds.len(), &[], environment);
        let field = program.fields.get(reduction.field);
        let element = field.map_or(Element::F32, |field| field.element);
        let Reduction { field, combine, .. } = *reduction;
        let repeats = reduction.repeats.clone();
        let value = reduction.piece.values.first();
        let span = value.map_or(reduction.piece.span, |value| value.span);
        Ok(Self { field, repeats, element, combine, bounds, code, span })
    }

    /// The value after a step, in an array of one cell.
    pub fn value(
        &self,
        fields: &PrimaryMap<FieldId, Array>,
        step: u64,
        registers: &mut Registers,
    ) -> Result<Array, ArrayError> {
        with_cell!(self.element, T => {
            Array::filled(Cell::number(self.combined::<T>(fields, step, registers)), &[1])
        })
    }

    fn combined<T: Number>(
        &self,
        fields: &PrimaryMap<FieldId, Array>,
        step: u64,
        registers: &mut Registers,
    ) -> T {
        let mut tree = Tree::<T>::new(self.combine);
        let held = self.bounds.iter().all(|(first, last)| first <= last);
        let (Some(&(first, last)), true) = (self.bounds.last(), held) else {
            return tree.finish();
        };
        let mut point: Vec<i64> = self.bounds.iter().map(|(first, _)| *first).collect();
        let result = self.code.results.first().copied().unwrap_or(0);
        loop {
            let mut at = first;
            while at <= last {
                let count = (LANES as i64).min(last - at + 1) as usize;
                if let Some(place) = point.last_mut() {
                    *place = at;
                }
                let strip = Strip { fields, new: &[], point: &point, step: step as i64, count };
                lanes::execute(&self.code, &strip, registers);
                registers.row::<T>(result).iter().take(count).for_each(|value| tree.push(*value));
                at += count as i64;
            }
            if !next_row(&mut point, &self.bounds) {
                return tree.finish();
            }
        }
    }
}

/// Values on their way to one.
struct Tree<T> {
    combine: Combine,
    /// The present block, and how many values it has so far.
    block: Vec<T>,
    values: usize,
    /// What the blocks before have given, and how many there are.
    all: Vec<T>,
    blocks: usize,
}

impl<T: Number> Tree<T> {
    fn new(combine: Combine) -> Self {
        let block = vec![neutral(combine); LANES_OF_BLOCK];
        Self { combine, block, values: 0, all: vec![neutral(combine); LANES_OF_ALL], blocks: 0 }
    }

    fn push(&mut self, value: T) {
        take(self.combine, &mut self.block, self.values, value);
        self.values += 1;
        if self.values == BLOCK {
            self.end_block();
        }
    }

    fn end_block(&mut self) {
        let value = folded(self.combine, &mut self.block);
        take(self.combine, &mut self.all, self.blocks, value);
        self.blocks += 1;
        self.block.fill(neutral(self.combine));
        self.values = 0;
    }

    fn finish(mut self) -> T {
        if self.values > 0 {
            self.end_block();
        }
        folded(self.combine, &mut self.all)
    }
}

/// Gives the next value to the lane whose turn it is.
fn take<T: Number>(combine: Combine, lanes: &mut [T], number: usize, value: T) {
    let lane = number % lanes.len().max(1);
    if let Some(lane) = lanes.get_mut(lane) {
        *lane = both(combine, *lane, value);
    }
}

/// Combines the halves of a list, a power of two long, until one value is left.
fn folded<T: Number>(combine: Combine, values: &mut [T]) -> T {
    let mut half = values.len() / 2;
    while half > 0 {
        let (low, high) = values.split_at_mut(half);
        low.iter_mut().zip(high).for_each(|(low, high)| *low = both(combine, *low, *high));
        half /= 2;
    }
    values.first().copied().unwrap_or_default()
}

/// What changes no other value.
fn neutral<T: Number>(combine: Combine) -> T {
    match combine {
        Combine::Sum => T::default(),
        Combine::Min => T::narrow(Wide::Float(f64::INFINITY)),
        Combine::Max => T::narrow(Wide::Float(f64::NEG_INFINITY)),
        Combine::All => T::narrow(Wide::Float(1.0)),
    }
}

#[allow(clippy::eq_op, reason = "a NaN alone differs from itself")]
fn both<T: Number>(combine: Combine, a: T, b: T) -> T {
    let function = match combine {
        Combine::Sum => return a.add(b),
        Combine::Min | Combine::All => MathFunction::Min,
        Combine::Max => MathFunction::Max,
    };
    match (a != a, b != b) {
        (true, _) => a,
        (_, true) => b,
        _ => T::call(function, a, b, b),
    }
}

/// A condition on values of reductions, ready to be looked at.
pub struct Condition {
    code: Code,
    every: u64,
}

impl Condition {
    pub fn new(condition: &Expr, every: i64, environment: &Environment) -> Self {
        let zero = vec![Affine::number(0)];
        let piece = Piece {
            region: Region { lower: zero.clone(), upper: zero },
            lets: Vec::new(),
            values: vec![condition.clone()],
            span: condition.span,
        };
        let code = Code::new(&piece, 1, &[], environment);
        Self { code, every: u64::try_from(every).unwrap_or(1).max(1) }
    }

    /// Whether it is looked at, and holds, after a step.
    pub fn holds(
        &self,
        fields: &PrimaryMap<FieldId, Array>,
        step: u64,
        registers: &mut Registers,
    ) -> bool {
        if !(step + 1).is_multiple_of(self.every) {
            return false;
        }
        let strip = Strip { fields, new: &[], point: &[0], step: step as i64, count: 1 };
        lanes::execute(&self.code, &strip, registers);
        let result = self.code.results.first().copied().unwrap_or(0);
        <bool as Lane>::all(registers).get(result).and_then(|row| row.first()) == Some(&true)
    }
}
