//! Integers as the threads of a block hold them: a sum of values that are the same in all threads,
//! and a number that depends on the thread alone.
//!
//! The numbers are known for more threads than a block has, as if the block went on along its last
//! axis. A value is then a function of a place along the threads, and not of a thread alone.
//!
//! Hand-worked: with 8 x 4 threads, `%ty * 8 + %tx` is the place itself, and `%block * 32 + %tx` is
//! `32 %block` and the place's remainder by 8.

use super::lane_values;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, BlockLike, ValueLike};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use stencil_dialects::attribute;
use stencil_dialects::builder::Compare;
use stencil_dialects::mlir::{self, Op, Val};

/// Operations of a chain that are followed.
const DEPTH: usize = 200;

/// Numbers beyond may leave 32 bits.
const FARTHEST: i64 = 1 << 31;

/// An integer of each thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// The values that are the same in all threads, by their keys, with their factors.
    pub terms: BTreeMap<usize, i64>,
    /// What each place along the threads adds.
    pub at: Vec<i64>,
}

/// A comparison of integers, by the number of its predicate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// As `arith.cmpi` has it.
    pub predicate: i64,
    /// The left side.
    pub left: Number,
    /// The right side.
    pub right: Number,
}

/// A value of each thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// An integer.
    Number(Number),
    /// Whether all comparisons hold.
    All(Vec<Comparison>),
}

impl Number {
    /// Whether all threads hold the same.
    pub fn is_uniform(&self) -> bool {
        self.at.iter().all(|value| Some(value) == self.at.first())
    }

    /// Whether it is the place along the threads.
    pub fn is_place(&self) -> bool {
        self.terms.is_empty() && (0..).zip(&self.at).all(|(place, value)| place == *value)
    }

    fn constant(&self) -> Option<i64> {
        (self.terms.is_empty() && self.is_uniform()).then(|| self.at.first().copied()).flatten()
    }

    /// A function of both for each place, where the thread alone decides both.
    fn join(&self, other: &Self, by: lane_values::Binary) -> Option<Self> {
        let exact = self.terms.is_empty() && other.terms.is_empty();
        let at = exact.then(|| self.each(other, by))??;
        Some(Self { terms: BTreeMap::new(), at })
    }

    fn each(&self, other: &Self, by: lane_values::Binary) -> Option<Vec<i64>> {
        let all = self.at.iter().zip(&other.at).map(|(a, b)| by(*a, *b));
        all.map(|value| value.filter(|value| (-FARTHEST..FARTHEST).contains(value))).collect()
    }

    /// The sum with some times another.
    pub fn plus(&self, other: &Self, factor: i64) -> Option<Self> {
        let other = other.times(factor)?;
        let mut terms = self.terms.clone();
        for (key, factor) in &other.terms {
            let term = terms.entry(*key).or_insert(0);
            *term = term.checked_add(*factor)?;
        }
        terms.retain(|_, factor| *factor != 0);
        Some(Self { terms, at: self.each(&other, i64::checked_add)? })
    }

    fn times(&self, factor: i64) -> Option<Self> {
        let scale = |value: &i64| value.checked_mul(factor).filter(|v| v.abs() < FARTHEST);
        let terms = self.terms.iter().map(|(key, value)| Some((*key, value.checked_mul(factor)?)));
        let terms = terms.filter(|term| term.is_none_or(|(_, value)| value != 0));
        let at = self.at.iter().map(scale).collect::<Option<_>>()?;
        Some(Self { terms: terms.collect::<Option<_>>()?, at })
    }

    /// Whether another number is this one so many places further on.
    pub fn leads_to(&self, other: &Self, places: usize) -> bool {
        self.terms == other.terms && self.at.iter().skip(places).zip(&other.at).all(|(a, b)| a == b)
    }
}

impl Form {
    /// Whether all threads hold the same.
    pub fn is_uniform(&self) -> bool {
        match self {
            Self::Number(number) => number.is_uniform(),
            Self::All(all) => all.iter().all(|one| one.left.is_uniform() && one.right.is_uniform()),
        }
    }

    /// The comparisons of a condition.
    fn comparisons(&self) -> Option<Vec<Comparison>> {
        match self {
            Self::All(all) => Some(all.clone()),
            Self::Number(left) => {
                let right = Number { terms: BTreeMap::new(), at: vec![0; left.at.len()] };
                Some(vec![Comparison { predicate: Compare::Ne as i64, left: left.clone(), right }])
            }
        }
    }
}

