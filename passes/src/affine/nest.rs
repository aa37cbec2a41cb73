//! A function of upstream's `affine` loops as plain data: loops, statements and references.
//!
//! A statement is a store with the loads that its value is made from. Bounds and indices are linear
//! in the unknowns: the sizes (index values from outside all loops), then the loops' counters.
//!
//! A loop with a step larger than 1 counts as one that may have each value between its bounds.
//!
//! Declines, with a place: values carried by a loop, `affine.if`, indices that are not linear, more
//! than `DEEPEST` loops around a statement, steps below 1, steps and numbers of bounds beyond
//! `FARTHEST`, and operations with effects other than affine loads and stores.

use super::access_checks::FARTHEST;
use super::arguments::allocates;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::{MemRefType, TypeLike};
use melior::ir::{AffineExpr, AffineMap, ValueLike};
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::affine::Linear;
use stencil_dialects::attribute;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir::{self, Blk, Op, Val};

/// A function as loops and statements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nest {
    /// How many unknowns are sizes; the loops' counters follow them.
    pub sizes: usize,
    /// The loops, outer ones first.
    pub loops: Vec<Loop>,
    /// The statements in the order of the text.
    pub statements: Vec<Statement>,
    /// How many buffers there are.
    pub arrays: usize,
}

/// A loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Its counter lies within these, each at least 0.
    pub bounds: Vec<Linear>,
    /// Whether it stands in the text as parallel.
    pub parallel: bool,
    /// The difference of two values of its counter that follow each other.
    pub step: i64,
}

/// A store and the loads of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The loops around it, outer ones first.
    pub loops: Vec<usize>,
    /// Its accesses; the store is the last.
    pub references: Vec<Reference>,
}

/// An access to an element of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The buffer.
    pub array: usize,
    /// Whether it stores.
    pub write: bool,
    /// The index along each dimension; the last is the fastest.
    pub indices: Vec<Linear>,
}

/// The operations and values of a function that its [`Nest`] numbers.
#[derive(Clone, Debug, Default)]
pub struct Text<'c> {
    /// The value of each size.
    pub sizes: Vec<Val<'c>>,
    /// The counter of each loop.
    pub counters: Vec<Val<'c>>,
    /// The memref of each buffer.
    pub arrays: Vec<Val<'c>>,
    /// The store of each statement.
    pub stores: Vec<Op<'c>>,
    /// Every access, in the order of the text.
    pub accesses: Vec<Access<'c>>,
    /// The accesses of each statement, in the order of its references.
    pub of_statement: Vec<Vec<usize>>,
}

/// An access where it stands in the text.
#[derive(Clone, Debug)]
pub struct Access<'c> {
    /// The load or store.
    pub op: Op<'c>,
    /// The loops around it, outer ones first.
    pub loops: Vec<usize>,
    /// What it accesses.
    pub reference: Reference,
}

impl Nest {
    /// Reads a `func.func`.
    ///
    /// # Errors
    /// What the head of this file lists, each with its place.
    pub fn read(function: Op) -> Result<Self, Error> {
        Self::with_text(function).map(|(nest, _)| nest)
    }

    /// [`read`](Self::read) with the operations and values that the numbers stand for.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn with_text<'c>(function: Op<'c>) -> Result<(Self, Text<'c>), Error> {
        let mut reader = Reader::default();
        if let Some(entry) = mlir::entry(function) {
            // Every unknown has its place before the first linear form is made.
            reader.unknowns(entry, true)?;
            for argument in mlir::arguments(entry) {
                reader.array(argument);
            }
            reader.block(entry, &mut Vec::new())?;
        }
        let Reader { sizes, loops, statements, arrays, text, .. } = reader;
        Ok((Self { sizes: sizes.len(), loops, statements, arrays: arrays.len() }, text))
    }

    /// The coefficients of an access in the counters of a statement's loops, a row for each
    /// dimension: the access matrix of the paper without sizes and constants.
    pub fn matrix(&self, statement: &Statement, reference: &Reference) -> Vec<Vec<i64>> {
        let row = |index: &Linear| {
            let counter = |at: &usize| index.coefficients.get(self.sizes + at).copied();
            statement.loops.iter().map(|at| counter(at).unwrap_or(0)).collect()
        };
        reference.indices.iter().map(row).collect()
    }
}

