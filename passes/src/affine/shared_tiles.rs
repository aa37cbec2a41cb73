//! What the threads of a launch of affine loops can share: which of its loops in time can be cut
//! into tiles, and where each of their references then finds its element.
//!
//! A block has a box of iterations of the loops in space. A tile is some iterations of a loop in
//! time; before each, the block copies what the tile reads to shared memory. The references that
//! are copied are those that algorithm 1 marks ([`mapping`](super::mapping)), if nothing in the
//! launch stores to their array: a copy holds the hull of what is read, and may hold cells that
//! other threads would change. With one axis of threads, coalesced references are copied too: more
//! threads can load than compute. References whose index differs by constants share a copy.
//!
//! Arrays in `tiled.nest_constants` are not copied.
//!
//! Elements that a thread alone uses, whose index a loop in time does not change, stay in registers
//! (section 5.4 of the paper).

use super::arguments::Extent;
use super::launches::{Function, Launch, is_loop};
use super::nest::{Nest, Reference};
use crate::analysis::total_operations::is_total;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::affine::Linear;
use stencil_dialects::mlir::{self, Blk, Op};
use stencil_dialects::tiled;

/// A launch whose loops in time can share copies.
#[derive(Clone, Debug)]
pub struct Tileable<'c> {
    /// The loops in space, a perfect nest: operations, outer ones first.
    pub around: Vec<Op<'c>>,
    /// The numbers of their counters, outer ones first.
    pub space: Vec<usize>,
    /// The body of the innermost.
    pub body: Blk<'c>,
    /// Loops in time in this body that can be tiled.
    pub loops: Vec<TimeLoop<'c>>,
}

/// A loop in time whose iterations share copies.
#[derive(Clone, Debug)]
pub struct TimeLoop<'c> {
    /// The `affine.for`.
    pub op: Op<'c>,
    /// Its number.
    pub at: usize,
    /// Where each access finds its element, by the access's place in the text.
    pub homes: BTreeMap<usize, Home>,
    /// The elements in registers. Those that are stored to come first.
    pub registers: Vec<Register>,
    /// The copies in shared memory.
    pub copies: Vec<Copy>,
    /// Constant first and last values of the loops within it.
    pub within: BTreeMap<usize, Option<(i64, i64)>>,
    /// Threads that have nothing to do may do the same as others: nothing traps, and nothing
    /// accesses global memory.
    pub uniform: bool,
}

impl TimeLoop<'_> {
    /// Its iterations, if they are constant.
    pub fn trips(&self, nest: &Nest) -> Option<i64> {
        constant_count(nest, self.at)
    }
}

/// Where an access finds its element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Home {
    /// In a register, by its number.
    Register(usize),
    /// In a copy, by its number, so far behind the copy's own index along each dimension.
    Copied(usize, Vec<i64>),
    /// In constant memory: the same element for all threads, whether or not they have work.
    Constant,
    /// In global memory.
    Memory,
}

/// An element in a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// An access to it, by its place in the text.
    pub access: usize,
    /// Whether the loop stores to it.
    pub stored: bool,
}

/// A part of an array in shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// An access to it, by its place in the text.
    pub access: usize,
    /// The array.
    pub array: usize,
    /// The index with the smallest constants of all references.
    pub indices: Vec<Linear>,
    /// The largest constant minus the smallest, along each dimension.
    pub spread: Vec<i64>,
}

impl Copy {
    /// Cells along each dimension, if the counters that occur have so many values.
    pub fn extents(&self, nest: &Nest, values: impl Fn(usize) -> Option<i64>) -> Option<Vec<i64>> {
        let extent = |(index, spread): (&Linear, &i64)| {
            let mut cells = spread.checked_add(1)?;
            for (at, factor) in factors(nest, index) {
                let more = values(at)?.checked_sub(1)?.checked_mul(factor.checked_abs()?)?;
                cells = cells.checked_add(more)?;
            }
            Some(cells)
        };
        self.indices.iter().zip(&self.spread).map(extent).collect()
    }

    /// Whether the index depends on a loop.
    pub fn depends_on(&self, nest: &Nest, at: usize) -> bool {
        self.indices.iter().any(|index| factor(nest, index, at) != 0)
    }
}

/// The coefficient of a loop's counter.
pub fn factor(nest: &Nest, of: &Linear, at: usize) -> i64 {
    of.coefficients.get(nest.sizes + at).copied().unwrap_or(0)
}

/// The counters of a form with their coefficients.
pub fn factors<'l>(nest: &Nest, of: &'l Linear) -> impl Iterator<Item = (usize, i64)> + 'l {
    let counters = of.coefficients.iter().skip(nest.sizes).copied().enumerate();
    counters.filter(|(_, factor)| *factor != 0)
}