/// Threads of a block in x, y and z, if a kernel states them.
pub fn threads(kernel: Op) -> Option<[i64; 3]> {
    let stated = mlir::attribute(kernel, "known_block_size").and_then(attribute::as_integers)?;
    let threads: [i64; 3] = stated.try_into().ok()?;
    let volume = threads.iter().try_fold(1_i64, |all, threads| all.checked_mul(*threads))?;
    (threads.iter().all(|threads| *threads > 0) && volume <= 1024).then_some(threads)
}

/// The values of a kernel, as its threads hold them.
pub struct ThreadValues<'c> {
    threads: [i64; 3],
    places: usize,
    makers: BTreeMap<usize, Op<'c>>,
    known: RefCell<BTreeMap<usize, Option<Rc<Form>>>>,
    uniform: RefCell<BTreeMap<usize, Val<'c>>>,
}

impl<'c> ThreadValues<'c> {
    /// The values of a kernel with so many threads in x, y and z, as far as a place.
    pub fn of(kernel: Op<'c>, threads: [i64; 3], places: usize) -> Self {
        let makers = mlir::walk(kernel).into_iter().flat_map(|op| {
            mlir::results(op).into_iter().map(move |result| (mlir::key(result), op))
        });
        let (known, uniform) = (RefCell::default(), RefCell::default());
        Self { threads, places, makers: makers.collect(), known, uniform }
    }

    /// The operation that makes a value.
    pub fn maker(&self, value: Val<'c>) -> Option<Op<'c>> {
        self.makers.get(&mlir::key(value)).copied()
    }

    /// The uniform value of a term.
    pub fn term(&self, key: usize) -> Option<Val<'c>> {
        self.uniform.borrow().get(&key).copied()
    }

    /// What a value is; nothing where it is not known.
    pub fn form(&self, value: Val<'c>) -> Option<Rc<Form>> {
        self.follow(value, DEPTH)
    }

    /// The integer that a value is.
    pub fn number(&self, value: Val<'c>) -> Option<Number> {
        self.integer(value, DEPTH)
    }

    /// The comparisons that a condition consists of.
    pub fn comparisons(&self, condition: Val<'c>) -> Option<Vec<Comparison>> {
        self.form(condition)?.comparisons()
    }

    /// Whether all threads take the same way through the operations around one.
    pub fn runs_alike(&self, op: Op<'c>) -> bool {
        let Some(parent) = op.parent_operation().map(mlir::op) else { return false };
        let operands = mlir::operands(parent);
        let alike = |value: &Val<'c>| self.form(*value).is_some_and(|form| form.is_uniform());
        match mlir::name(parent) {
            "gpu.func" => true,
            "scf.if" => operands.iter().all(alike) && self.runs_alike(parent),
            "scf.for" => operands.iter().take(3).all(alike) && self.runs_alike(parent),
            _ => false,
        }
    }

