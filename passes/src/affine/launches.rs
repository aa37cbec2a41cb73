//! The launches that carry a nest out: which operations each holds, and which of their loops are
//! threads.
//!
//! An outermost loop is one launch, under its best mapping whose threads do not communicate. Where
//! statements get more loops in space that way, an outermost loop runs on the host instead: each
//! of its iterations launches what it holds, one launch after the other. Statements outside of all
//! loops are a launch too.
//!
//! Each thread runs its share of a launch in the order of the text. This is correct if no
//! dependence leads to another thread. It stays correct if fewer loops become threads.
//!
//! Declines: a value that is loaded in one launch and used in another, unless nothing is stored to
//! its array; and a nest whose dependences take too long to find.

use super::arguments::Declared;
use super::dependences::{self, Dependence};
use super::mapping::{self, Mapping, Settings};
use super::nest::{Nest, Statement, Text};
use melior::ir::operation::OperationLike;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::affine::Linear;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir::{self, Blk, Op};

/// Dimensions of a block of threads.
const MOST_AXES: usize = 3;

/// A function with what was read of it.
pub struct Function<'c, 'p> {
    /// The `func.func`.
    pub op: Op<'c>,
    /// Its loops and statements.
    pub nest: &'p Nest,
    /// The operations behind them.
    pub text: &'p Text<'c>,
    /// Its arguments.
    pub declared: &'p Declared<'c>,
    /// The nest's sizes over the params.
    pub sizes: &'p [Linear],
}

/// Launches that follow each other.
#[derive(Clone, Debug)]
pub struct Phase<'c> {
    /// The loop whose iterations repeat them; none where they run once.
    pub host_loop: Option<HostLoop<'c>>,
    /// The launches.
    pub launches: Vec<Launch<'c>>,
}

/// A loop that the host runs.
#[derive(Clone, Debug)]
pub struct HostLoop<'c> {
    /// The `affine.for`.
    pub op: Op<'c>,
    /// Its number in the nest.
    pub at: usize,
    /// The first value of its counter, over the params.
    pub first: Linear,
    /// Its iterations, over the params.
    pub trips: Linear,
}

/// A launch.
#[derive(Clone, Debug, Default)]
pub struct Launch<'c> {
    /// Operations from outside that it needs the values of, in order.
    pub before: Vec<Op<'c>>,
    /// What it carries out, in order.
    pub ops: Vec<Op<'c>>,
    /// The axis of threads of each loop in space; 0 is x.
    pub axes: BTreeMap<usize, usize>,
    /// The arrays that the mapping marks to be copied to shared memory.
    pub copied: BTreeSet<usize>,
    /// The arrays of which the mapping says that all threads read the same element.
    pub constant: BTreeSet<usize>,
}

impl Launch<'_> {
    /// How many axes of threads there are.
    pub fn axis_count(&self) -> usize {
        self.axes.values().max().map_or(0, |most| most + 1)
    }
}

/// The launches of a function in order.
///
/// # Errors
/// What the head of this file lists.
pub fn of<'c>(function: &Function<'c, '_>) -> Result<Vec<Phase<'c>>, Error> {
    let Some(entry) = mlir::entry(function.op) else { return Ok(Vec::new()) };
    let search = Search::new(function)?;
    let mut phases = Vec::new();
    for mut launch in launches(entry) {
        launch.before = search.needed(entry, None, &launch)?;
        let whole = search.map(&mut launch, 0);
        let split = search.split(entry, &launch)?.filter(|(score, _)| *score > whole);
        phases.push(match split {
            Some((_, phase)) => phase,
            None => Phase { host_loop: None, launches: vec![launch] },
        });
    }
    Ok(phases)
}

/// Whether an operation is a loop.
pub fn is_loop(op: Op) -> bool {
    matches!(mlir::name(op), "affine.for" | "affine.parallel")
}

fn ends_block(op: Op) -> bool {
    matches!(mlir::name(op), "affine.yield" | "func.return")
}