/// The numbers of the counters of a loop.
pub fn counters(function: &Function, op: Op) -> Vec<usize> {
    let arguments = mlir::entry(op).map(mlir::arguments).unwrap_or_default();
    let number = |value| function.text.counters.iter().position(|counter| *counter == value);
    arguments.into_iter().filter_map(number).collect()
}

/// Whether threads share the iterations of a loop.
pub fn in_space<'c>(function: &Function<'c, '_>, launch: &Launch<'c>, op: Op<'c>) -> bool {
    let counters = counters(function, op);
    !counters.is_empty() && counters.iter().all(|at| launch.axes.contains_key(at))
}

/// What a launch can share, or why it can share nothing.
///
/// # Errors
/// The reason, as a clause.
pub fn of<'c>(function: &Function<'c, '_>, launch: &Launch<'c>) -> Result<Tileable<'c>, String> {
    let [root] = launch.ops[..] else { return Err("it is no loop".to_owned()) };
    let (around, body) = perfect(function, launch, root)?;
    let space: Vec<usize> = around.iter().flat_map(|op| counters(function, *op)).collect();
    if launch.axes.len() != space.len() || launch.axes.is_empty() {
        return Err("its loops in space are no perfect nest".to_owned());
    }
    let constants = tiled::nest_constants(root).map_err(|error| error.to_string())?;
    let steps = |at: &usize| function.nest.loops.get(*at).map_or(0, |found| found.step);
    if space.iter().any(|at| steps(at) != 1) {
        return Err("a loop in space has a step".to_owned());
    }
    let children: Vec<Op> = mlir::operations(body).into_iter().filter(|op| is_loop(*op)).collect();
    let mut reason = "it has no loop in time".to_owned();
    let mut loops = Vec::new();
    for op in children {
        match time_loop(function, launch, (&space, &constants), op) {
            Ok(found) => loops.push(found),
            Err(why) => reason = why,
        }
    }
    if loops.is_empty() { Err(reason) } else { Ok(Tileable { around, space, body, loops }) }
}

/// The loops in space from the outermost on, as far as each is alone in its block, and the body of
/// the last.
fn perfect<'c>(
    function: &Function<'c, '_>,
    launch: &Launch<'c>,
    root: Op<'c>,
) -> Result<(Vec<Op<'c>>, Blk<'c>), String> {
    let in_space = |op| in_space(function, launch, op);
    if !in_space(root) {
        return Err("its outermost loop is in time".to_owned());
    }
    let mut around = vec![root];
    let mut op = root;
    loop {
        let body = mlir::entry(op).ok_or_else(|| "a loop has no body".to_owned())?;
        let inner = mlir::operations(body).into_iter();
        let (loops, others): (Vec<Op>, Vec<Op>) = inner.partition(|op| is_loop(*op));
        let plain = |op: &Op| is_total(*op) || mlir::name(*op) == "affine.yield";
        match loops[..] {
            [next] if in_space(next) && others.iter().all(plain) => {
                around.push(next);
                op = next;
            }
            _ => return Ok((around, body)),
        }
    }
}

fn time_loop<'c>(
    function: &Function<'c, '_>,
    launch: &Launch<'c>,
    (space, constants): (&[usize], &[&str]),
    op: Op<'c>,
) -> Result<TimeLoop<'c>, String> {
    let Function { nest, .. } = function;
    let inside: Vec<Op> = mlir::walk(op);
    let loops = inside.iter().copied().filter(|op| is_loop(*op));
    let numbers: Vec<usize> = loops.clone().flat_map(|op| counters(function, op)).collect();
    let (Some((at, inner)), true) =
        (numbers.split_first(), loops.clone().all(|op| mlir::name(op) == "affine.for"))
    else {
        return Err("a loop in time is parallel".to_owned());
    };
    let found = nest.loops.get(*at).ok_or_else(|| "a loop has no number".to_owned())?;
    if found.step != 1 {
        return Err("its loop in time has a step".to_owned());
    }
    let uneven = |bound: &Linear| space.iter().any(|at| factor(nest, bound, *at) != 0);
    if found.bounds.iter().any(uneven) {
        let reason = "the bounds of its loop in time differ between threads, which would not all \
                      reach its barriers";
        return Err(reason.to_owned());
    }
    let within: BTreeMap<usize, _> =
        inner.iter().map(|at| (*at, constant_range(nest, *at))).collect();
    let mut homes = Homes::new(function, launch, *at, &within, &inside);
    homes.constants = constants;
    let places = function.text.accesses.iter().enumerate();
    for (place, _) in places.filter(|(_, access)| inside.contains(&access.op)) {
        homes.settle(place);
    }
    let Homes { homes, registers, copies, .. } = homes;
    let constant = homes.values().any(|home| *home == Home::Constant);
    if copies.is_empty() && !(constant && registers.iter().any(|register| register.stored)) {
        return Err("no reference of its loop in time is worth a copy".to_owned());
    }
    let known = |op: &Op| {
        let plain = ["affine.load", "affine.store", "affine.for", "affine.yield"];
        plain.contains(&mlir::name(*op)) || is_total(*op)
    };
    let uniform = within.values().all(|range| range.is_some_and(|(first, last)| first <= last))
        && homes.values().all(|home| *home != Home::Memory)
        && inside.iter().all(known);
    Ok(TimeLoop { op, at: *at, homes, registers, copies, within, uniform })
}