    /// The values that have to be multiples of a power of two, so that a number is one at each
    /// place of another multiple of it. Nothing where it can't be.
    pub fn multiples(&self, number: &Number, of: i64) -> Option<Vec<Val<'c>>> {
        let mut left = number.clone();
        for _ in 0..DEPTH {
            left.terms.retain(|_, factor| factor.rem_euclid(of) != 0);
            let mut terms = left.terms.iter();
            let next = terms.find_map(|(key, factor)| {
                Some((*key, *factor, self.congruent(self.term(*key)?, of)?))
            });
            let Some((key, factor, other)) = next else {
                let step = usize::try_from(of).ok()?;
                let all = left.at.iter().step_by(step).all(|value| value.rem_euclid(of) == 0);
                return all.then(|| left.terms.keys().map(|key| self.term(*key)).collect())?;
            };
            left.terms.remove(&key);
            left = left.plus(&other, factor)?;
        }
        None
    }

    /// A number that leaves the remainder of a value.
    fn congruent(&self, value: Val<'c>, of: i64) -> Option<Number> {
        let multiple = |value: Val<'c>| {
            let number = self.number(value)?.constant()?;
            (number.rem_euclid(of) == 0).then_some(())
        };
        let Some(maker) = self.maker(value) else {
            let [lower, _, step, ..] = mlir::operands(self.counted(value)?)[..] else {
                return None;
            };
            multiple(step)?;
            return self.number(lower);
        };
        match (mlir::name(maker), &mlir::operands(maker)[..]) {
            ("arith.remui", [whole, by]) => {
                multiple(*by)?;
                self.number(*whole)
            }
            _ => None,
        }
    }

    /// The loop that a value counts.
    fn counted(&self, value: Val<'c>) -> Option<Op<'c>> {
        let argument = melior::ir::block::BlockArgument::try_from(value).ok()?;
        let parent = mlir::op(argument.owner().parent_operation()?);
        (mlir::name(parent) == "scf.for" && argument.argument_number() == 0).then_some(parent)
    }

    fn integer(&self, value: Val<'c>, depth: usize) -> Option<Number> {
        match &*self.follow(value, depth)? {
            Form::Number(number) => Some(number.clone()),
            Form::All(_) => None,
        }
    }

    fn follow(&self, value: Val<'c>, depth: usize) -> Option<Rc<Form>> {
        let key = mlir::key(value);
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let found = depth.checked_sub(1).and_then(|depth| self.find(value, depth)).map(Rc::new);
        self.known.borrow_mut().insert(key, found.clone());
        found
    }

    fn same(&self, value: i64) -> Form {
        Form::Number(Number { terms: BTreeMap::new(), at: vec![value; self.places] })
    }

    fn leaf(&self, value: Val<'c>) -> Form {
        let key = mlir::key(value);
        self.uniform.borrow_mut().insert(key, value);
        Form::Number(Number { terms: BTreeMap::from([(key, 1)]), at: vec![0; self.places] })
    }

    fn find(&self, value: Val<'c>, depth: usize) -> Option<Form> {
        let Some(op) = self.maker(value) else { return self.argument(value, depth) };
        let operands = mlir::operands(op);
        let name = mlir::name(op);
        match (name, &operands[..]) {
            ("arith.constant", _) => {
                Some(lane_values::constant(op).map_or_else(|| self.leaf(value), |n| self.same(n)))
            }
            ("gpu.thread_id", _) => self.thread(lane_values::axis(op)?),
            ("gpu.block_dim", _) => Some(self.same(*self.threads.get(lane_values::axis(op)?)?)),
            ("gpu.block_id" | "gpu.grid_dim" | "memref.dim", _) => Some(self.leaf(value)),
            ("arith.cmpi", [left, right]) => {
                let predicate = mlir::attribute(op, "predicate").and_then(attribute::as_integer)?;
                let (left, right) = (self.integer(*left, depth)?, self.integer(*right, depth)?);
                Some(Form::All(vec![Comparison { predicate, left, right }]))
            }
            ("arith.andi", [one, other]) if mlir::bit_width(value.r#type()) == Some(1) => {
                let one = self.follow(*one, depth)?.comparisons()?;
                let other = self.follow(*other, depth)?.comparisons()?;
                Some(Form::All([one, other].concat()))
            }
            ("affine.apply", _) => self.apply(op, &operands, depth),
            _ => None,
        }
        .or_else(|| self.arithmetic(value, op, &operands, depth))
    }

    fn argument(&self, value: Val<'c>, depth: usize) -> Option<Form> {
        let argument = melior::ir::block::BlockArgument::try_from(value).ok()?;
        let parent = mlir::op(argument.owner().parent_operation()?);
        let alike = |value: &Val<'c>| self.follow(*value, depth).is_some_and(|f| f.is_uniform());
        let uniform = match mlir::name(parent) {
            "gpu.func" => true,
            "scf.for" => {
                argument.argument_number() == 0 && mlir::operands(parent).iter().take(3).all(alike)
            }
            _ => false,
        };
        uniform.then(|| self.leaf(value))
    }

    /// The number of a thread along an axis. The last axis with several threads has no end.
    fn thread(&self, axis: usize) -> Option<Form> {
        let [x, y, z] = self.threads;
        let by = match axis {
            0 => 1,
            1 => x,
            _ => x.checked_mul(y)?,
        };
        let last = if z > 1 { 2 } else { usize::from(y > 1) };
        let end = match axis.cmp(&last) {
            std::cmp::Ordering::Less => *self.threads.get(axis)?,
            std::cmp::Ordering::Equal => i64::MAX,
            std::cmp::Ordering::Greater => 1,
        };
        let at = (0..i64::try_from(self.places).ok()?).map(|place| place / by % end).collect();
        Some(Form::Number(Number { terms: BTreeMap::new(), at }))
    }

    /// The result of other operations: of those that the thread alone decides, and of those that
    /// are the same in all threads.
    fn arithmetic(
        &self,
        value: Val<'c>,
        op: Op<'c>,
        operands: &[Val<'c>],
        depth: usize,
    ) -> Option<Form> {
        let name = mlir::name(op);
        if !name.starts_with("arith.") && !name.starts_with("affine.") || op.region_count() > 0 {
            return None;
        }
        let numbers: Option<Vec<Number>> =
            operands.iter().map(|operand| self.integer(*operand, depth)).collect();
        let made = numbers.and_then(|numbers| {
            let made = combined(name, &numbers)?;
            holds(value, name, &made).then_some(made)
        });
        if let Some(made) = made {
            return Some(Form::Number(made));
        }
        let alike =
            |operand: &Val<'c>| self.follow(*operand, depth).is_some_and(|f| f.is_uniform());
        operands.iter().all(alike).then(|| self.leaf(value))
    }

    fn apply(&self, op: Op<'c>, operands: &[Val<'c>], depth: usize) -> Option<Form> {
        let map = mlir::attribute(op, "map").and_then(attribute::as_map)?;
        let numbers = operands.iter().map(|operand| self.integer(*operand, depth));
        let numbers = numbers.collect::<Option<Vec<_>>>()?;
        let made = self.expression(map.result(0).ok()?, &numbers, map.dim_count())?;
        Some(Form::Number(made))
    }

    fn expression(&self, of: AffineExpr, operands: &[Number], dims: usize) -> Option<Number> {
        if of.is_constant() {
            let at = vec![of.constant_value(); self.places];
            return Some(Number { terms: BTreeMap::new(), at });
        }
        if of.is_dim() {
            return operands.get(of.dim_position()).cloned();
        }
        if of.is_symbol() {
            return operands.get(dims + of.symbol_position()).cloned();
        }
        let left = self.expression(of.lhs(), operands, dims)?;
        let right = self.expression(of.rhs(), operands, dims)?;
        match (of.is_add(), of.is_mul()) {
            (true, _) => left.plus(&right, 1),
            (_, true) => product(&left, &right),
            _ => left.join(&right, lane_values::of_expression(of)?),
        }
    }
}