#[derive(Default)]
struct Reader<'c> {
    sizes: BTreeMap<usize, usize>,
    counters: BTreeMap<usize, usize>,
    arrays: BTreeMap<usize, usize>,
    loops: Vec<Loop>,
    statements: Vec<Statement>,
    /// The loads that each value is made from, by their place among the accesses.
    loads: BTreeMap<usize, Vec<usize>>,
    /// The linear forms of index constants and of `affine.apply`.
    forms: BTreeMap<usize, Linear>,
    text: Text<'c>,
}

/// Loops around a statement at most: the directions of a dependence are 3 to this power.
const DEEPEST: usize = 6;

/// Statements of a function at most: each pair of accesses is tested for dependences.
pub const MOST_STATEMENTS: usize = 64;

fn refuse(op: Op, what: &str) -> Error {
    let message = format!("{}: {what}", mlir::name(op));
    Error::declined(Decline::Nest, message).at(mlir::place(op.location()))
}

/// The greatest of several lower bounds, if it is the same one for all sizes.
fn greatest(bounds: &[Linear]) -> Option<&Linear> {
    let above = |one: &Linear, other: &Linear| {
        one.minus(other).is_some_and(|apart| apart.is_constant() && apart.constant >= 0)
    };
    bounds.iter().find(|one| bounds.iter().all(|other| above(one, other)))
}

/// The last value that a counter reaches, which starts at `first` and is `last` at most. It is
/// `last` where their distance depends on sizes or other counters.
fn reached(first: Option<&Linear>, last: Linear, step: i64) -> Linear {
    let apart = first.and_then(|first| last.minus(first)).filter(Linear::is_constant);
    let beyond = apart.map_or(0, |apart| apart.constant.rem_euclid(step.max(1)));
    Linear { constant: last.constant.saturating_sub(beyond), ..last }
}

/// Refuses a step below 1, and numbers of a loop beyond [`FARTHEST`].
fn near<'l>(op: Op, steps: &[i64], bounds: impl Iterator<Item = &'l Linear>) -> Result<(), Error> {
    if let Some(step) = steps.iter().find(|step| !(1..=FARTHEST).contains(*step)) {
        return Err(refuse(op, &format!("a step is 1 to 2^48, and this one is {step}")));
    }
    let mut numbers = bounds.flat_map(|bound| bound.coefficients.iter().chain([&bound.constant]));
    match numbers.find(|number| number.unsigned_abs() > FARTHEST.unsigned_abs()) {
        None => Ok(()),
        Some(far) => {
            let limit = "constants and factors of bounds lie within 2^48 of 0";
            Err(refuse(op, &format!("{limit}, and one is {far}")))
        }
    }
}