/// The loops of a block, and the stores between them with what surrounds them.
fn launches(block: Blk<'_>) -> Vec<Launch<'_>> {
    let (mut launches, mut run) = (Vec::new(), Vec::new());
    let of_run = |ops: &mut Vec<_>| {
        let ops = std::mem::take(ops);
        let stores = ops.iter().any(|op| mlir::name(*op) == "affine.store");
        stores.then(|| Launch { ops, ..Launch::default() })
    };
    for op in mlir::operations(block).into_iter().filter(|op| !ends_block(*op)) {
        if is_loop(op) {
            launches.extend(of_run(&mut run));
            launches.push(Launch { ops: vec![op], ..Launch::default() });
        } else {
            run.push(op);
        }
    }
    launches.extend(of_run(&mut run));
    launches
}

/// The operations of a block whose values some operations use, directly or through each other.
pub fn slice<'c>(block: Blk<'c>, users: &[Op<'c>]) -> Vec<Op<'c>> {
    let operands = |op: Op<'c>| mlir::walk(op).into_iter().flat_map(mlir::operands);
    let mut needed: BTreeSet<usize> =
        users.iter().flat_map(|op| operands(*op)).map(mlir::key).collect();
    let mut found = Vec::new();
    for op in mlir::operations(block).into_iter().rev().filter(|op| !is_loop(*op)) {
        if mlir::results(op).iter().any(|result| needed.contains(&mlir::key(*result))) {
            needed.extend(operands(op).map(mlir::key));
            found.push(op);
        }
    }
    found.reverse();
    found
}

struct Search<'c, 'p> {
    function: &'p Function<'c, 'p>,
    dependences: Vec<Dependence>,
    /// The nest with extra statements: loads that no statement uses, or one in deeper loops. Such
    /// a load runs even where the deeper loops are empty.
    with_loads: Nest,
    /// The operations of these loads.
    loads: Vec<Op<'c>>,
    /// The dependences of these loads.
    of_loads: Vec<Dependence>,
}

impl<'c, 'p> Search<'c, 'p> {
    fn new(function: &'p Function<'c, 'p>) -> Result<Self, Error> {
        let Function { nest, text, op, .. } = function;
        let (mut with_loads, mut loads) = ((*nest).clone(), Vec::new());
        for (place, access) in text.accesses.iter().enumerate() {
            let users = text.of_statement.iter().zip(&nest.statements);
            let mut users = users.filter(|(accesses, _)| accesses.contains(&place)).peekable();
            let unused = users.peek().is_none();
            if unused || users.any(|(_, user)| user.loops != access.loops) {
                let (loops, references) = (access.loops.clone(), vec![access.reference.clone()]);
                with_loads.statements.push(Statement { loops, references });
                loads.push(access.op);
            }
        }
        let first = nest.statements.len();
        let of_load = |found: &Dependence| found.source.max(found.target) >= first;
        let all = dependences::of(&with_loads).ok_or_else(|| {
            let message = "the dependences between the statements of this nest take too long to \
                           find; split it, or use fewer loops around fewer different indices";
            Error::declined(Decline::Nest, message).at(mlir::place(op.location()))
        })?;
        let (of_loads, dependences) = all.into_iter().partition(of_load);
        Ok(Self { function, dependences, with_loads, loads, of_loads })
    }

    /// Whether a load of a launch depends on another thread.
    fn loads_elsewhere(&self, ops: &[Op<'c>], fixed: usize, space: &[usize]) -> bool {
        let first = self.function.nest.statements.len();
        let inside = |at: usize| {
            let stores = &self.function.text.stores;
            let op = stores.get(at).or_else(|| self.loads.get(at.checked_sub(first)?));
            op.is_some_and(|op| ops.contains(op))
        };
        self.of_loads.iter().any(|found| {
            found.directions.iter().take(fixed).all(|at| at.is_eq())
                && inside(found.source)
                && inside(found.target)
                && mapping::leads_elsewhere(&self.with_loads, space, found)
        })
    }

    /// What a launch needs of the blocks around it. A load has the same value in any launch if
    /// nothing is stored to its array.
    fn needed(
        &self,
        entry: Blk<'c>,
        inner: Option<Blk<'c>>,
        launch: &Launch<'c>,
    ) -> Result<Vec<Op<'c>>, Error> {
        let own = |op: &Op<'c>| !launch.ops.contains(op);
        let mut found: Vec<Op> = Vec::new();
        for block in inner.into_iter().chain([entry]) {
            let users = [found.as_slice(), &launch.ops].concat();
            let all: Vec<Op> = slice(block, &users).into_iter().filter(own).collect();
            found = [all, found].concat();
        }
        let stored = |op: Op<'c>| {
            let memref = mlir::operands(op).first().copied();
            self.function
                .text
                .stores
                .iter()
                .any(|store| mlir::operands(*store).get(1).copied() == memref)
        };
        match found.iter().find(|op| mlir::name(**op) == "affine.load" && stored(**op)) {
            None => Ok(found),
            Some(load) => Err(Error::declined(
                Decline::Nest,
                "the value of this load is used in another launch, and its array is stored to; \
                 load the value where it is used",
            )
            .at(mlir::place(load.location()))),
        }
    }

    fn statements(&self, ops: &[Op<'c>]) -> Vec<usize> {
        let inside: Vec<Op> = ops.iter().flat_map(|op| mlir::walk(*op)).collect();
        let stores = self.function.text.stores.iter().enumerate();
        stores.filter(|(_, store)| inside.contains(store)).map(|(at, _)| at).collect()
    }

    /// Loops between a load and the statement that uses it, where the launch stores to the loaded
    /// array. They stay in time, because one thread must load the value.
    fn loops_between_load_and_use(&self, statements: &[usize]) -> BTreeSet<usize> {
        let Function { nest, text, .. } = self.function;
        let all = || statements.iter().filter_map(|at| nest.statements.get(*at));
        let stored: BTreeSet<usize> =
            all().flat_map(|s| &s.references).filter(|r| r.write).map(|r| r.array).collect();
        let mut found = BTreeSet::new();
        for (statement, accesses) in statements
            .iter()
            .zip(all())
            .filter_map(|(at, statement)| Some((statement, text.of_statement.get(*at)?)))
        {
            let accesses = accesses.iter().filter_map(|at| text.accesses.get(*at));
            for access in accesses.filter(|access| stored.contains(&access.reference.array)) {
                found.extend(statement.loops.iter().skip(access.loops.len()));
            }
        }
        found
    }

    /// Maps the loops of a launch. Returns how many loops in space are around statements in all.
    fn map(&self, launch: &mut Launch<'c>, fixed: usize) -> usize {
        let nest = self.function.nest;
        let statements = self.statements(&launch.ops);
        let all = mapping::of_part(
            nest,
            &self.dependences,
            statements.clone(),
            fixed,
            Settings::default(),
        );
        let loops_between_load_and_use = self.loops_between_load_and_use(&statements);
        let inside: Vec<Op> = launch.ops.iter().flat_map(|op| mlir::walk(*op)).collect();
        let suits = |mapping: &Mapping| {
            !mapping.communicates
                && mapping.space.iter().all(|at| !loops_between_load_and_use.contains(at))
                && !self.loads_elsewhere(&inside, fixed, &mapping.space)
        };
        let Some(mapping) = all.into_iter().find(suits) else { return 0 };
        let own: Vec<&Statement> =
            statements.iter().filter_map(|at| nest.statements.get(*at)).collect();
        launch.axes = axes(&mapping, nest, &own);
        let copied = mapping.buffers.iter().filter(|buffer| buffer.copied);
        launch.copied = copied.map(|buffer| buffer.array).collect();
        let constant = mapping.buffers.iter().filter(|buffer| buffer.constant);
        launch.constant = constant.map(|buffer| buffer.array).collect();
        let axes = &launch.axes;
        own.iter().flat_map(|one| &one.loops).filter(|at| axes.contains_key(at)).count()
    }

    /// A launch's loop as one that the host runs, with the loops in space of its launches.
    fn split(
        &self,
        entry: Blk<'c>,
        launch: &Launch<'c>,
    ) -> Result<Option<(usize, Phase<'c>)>, Error> {
        let [op] = launch.ops[..] else { return Ok(None) };
        let Some(host_loop) = self.host_loop(op) else { return Ok(None) };
        let Some(body) = mlir::entry(op) else { return Ok(None) };
        let (mut score, mut parts) = (0, Vec::new());
        for mut part in launches(body) {
            part.before = match self.needed(entry, Some(body), &part) {
                Ok(before) => before,
                Err(error) if error.is_decline() => return Ok(None),
                Err(error) => return Err(error),
            };
            score += self.map(&mut part, 1);
            parts.push(part);
        }
        Ok(Some((score, Phase { host_loop: Some(host_loop), launches: parts })))
    }

    /// A loop whose iterations can be counted.
    fn host_loop(&self, op: Op<'c>) -> Option<HostLoop<'c>> {
        let Function { nest, text, declared, sizes, .. } = self.function;
        if mlir::name(op) != "affine.for" {
            return None;
        }
        let counter = mlir::arguments(mlir::entry(op)?).first().copied()?;
        let at = text.counters.iter().position(|one| *one == counter)?;
        let found = nest.loops.get(at).filter(|found| found.step == 1)?;
        let [lower, upper] = found.bounds.as_slice() else { return None };
        let over = |bound: &Linear| super::access_checks::over_params(bound, declared, sizes);
        let first = over(lower)?.times(-1)?;
        let trips = over(upper)?.minus(&first)?.plus(&declared.number(1))?;
        Some(HostLoop { op, at, first, trips })
    }
}

/// An axis for each loop in space, at most [`MOST_AXES`] around a statement: x for the loop that
/// numbers the threads of a warp, the others by the dimension of a stored array that they move
/// along, the fastest one first. The order of the loops in the text decides only between others.
fn axes(mapping: &Mapping, nest: &Nest, statements: &[&Statement]) -> BTreeMap<usize, usize> {
    let mut space: BTreeSet<usize> = mapping.space.iter().copied().collect();
    for statement in statements {
        let beside_x = |at: &&usize| space.contains(*at) && !mapping.x.contains(*at);
        let inside: Vec<usize> = statement.loops.iter().filter(beside_x).copied().collect();
        // A loop in space may as well run within each thread.
        let most = MOST_AXES - 1;
        let outer: BTreeSet<usize> = inside.into_iter().rev().skip(most).collect();
        space.retain(|at| !outer.contains(at));
    }
    let slowness = |at: &usize| {
        let moved = |index: &Linear| {
            index.coefficients.get(nest.sizes + at).is_some_and(|factor| *factor != 0)
        };
        let stores = statements.iter().filter_map(|statement| statement.references.last());
        stores.filter_map(|store| store.indices.iter().rev().position(moved)).min()
    };
    let mut inner_first: Vec<usize> = space.into_iter().rev().collect();
    inner_first.sort_by_key(|at| slowness(at).unwrap_or(usize::MAX));
    let mut axes = BTreeMap::new();
    for at in inner_first {
        let around = statements.iter().filter(|statement| statement.loops.contains(&at));
        let taken: BTreeSet<usize> = around
            .flat_map(|one| &one.loops)
            .filter_map(|other| axes.get(other))
            .copied()
            .collect();
        let first = usize::from(!mapping.x.contains(&at));
        axes.extend((first..).find(|axis| !taken.contains(axis)).map(|axis| (at, axis)));
    }
    axes
}