fn product(left: &Number, right: &Number) -> Option<Number> {
    match (left.constant(), right.constant()) {
        (_, Some(factor)) => left.times(factor),
        (Some(factor), _) => right.times(factor),
        _ => left.join(right, i64::checked_mul),
    }
}

/// Whether the type of a value holds the number that an operation makes, so that nothing wraps. Of
/// a sum with a value that is not known, i32 is taken to, as an index is. Extended without its
/// sign, a number is the same only where it is not negative.
fn holds(value: Val, name: &str, made: &Number) -> bool {
    const FEWEST_BITS: i64 = 32;
    let range = match mlir::bit_width(value.r#type()).map(i64::from) {
        Some(1) => 0..2,
        Some(bits @ 2..FEWEST_BITS) if made.terms.is_empty() => -(1 << (bits - 1))..1 << (bits - 1),
        Some(2..FEWEST_BITS) => return false,
        Some(FEWEST_BITS) => i64::from(i32::MIN)..1 << 31,
        _ => i64::MIN..i64::MAX,
    };
    let unsigned = ["arith.extui", "arith.index_castui"].contains(&name);
    made.at.iter().all(|at| range.contains(at) && (*at >= 0 || !unsigned))
}

/// The number that an operation on numbers makes.
fn combined(name: &str, operands: &[Number]) -> Option<Number> {
    match (name, operands) {
        ("arith.addi", [left, right]) => left.plus(right, 1),
        ("arith.subi", [left, right]) => left.plus(right, -1),
        ("arith.muli", [left, right]) => product(left, right),
        (_, [left, right]) => left.join(right, lane_values::binary(name)?),
        (_, [only]) if lane_values::is_cast(name) && only.terms.is_empty() => Some(only.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
