//! Indices as sums of other values with factors, and the proof that two of them are never equal.
//!
//! Values of `index` count as integers that do not leave 64 bits, as in upstream's affine analyses.
//! Loops around an access bound their counters.
//!
//! Hand-worked: inside of `scf.for %l = %i + 1 to %n`, `[%l, %j]` and `[%i, %j]` are different
//! elements, because `l >= i + 1` and `l = i` have no solution.

use super::lane_values;
use melior::ir::operation::{OperationLike, OperationResult};
use melior::ir::{AffineExpr, TypeLike, ValueLike};
use std::collections::BTreeMap;
use stencil_dialects::affine::Linear;
use stencil_dialects::attribute;
use stencil_dialects::inequalities::infeasible_within;
use stencil_dialects::mlir::{self, Op, Val};

/// Operations of a chain that are followed.
const DEPTH: usize = 100;

/// Coefficients of inequalities that the proofs about a kernel may look at.
const EFFORT: usize = 1 << 24;

/// A constant and factors of values, by their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Form {
    constant: i64,
    terms: BTreeMap<usize, i64>,
}

impl Form {
    fn constant(constant: i64) -> Self {
        Self { constant, terms: BTreeMap::new() }
    }

    /// The sum with some times another; none where it leaves 64 bits.
    fn plus(&self, other: &Self, factor: i64) -> Option<Self> {
        let mut sum = self.clone();
        sum.constant = sum.constant.checked_add(other.constant.checked_mul(factor)?)?;
        for (key, own) in &other.terms {
            let term = sum.terms.entry(*key).or_insert(0);
            *term = term.checked_add(own.checked_mul(factor)?)?;
        }
        sum.terms.retain(|_, factor| *factor != 0);
        Some(sum)
    }

    fn times(&self, other: &Self) -> Option<Self> {
        match (self.terms.is_empty(), other.terms.is_empty()) {
            (_, true) => Self::default().plus(self, other.constant),
            (true, false) => Self::default().plus(other, self.constant),
            (false, false) => None,
        }
    }
}

/// The forms of a kernel's indices.
pub struct IndexForms {
    known: BTreeMap<usize, Form>,
    effort: usize,
}

impl IndexForms {
    /// No form is known yet.
    pub fn new() -> Self {
        Self { known: BTreeMap::new(), effort: EFFORT }
    }

    /// Whether an access never has the indices that another one has, if both run in one iteration
    /// of each loop around both. `false` means that no proof was found.
    pub fn differ<'c>(&mut self, access: Op<'c>, own: &[Val<'c>], other: &[Val<'c>]) -> bool {
        self.contradicts(access, own, other).unwrap_or(false)
    }

    fn contradicts<'c>(
        &mut self,
        access: Op<'c>,
        own: &[Val<'c>],
        other: &[Val<'c>],
    ) -> Option<bool> {
        let mut values = Vec::new();
        for (own, other) in own.iter().zip(other) {
            let distance = self.form(*own, 0).plus(&self.form(*other, 0), -1)?;
            values.push(Form::default().plus(&distance, -1)?);
            values.push(distance);
        }
        let mut around = access.parent_operation().map(mlir::op);
        while let Some(op) = around {
            if let ("scf.for", Some(counter), [lower, upper, ..]) = (
                mlir::name(op),
                mlir::entry(op).and_then(|body| mlir::arguments(body).first().copied()),
                &mlir::operands(op)[..],
            ) {
                let (counter, last) = (self.form(counter, 0), Form::constant(-1));
                values.push(counter.plus(&self.form(*lower, 0), -1)?);
                values.push(self.form(*upper, 0).plus(&counter, -1)?.plus(&last, 1)?);
            }
            around = op.parent_operation().map(mlir::op);
        }
        let mut numbers = BTreeMap::new();
        for key in values.iter().flat_map(|value| value.terms.keys()) {
            let next = numbers.len();
            numbers.entry(*key).or_insert(next);
        }
        let linear = |form: &Form| {
            let mut coefficients = vec![0; numbers.len()];
            for (key, factor) in &form.terms {
                if let Some(own) = numbers.get(key).and_then(|at| coefficients.get_mut(*at)) {
                    *own = *factor;
                }
            }
            Linear { constant: form.constant, coefficients }
        };
        let rows: Vec<Linear> = values.iter().map(linear).collect();
        infeasible_within(&rows, &mut self.effort)
    }

    /// A value that can't be taken apart is a term of its own.
    fn form<'c>(&mut self, value: Val<'c>, depth: usize) -> Form {
        if let Some(known) = self.known.get(&mlir::key(value)) {
            return known.clone();
        }
        let own = || Form { constant: 0, terms: BTreeMap::from([(mlir::key(value), 1)]) };
        if depth == DEPTH {
            return own();
        }
        let maker = OperationResult::try_from(value).ok().map(|result| mlir::op(result.owner()));
        let made = maker.filter(|_| value.r#type().is_index());
        let form = made.and_then(|op| self.made(op, depth)).unwrap_or_else(own);
        self.known.insert(mlir::key(value), form.clone());
        form
    }

    fn made<'c>(&mut self, op: Op<'c>, depth: usize) -> Option<Form> {
        let operands: Vec<Form> = match mlir::name(op) {
            "arith.addi" | "arith.subi" | "arith.muli" | "affine.apply" => {
                mlir::operands(op).into_iter().map(|value| self.form(value, depth + 1)).collect()
            }
            _ => Vec::new(),
        };
        match (mlir::name(op), &operands[..]) {
            ("arith.constant", _) => lane_values::constant(op).map(Form::constant),
            ("arith.addi", [left, right]) => left.plus(right, 1),
            ("arith.subi", [left, right]) => left.plus(right, -1),
            ("arith.muli", [left, right]) => left.times(right),
            ("affine.apply", operands) => {
                let map = mlir::attribute(op, "map").and_then(attribute::as_map)?;
                let symbols = operands.get(map.dim_count()..)?;
                expression(map.result(0).ok()?, operands, symbols)
            }
            _ => None,
        }
    }
}

impl Default for IndexForms {
    fn default() -> Self {
        Self::new()
    }
}

fn expression(of: AffineExpr, dims: &[Form], symbols: &[Form]) -> Option<Form> {
    if of.is_constant() {
        return Some(Form::constant(of.constant_value()));
    }
    if of.is_dim() {
        return dims.get(of.dim_position()).cloned();
    }
    if of.is_symbol() {
        return symbols.get(of.symbol_position()).cloned();
    }
    if !of.is_add() && !of.is_mul() {
        return None;
    }
    let left = expression(of.lhs(), dims, symbols)?;
    let right = expression(of.rhs(), dims, symbols)?;
    if of.is_add() { left.plus(&right, 1) } else { left.times(&right) }
}
