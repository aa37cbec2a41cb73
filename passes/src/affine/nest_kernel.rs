//! The code of a launch of a nest: what each thread does, in the order of the text.
//!
//! ```text
//! affine.for %i = 0 to %n {            // in space, along x
//!   affine.store %zero, %y[%i]
//!   affine.for %j = 0 to %n {          // in time
//!     ...
//! ```
//! becomes
//! ```text
//! %i = block * 256 + thread
//! scf.if (%i < %n) {
//!   memref.store %zero, %y[%i]
//!   scf.for %j = 0 to %n {
//!     ...
//! ```
//!
//! If a statement has no loop on an axis, the axis's first thread runs it. All threads compute the
//! values that inner loops use.

use super::launches::{Function, Launch, is_loop, slice};
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, ValueLike};
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::attribute;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Blk, Op, Val};

/// Threads along an axis.
#[derive(Clone, Copy)]
pub struct Axis<'c> {
    /// The number of a thread among those of all blocks.
    pub thread: Val<'c>,
    /// Whether it is 0.
    pub is_first: Val<'c>,
}

/// The lower bounds of a counter, of which the largest counts, and the upper ones.
pub type Bounds<'c> = (Vec<Val<'c>>, Vec<Val<'c>>);

/// Where the threads of a loop begin.
#[derive(Clone, Copy)]
pub struct Start<'c> {
    /// The counter's value in the first thread.
    pub value: Val<'c>,
    /// Whether that is the loop's lower bound, whatever the counters around it.
    pub fixed: bool,
}

impl Start<'_> {
    /// The distance between neighbouring threads' counters. If the lower bound is not fixed, there
    /// is a thread for every value, and a guard skips those between steps.
    pub fn step(&self, step: i64) -> i64 {
        if self.fixed { step } else { 1 }
    }
}

/// The code of a launch.
pub struct Code<'c, 'p> {
    /// The function.
    pub function: &'p Function<'c, 'p>,
    /// What the launch holds.
    pub launch: &'p Launch<'c>,
    /// The axes of its threads, x first.
    pub axes: Vec<Axis<'c>>,
    /// Where the threads of each loop in space begin.
    pub starts: BTreeMap<usize, Start<'c>>,
    /// Values of the function in the kernel, by their keys; memrefs are views of buffers.
    pub values: BTreeMap<usize, Val<'c>>,
    /// Values that only the first thread of an axis computes; other threads have zeros.
    pub of_first: BTreeSet<usize>,
}