/// The values from the first to the last one of a counter with constant bounds.
pub fn constant_count(nest: &Nest, at: usize) -> Option<i64> {
    let (first, last) = constant_range(nest, at)?;
    last.checked_sub(first)?.checked_add(1)
}

/// The first and the last value of a counter with constant bounds.
fn constant_range(nest: &Nest, at: usize) -> Option<(i64, i64)> {
    let (mut first, mut last) = (i64::MIN, i64::MAX);
    for bound in &nest.loops.get(at)?.bounds {
        let own = factor(nest, bound, at);
        let others = bound.coefficients.iter().enumerate();
        if others.into_iter().any(|(place, factor)| place != nest.sizes + at && *factor != 0) {
            return None;
        }
        match own {
            1 => first = first.max(bound.constant.checked_neg()?),
            -1 => last = last.min(bound.constant),
            _ => return None,
        }
    }
    (first != i64::MIN && last != i64::MAX).then_some((first, last))
}

/// The homes of the accesses of a loop in time.
struct Homes<'f, 'c, 'p> {
    function: &'f Function<'c, 'p>,
    launch: &'f Launch<'c>,
    at: usize,
    within: &'f BTreeMap<usize, Option<(i64, i64)>>,
    /// Accesses of the loop, by their places in the text.
    own: Vec<usize>,
    /// Names of the arrays in constant memory.
    constants: &'f [&'f str],
    /// Arrays that the launch stores to.
    stored: BTreeSet<usize>,
    homes: BTreeMap<usize, Home>,
    registers: Vec<Register>,
    copies: Vec<Copy>,
}

impl<'f, 'c, 'p> Homes<'f, 'c, 'p> {
    fn new(
        function: &'f Function<'c, 'p>,
        launch: &'f Launch<'c>,
        at: usize,
        within: &'f BTreeMap<usize, Option<(i64, i64)>>,
        inside: &[Op<'c>],
    ) -> Self {
        let all: Vec<Op> = launch.ops.iter().flat_map(|op| mlir::walk(*op)).collect();
        let accesses = || function.text.accesses.iter().enumerate();
        let own = accesses().filter(|(_, access)| inside.contains(&access.op));
        let own = own.map(|(place, _)| place).collect();
        let stores = accesses().filter(|(_, access)| access.reference.write);
        let stores = stores.filter(|(_, access)| all.contains(&access.op));
        let stored = stores.map(|(_, access)| access.reference.array).collect();
        let (homes, registers, copies) = (BTreeMap::new(), Vec::new(), Vec::new());
        let constants = &[];
        Self { function, launch, at, within, own, constants, stored, homes, registers, copies }
    }

    fn reference(&self, place: usize) -> Option<&'f Reference> {
        self.function.text.accesses.get(place).map(|access| &access.reference)
    }

    /// Whether an access happens in each iteration of the loop, always to the same element.
    fn is_still(&self, place: usize) -> bool {
        let Some(access) = self.function.text.accesses.get(place) else { return false };
        let moves = |at: usize| {
            let indices = &access.reference.indices;
            indices.iter().any(|index| factor(self.function.nest, index, at) != 0)
        };
        let runs = |at: &usize| match self.within.get(at) {
            Some(range) => range.is_some_and(|(first, last)| first <= last),
            None => true,
        };
        !moves(self.at) && !self.within.keys().any(|at| moves(*at)) && access.loops.iter().all(runs)
    }