impl<'c> Reader<'c> {
    /// Numbers sizes and counters, in the order of the text.
    fn unknowns(&mut self, block: Blk<'c>, outside: bool) -> Result<(), Error> {
        if outside {
            let sizes = mlir::arguments(block);
            let sizes = sizes.into_iter().filter(|value| value.r#type().is_index());
            sizes.for_each(|size| self.size(size));
        }
        for op in mlir::operations(block) {
            let name = mlir::name(op);
            if let "affine.for" | "affine.parallel" = name {
                let body = mlir::entry(op).ok_or_else(|| refuse(op, "the loop has no body"))?;
                for counter in mlir::arguments(body) {
                    let next = self.counters.len();
                    self.counters.insert(mlir::key(counter), next);
                    self.text.counters.push(counter);
                }
                self.unknowns(body, false)?;
            } else if outside && !matches!(name, "arith.constant" | "affine.apply") {
                let sizes = mlir::results(op).into_iter();
                let sizes = sizes.filter(|value| value.r#type().is_index());
                sizes.for_each(|size| self.size(size));
            }
        }
        Ok(())
    }

    fn size(&mut self, value: Val<'c>) {
        let next = self.sizes.len();
        self.sizes.entry(mlir::key(value)).or_insert(next);
        self.text.sizes.push(value);
    }

    fn array(&mut self, value: Val<'c>) -> usize {
        let next = self.arrays.len();
        if MemRefType::try_from(value.r#type()).is_err() {
            return next;
        }
        let number = *self.arrays.entry(mlir::key(value)).or_insert(next);
        if number == next {
            self.text.arrays.push(value);
        }
        number
    }

    fn block(&mut self, block: Blk<'c>, around: &mut Vec<usize>) -> Result<(), Error> {
        for op in mlir::operations(block) {
            let name = mlir::name(op);
            let operands = mlir::operands(op);
            let from = operands.iter().filter_map(|value| self.loads.get(&mlir::key(*value)));
            // A value that is used twice is made of the same loads.
            let from: BTreeSet<usize> = from.flatten().copied().collect();
            let mut made: Vec<usize> = from.into_iter().collect();
            match name {
                "affine.for" | "affine.parallel" => self.repeat(op, around)?,
                "affine.load" => made = vec![self.reference(op, around, 0, false)?],
                "affine.store" => {
                    made.push(self.reference(op, around, 1, true)?);
                    self.text.stores.push(op);
                    let access = |at: &usize| self.text.accesses.get(*at);
                    let references = made.iter().filter_map(access);
                    let references = references.map(|access| access.reference.clone()).collect();
                    self.statements.push(Statement { loops: around.clone(), references });
                    if self.statements.len() > MOST_STATEMENTS {
                        return Err(refuse(
                            op,
                            &format!("a function has at most {MOST_STATEMENTS} stores; split it"),
                        ));
                    }
                    self.text.of_statement.push(made);
                    continue;
                }
                "affine.yield" | "func.return" if operands.is_empty() => {}
                "affine.apply" => {
                    // One that is not linear may be no index, but it may be a value.
                    let map = attribute::read(op, "map", attribute::as_map)?;
                    if let Ok([form]) = self.linear(op, map, &operands).as_deref() {
                        self.form(op, form.clone());
                    }
                }
                "memref.dim" | "affine.min" | "affine.max" | "memref.dealloc" => {}
                _ if allocates(op) && around.is_empty() => {
                    for array in mlir::results(op) {
                        self.array(array);
                    }
                }
                _ if allocates(op) => {
                    return Err(refuse(
                        op,
                        "move the array out of all loops, or make it an argument",
                    ));
                }
                "arith.constant" if mlir::results(op).iter().any(|at| at.r#type().is_index()) => {
                    let constant = attribute::read(op, "value", attribute::as_integer)?;
                    self.form(op, Linear { constant, ..self.unit(usize::MAX) });
                }
                _ if name.starts_with("arith.") || name.starts_with("math.") => {}
                _ => {
                    return Err(refuse(
                        op,
                        "a nest has affine loops, loads and stores alone, beside arith and math; \
                         for a condition use arith.select or a bound of a loop",
                    ));
                }
            }
            for result in mlir::results(op) {
                self.loads.insert(mlir::key(result), made.clone());
            }
        }
        Ok(())
    }

    fn repeat(&mut self, op: Op<'c>, around: &mut Vec<usize>) -> Result<(), Error> {
        let body = mlir::entry(op).ok_or_else(|| refuse(op, "the loop has no body"))?;
        if !mlir::results(op).is_empty() {
            return Err(refuse(
                op,
                "a value is carried by the loop; make the loop an affine.for that keeps the value \
                 in an array",
            ));
        }
        let depth = around.len();
        let parallel = mlir::name(op) == "affine.parallel";
        let steps = if parallel { "steps" } else { "step" };
        let steps = attribute::read(op, steps, |steps| {
            attribute::as_integers(steps).or_else(|| attribute::as_integer(steps).map(|s| vec![s]))
        })?;
        let names = if parallel {
            ["lowerBoundsMap", "upperBoundsMap"]
        } else {
            ["lowerBoundMap", "upperBoundMap"]
        };
        let [lower, upper] = names.map(|name| attribute::read(op, name, attribute::as_map));
        let (lower, upper) = (lower?, upper?);
        let operands = mlir::operands(op);
        let (below, rest) = operands.split_at(lower.input_count().min(operands.len()));
        let (lower, upper) = (self.linear(op, lower, below)?, self.linear(op, upper, rest)?);
        near(op, &steps, lower.iter().chain(&upper))?;
        let mut counters = mlir::arguments(body);
        counters.truncate(if parallel { usize::MAX } else { 1 });
        // A bound of `affine.for` may be the largest or smallest of several.
        let [low, high] = [lower.len(), upper.len()].map(|all| if parallel { 1 } else { all });
        if parallel && (lower.len() != counters.len() || upper.len() != counters.len()) {
            return Err(refuse(op, "a parallel loop has one bound a side for each counter"));
        }
        let (mut lower, mut upper) = (lower.into_iter(), upper.into_iter());
        for (counter, step) in counters.into_iter().zip(steps) {
            let at = self.value(op, counter)?;
            let starts: Vec<Linear> = lower.by_ref().take(low).collect();
            let first = greatest(&starts);
            let mut bounds: Vec<_> = starts.iter().map(|start| at.minus(start)).collect();
            for bound in upper.by_ref().take(high) {
                let last = Linear { constant: bound.constant.saturating_sub(1), ..bound };
                bounds.push(reached(first, last, step).minus(&at));
            }
            let bounds = bounds.into_iter().collect::<Option<_>>();
            let bounds = bounds.ok_or_else(|| refuse(op, "a bound leaves 64 bits"))?;
            around.push(self.loops.len());
            self.loops.push(Loop { bounds, parallel, step });
        }
        if around.len() > DEEPEST {
            return Err(refuse(op, &format!("a nest is at most {DEEPEST} loops deep")));
        }
        self.block(body, around)?;
        around.truncate(depth);
        Ok(())
    }

    fn reference(
        &mut self,
        op: Op<'c>,
        around: &[usize],
        memref: usize,
        write: bool,
    ) -> Result<usize, Error> {
        let operands = mlir::operands(op);
        let buffer = operands.get(memref).ok_or_else(|| refuse(op, "the buffer is missing"))?;
        let map = attribute::read(op, "map", attribute::as_map)?;
        let indices = self.linear(op, map, operands.get(memref + 1..).unwrap_or_default())?;
        let reference = Reference { array: self.array(*buffer), write, indices };
        let loops = around.to_vec();
        self.text.accesses.push(Access { op, loops, reference });
        Ok(self.text.accesses.len() - 1)
    }

    fn form(&mut self, op: Op<'c>, form: Linear) {
        let results = mlir::results(op).into_iter();
        self.forms.extend(results.map(|result| (mlir::key(result), form.clone())));
    }

    fn unit(&self, unknown: usize) -> Linear {
        let all = self.sizes.len() + self.counters.len();
        let coefficients = (0..all).map(|other| i64::from(other == unknown)).collect();
        Linear { constant: 0, coefficients }
    }

    /// A size, a counter, or a form of these.
    fn value(&self, op: Op, value: Val) -> Result<Linear, Error> {
        let key = mlir::key(value);
        if let Some(form) = self.forms.get(&key) {
            return Ok(form.clone());
        }
        let counter = self.counters.get(&key).map(|counter| self.sizes.len() + counter);
        if let Some(unknown) = counter.or(self.sizes.get(&key).copied()) {
            return Ok(self.unit(unknown));
        }
        Err(refuse(
            op,
            "an index is not linear in sizes and counters; remove divisions and remainders",
        ))
    }

    fn linear(&self, op: Op, map: AffineMap, operands: &[Val]) -> Result<Vec<Linear>, Error> {
        let inputs = operands.iter().take(map.input_count());
        let inputs = inputs.map(|value| self.value(op, *value)).collect::<Result<Vec<_>, _>>()?;
        let none = || {
            let text = "a bound or an index has a division or a remainder, and only sums of sizes \
                        and counters times constants can be analysed";
            refuse(op, text)
        };
        let zero = self.unit(usize::MAX);
        let result = |place| {
            let expression = map.result(place).map_err(|_| none())?;
            linear_expression(expression, &inputs, map.dim_count(), &zero).ok_or_else(none)
        };
        (0..map.result_count()).map(result).collect()
    }
}

/// The linear form of an affine expression of some values; `zero` is the form 0.
pub fn linear_expression(
    of: AffineExpr,
    inputs: &[Linear],
    dims: usize,
    zero: &Linear,
) -> Option<Linear> {
    if of.is_constant() {
        return Some(Linear { constant: of.constant_value(), ..zero.clone() });
    }
    if of.is_dim() {
        return inputs.get(of.dim_position()).cloned();
    }
    if of.is_symbol() {
        return inputs.get(dims + of.symbol_position()).cloned();
    }
    let left = linear_expression(of.lhs(), inputs, dims, zero)?;
    let right = linear_expression(of.rhs(), inputs, dims, zero)?;
    match () {
        () if of.is_add() => left.plus(&right),
        () if of.is_mul() && right.is_constant() => left.times(right.constant),
        () if of.is_mul() && left.is_constant() => right.times(left.constant),
        () => None,
    }
}