impl<'c> Code<'c, '_> {
    /// Builds all operations of the launch.
    ///
    /// # Errors
    /// Internal ones.
    pub fn build(&mut self, builder: &Builder<'c>) -> Result<(), Error> {
        for op in self.launch.before.clone() {
            self.compute(builder, op)?;
        }
        let Some(first) = self.launch.ops.first() else { return Ok(()) };
        let block = first.block().map(mlir::block);
        let block = block.ok_or_else(|| Error::internal("an operation outside of all blocks"))?;
        self.sequence(builder, block, &self.launch.ops.clone(), &BTreeSet::new())
    }

    /// Operations of a block in order; `inside` are the axes of the loops around them.
    fn sequence(
        &mut self,
        builder: &Builder<'c>,
        block: Blk<'c>,
        ops: &[Op<'c>],
        inside: &BTreeSet<usize>,
    ) -> Result<(), Error> {
        let others: Vec<Val> = (0..self.axes.len())
            .filter(|axis| !inside.contains(axis))
            .filter_map(|axis| self.axes.get(axis).map(|axis| axis.is_first))
            .collect();
        let loops: Vec<Op> = ops.iter().copied().filter(|op| is_loop(*op)).collect();
        let for_all = slice(block, &loops);
        let mut rest = ops;
        while let Some((op, after)) = rest.split_first() {
            if is_loop(*op) {
                self.repeat(builder, *op, inside)?;
                rest = after;
                continue;
            }
            let length = rest.iter().take_while(|op| !is_loop(**op)).count();
            let (run, after) = rest.split_at(length);
            rest = after;
            let Some(first) = builder.all(&others)? else {
                run.iter().try_for_each(|op| self.compute(builder, *op))?;
                continue;
            };
            let stored = self.first_thread_only(run);
            let (all, guarded): (Vec<Op>, Vec<Op>) =
                run.iter().partition(|op| for_all.contains(op) && !stored.contains(op));
            all.into_iter().try_for_each(|op| self.compute(builder, op))?;
            self.guarded(builder, first, &guarded, &slice(block, after))?;
        }
        Ok(())
    }

    /// The operations of a run that depend on loads of arrays that the launch stores to, or on what
    /// the first thread alone computed. Another thread that did them too might load while the first
    /// one stores, or divide by a zero that stands for a value.
    fn first_thread_only(&self, run: &[Op<'c>]) -> Vec<Op<'c>> {
        let inside = self.launch.ops.iter().flat_map(|op| mlir::walk(*op));
        let stores = inside.filter(|op| mlir::name(*op) == "affine.store");
        let stored: BTreeSet<usize> =
            stores.filter_map(|op| mlir::operands(op).get(1).copied()).map(mlir::key).collect();
        let (mut found, mut values) = (Vec::new(), &stored | &self.of_first);
        for op in run {
            if mlir::operands(*op).into_iter().any(|value| values.contains(&mlir::key(value))) {
                values.extend(mlir::results(*op).into_iter().map(mlir::key));
                found.push(*op);
            }
        }
        found
    }

    /// Operations that one thread of several does. Those after them know the values of some.
    fn guarded(
        &mut self,
        builder: &Builder<'c>,
        first: Val<'c>,
        ops: &[Op<'c>],
        later: &[Op<'c>],
    ) -> Result<(), Error> {
        let kept: Vec<Val> =
            ops.iter().filter(|op| later.contains(op)).flat_map(|op| mlir::results(*op)).collect();
        let types: Vec<_> = kept.iter().map(|value| value.r#type()).collect();
        let then = |builder: &Builder<'c>| {
            ops.iter().try_for_each(|op| self.compute(builder, *op))?;
            kept.iter().map(|value| self.value(*value)).collect()
        };
        let zeros = |builder: &Builder<'c>| types.iter().map(|ty| builder.zero(*ty)).collect();
        let made = builder.choose(first, &types, then, zeros)?;
        self.of_first.extend(kept.iter().map(|value| mlir::key(*value)));
        self.values.extend(kept.iter().map(|value| mlir::key(*value)).zip(made));
        Ok(())
    }

    fn value(&self, value: Val<'c>) -> Result<Val<'c>, Error> {
        let found = self.values.get(&mlir::key(value)).copied();
        found.ok_or_else(|| Error::internal(format!("a launch without the value {value}")))
    }

    /// An operation that is no loop.
    ///
    /// # Errors
    /// Internal ones.
    pub fn compute(&mut self, builder: &Builder<'c>, op: Op<'c>) -> Result<(), Error> {
        let builder = Builder { location: op.location(), ..*builder };
        let results = mlir::results(op);
        let known = |value: &Val| self.values.contains_key(&mlir::key(*value));
        match mlir::name(op) {
            "affine.load" => {
                let (array, indices) = self.element(&builder, op, 0)?;
                let loaded = builder.load(array, &indices)?;
                let keys = results.iter().map(|result| mlir::key(*result));
                self.values.extend(keys.map(|key| (key, loaded)));
            }
            "affine.store" => {
                let (array, indices) = self.element(&builder, op, 1)?;
                let stored = mlir::operands(op).first().copied();
                let stored = stored.ok_or_else(|| Error::internal("a store of nothing"))?;
                builder.store(self.value(stored)?, array, &indices)?;
            }
            // Buffers last as long as the run.
            "memref.dealloc" => {}
            // A size and a buffer are arguments of the kernel.
            _ if !results.is_empty() && results.iter().all(known) => {}
            _ => mlir::copy_to(op, builder.block, &mut self.values),
        }
        Ok(())
    }

    /// The buffer and the indices of an access.
    fn element(
        &self,
        builder: &Builder<'c>,
        op: Op<'c>,
        memref: usize,
    ) -> Result<(Val<'c>, Vec<Val<'c>>), Error> {
        let operands = mlir::operands(op);
        let array = operands.get(memref).copied();
        let array = array.ok_or_else(|| Error::internal("an access without a memref"))?;
        let value = |value| self.value(value);
        let indices = mapped(builder, op, "map", (memref + 1, operands.len()), value)?;
        Ok((self.value(array)?, indices))
    }

    fn repeat(
        &mut self,
        builder: &Builder<'c>,
        op: Op<'c>,
        inside: &BTreeSet<usize>,
    ) -> Result<(), Error> {
        let builder = Builder { location: op.location(), ..*builder };
        let body = mlir::entry(op).ok_or_else(|| Error::internal("a loop without a body"))?;
        let (lower, upper) = bounds(&builder, op, |value| self.value(value))?;
        let counters = mlir::arguments(body);
        let bounds: Vec<Bounds> = match mlir::name(op) == "affine.parallel" {
            true => lower.into_iter().zip(upper).map(|(a, b)| (vec![a], vec![b])).collect(),
            false => vec![(lower, upper)],
        };
        let counted: Vec<_> = counters.into_iter().zip(bounds).collect();
        self.counters(&builder, body, &counted, inside)
    }

    /// The loops of some counters, the first of which is the outermost, around a body.
    fn counters(
        &mut self,
        builder: &Builder<'c>,
        body: Blk<'c>,
        counted: &[(Val<'c>, Bounds<'c>)],
        inside: &BTreeSet<usize>,
    ) -> Result<(), Error> {
        let Some(((counter, (lower, upper)), rest)) = counted.split_first() else {
            let ops = mlir::operations(body).into_iter();
            let ops: Vec<Op> = ops.filter(|op| mlir::name(*op) != "affine.yield").collect();
            return self.sequence(builder, body, &ops, inside);
        };
        let at = self.function.text.counters.iter().position(|one| one == counter);
        let at = at.ok_or_else(|| Error::internal("a counter of no loop"))?;
        let step = self.function.nest.loops.get(at).map_or(1, |found| found.step);
        let axis = self.launch.axes.get(&at);
        let Some((number, axis)) = axis.and_then(|at| Some((*at, self.axes.get(*at).copied()?)))
        else {
            let first = largest(builder, "arith.maxsi", lower)?;
            let end = largest(builder, "arith.minsi", upper)?;
            return builder.repeat((first, end, builder.index(step)?), |builder, value| {
                self.values.insert(mlir::key(*counter), value);
                self.counters(builder, body, rest, inside)
            });
        };
        let start = self.starts.get(&at).copied();
        let start = start.ok_or_else(|| Error::internal("an axis without a start"))?;
        let distance = builder.multiply_constant(axis.thread, start.step(step))?;
        let value = builder.add(start.value, distance)?;
        let mut conditions = Vec::new();
        if !start.fixed {
            let first = largest(builder, "arith.maxsi", lower)?;
            conditions.push(builder.compare(Compare::Ge, value, first)?);
            if step != 1 {
                let beyond = builder.binary("arith.subi", value, first)?;
                let rest = builder.binary("arith.remsi", beyond, builder.index(step)?)?;
                conditions.push(builder.compare(Compare::Eq, rest, builder.index(0)?)?);
            }
        }
        for bound in upper {
            conditions.push(builder.compare(Compare::Lt, value, *bound)?);
        }
        self.values.insert(mlir::key(*counter), value);
        let inside: BTreeSet<usize> = inside.iter().copied().chain([number]).collect();
        let runs = builder.all(&conditions)?;
        let runs = runs.ok_or_else(|| Error::internal("a loop without an end"))?;
        builder.when(runs, |builder| self.counters(builder, body, rest, &inside))
    }
}

/// The lower and the upper bounds of a loop, from the values of its operands.
pub fn bounds<'c>(
    builder: &Builder<'c>,
    op: Op<'c>,
    value: impl Fn(Val<'c>) -> Result<Val<'c>, Error>,
) -> Result<Bounds<'c>, Error> {
    let names = match mlir::name(op) == "affine.parallel" {
        true => ["lowerBoundsMap", "upperBoundsMap"],
        false => ["lowerBoundMap", "upperBoundMap"],
    };
    let [lower, upper] = names;
    let count = mlir::operands(op).len();
    let below = attribute::read(op, lower, attribute::as_map)?.input_count().min(count);
    Ok((
        mapped(builder, op, lower, (0, below), &value)?,
        mapped(builder, op, upper, (below, count), &value)?,
    ))
}

/// The results of a map of some of an operation's operands, from the values of these.
pub fn mapped<'c>(
    builder: &Builder<'c>,
    op: Op<'c>,
    map: &str,
    (first, end): (usize, usize),
    value: impl Fn(Val<'c>) -> Result<Val<'c>, Error>,
) -> Result<Vec<Val<'c>>, Error> {
    let map = attribute::read(op, map, attribute::as_map)?;
    let operands = mlir::operands(op);
    let operands = operands.get(first..end).unwrap_or_default().iter();
    let operands = operands.map(|operand| value(*operand)).collect::<Result<Vec<_>, _>>()?;
    let (dims, symbols) = operands.split_at(map.dim_count().min(operands.len()));
    let result = |place| {
        let expression: AffineExpr<'c> =
            map.result(place).map_err(|error| Error::internal(error.to_string()))?;
        match expression.is_dim().then(|| dims.get(expression.dim_position())).flatten() {
            Some(value) => Ok(*value),
            None => builder.affine(expression, dims, symbols),
        }
    };
    (0..map.result_count()).map(result).collect()
}

/// The largest or smallest of several values.
pub fn largest<'c>(builder: &Builder<'c>, op: &str, all: &[Val<'c>]) -> Result<Val<'c>, Error> {
    let mut all = all.iter().copied();
    let first = all.next().ok_or_else(|| Error::internal("a loop without a bound"))?;
    all.try_fold(first, |sum, next| builder.binary(op, sum, next))
}