    fn settle(&mut self, place: usize) {
        let Some(reference) = self.reference(place) else { return };
        let same_array = |other: &&usize| {
            self.reference(**other).is_some_and(|other| other.array == reference.array)
        };
        let others: Vec<usize> = self.own.iter().filter(same_array).copied().collect();
        let written = |other: &usize| self.reference(*other).is_some_and(|other| other.write);
        let stored = others.iter().any(written);
        let alike = |other: &usize| {
            self.is_still(*other)
                && self.reference(*other).is_some_and(|other| other.indices == reference.indices)
        };
        let home = match stored {
            true if others.iter().all(alike) => self.register(place, true),
            false if self.is_still(place) => self.register(place, false),
            false => self.copied(place, reference),
            true => Home::Memory,
        };
        self.homes.insert(place, home);
    }

    /// Whether a reference reads constant memory. Its index depends on loops in time with constant
    /// bounds alone, and lies in the array, so that threads without work may read it as well.
    fn is_constant(&self, reference: &Reference) -> bool {
        let Function { nest, text, declared, .. } = self.function;
        let array = text.arrays.get(reference.array).and_then(|memref| declared.array(*memref));
        let Some((name, extents)) = array else { return false };
        let inside = |(index, extent): (&Linear, &Extent)| {
            let (mut first, mut last) = (i128::from(index.constant), i128::from(index.constant));
            let sizes = index.coefficients.iter().take(nest.sizes);
            for (at, factor) in factors(nest, index) {
                let own = self.within.contains_key(&at) || at == self.at;
                let range = constant_range(nest, at).filter(|(low, high)| own && low <= high)?;
                let ends = [range.0, range.1].map(|end| i128::from(end) * i128::from(factor));
                first += ends.into_iter().min()?;
                last += ends.into_iter().max()?;
            }
            let Extent::Static(cells) = extent else { return None };
            let fixed = sizes.into_iter().all(|factor| *factor == 0);
            (fixed && first >= 0 && last < i128::from(*cells)).then_some(())
        };
        let mut indices = reference.indices.iter().zip(extents);
        self.constants.contains(&name)
            && !self.stored.contains(&reference.array)
            && indices.all(|index| inside(index).is_some())
    }

    fn register(&mut self, place: usize, stored: bool) -> Home {
        let wanted = self.reference(place).map(|at| (at.array, &at.indices));
        let known = self.registers.iter().position(|register| {
            self.reference(register.access).map(|at| (at.array, &at.indices)) == wanted
        });
        Home::Register(known.unwrap_or_else(|| {
            self.registers.push(Register { access: place, stored });
            self.registers.len() - 1
        }))
    }

    fn copied(&mut self, place: usize, reference: &Reference) -> Home {
        let nest = self.function.nest;
        let known = |at: usize| match self.within.get(&at) {
            Some(range) => range.is_some(),
            None => true,
        };
        if self.is_constant(reference) {
            return Home::Constant;
        }
        let marked = self.launch.copied.contains(&reference.array) || self.launch.axis_count() == 1;
        let marked = marked && !self.stored.contains(&reference.array);
        let mut all = reference.indices.iter().flat_map(|index| factors(nest, index));
        if !marked || !all.all(|(at, _)| known(at)) {
            return Home::Memory;
        }
        let alike = |copy: &Copy| {
            copy.array == reference.array
                && copy.indices.iter().zip(&reference.indices).all(|(a, b)| {
                    a.coefficients == b.coefficients && a.constant.abs_diff(b.constant) <= FARTHEST
                })
        };
        let number = self.copies.iter().position(alike).unwrap_or_else(|| {
            let (indices, spread) = (reference.indices.clone(), vec![0; reference.indices.len()]);
            self.copies.push(Copy { access: place, array: reference.array, indices, spread });
            self.copies.len() - 1
        });
        let mut moved = Vec::new();
        if let Some(copy) = self.copies.get_mut(number) {
            for ((own, spread), index) in
                copy.indices.iter_mut().zip(&mut copy.spread).zip(&reference.indices)
            {
                let lower = own.constant.min(index.constant);
                moved.push(own.constant - lower);
                *spread = (own.constant + *spread).max(index.constant) - lower;
                own.constant = lower;
            }
        }
        // References before this one lie farther from the new beginning.
        for home in self.homes.values_mut() {
            if let Home::Copied(other, shifts) = home
                && *other == number
            {
                shifts.iter_mut().zip(&moved).for_each(|(shift, more)| *shift += more);
            }
        }
        let shift = |(at, index): (usize, &Linear)| {
            let first = self.copies.get(number).and_then(|copy| copy.indices.get(at));
            first.map_or(0, |first| index.constant - first.constant)
        };
        Home::Copied(number, reference.indices.iter().enumerate().map(shift).collect())
    }
}

/// References that differ by more have copies of their own.
const FARTHEST: u64 = 64;

#[cfg(test)]
mod tests;
