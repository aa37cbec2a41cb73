//! What a launch loads from global memory and stores there, in bytes.
//!
//! Source: Baskaran et al., A Compiler Framework for Optimization of Affine Loop Nests for General
//! Purpose Computations on GPUs, section 5.6. The loads and stores of a tile are the integer points
//! of what its references access, and those of a launch are their sum over the tiles. Here a tile
//! is what a block computes, and a reference is an access of the lowered kernel. Its points are
//! those of its iteration space ([`iteration_space`](super::iteration_space)): the threads of the
//! block times the iterations of the loops around it, where the conditions hold. A cell that
//! stays in registers or in shared memory is accessed once, a cell that is loaded twice counts
//! twice. Each point counts the bytes of its elements, whatever sectors and caches make of them.
//!
//! Blocks with equal conditions move equal bytes. The analysis does not group them; it counts each
//! block. Where a caller limits the work, some that lie evenly among all stand for the rest.
//!
//! A space with costs also tells what the warps execute: see [`Executed`].

mod executed;

pub use executed::Executed;

use super::iteration_space::{Body, Branch, Carried, Loop, Moved, Place, Position, Space, Step};
use executed::{Ledger, TURNS};
use num_integer::gcd;
use stencil_runtime::device::WARP;

/// Blocks of a launch that are counted at least.
const FEWEST_BLOCKS: u64 = 4;

/// A launch of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extents<'a> {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// The kernel's arguments: those that are integers, in order.
    pub arguments: &'a [Option<i64>],
}

/// What a launch moves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    /// Bytes of all blocks.
    pub moved: Moved,
    /// Whether some blocks stood for others.
    pub is_estimate: bool,
    /// Integers that were computed for it.
    pub work: u64,
    /// What the warps of all blocks execute, where the space has costs.
    pub executed: Executed,
}

/// Counts what a launch moves. Once so many integers are computed, the blocks that were counted
/// stand for the others.
///
/// Both sides of a condition that depends on data are looked at, and the larger one counts. A loop
/// whose bounds depend on data counts as one iteration.
pub fn of(space: &Space, extents: &Extents, most_work: u64) -> Counted {
    let all: u64 = extents.grid.iter().map(|blocks| u64::from(*blocks)).product();
    let stride = stride(all);
    let (mut moved, mut work, mut counted) = (Moved::default(), 0, 0);
    let (mut some, mut executed) = (Executed::default(), Executed::default());
    while counted < all && (work < most_work || counted < FEWEST_BLOCKS) {
        let number = (u128::from(counted) * u128::from(stride) % u128::from(all)) as u64;
        let mut block = Block::new(space, extents, number);
        let total = block.body(&space.body, &Times::Same(1));
        moved = sum(moved, total);
        work += block.work;
        if let Some(ledger) = block.ledger {
            some.add(&ledger.close(), 1.0);
        }
        counted += 1;
    }
    let scaled = |bytes: u64| (bytes as f64 * all as f64 / counted.max(1) as f64) as u64;
    let is_estimate = counted < all;
    if is_estimate {
        moved = Moved { loaded: scaled(moved.loaded), stored: scaled(moved.stored) };
    }
    executed.add(&some, all as f64 / counted.max(1) as f64);
    Counted { moved, is_estimate, work, executed }
}

/// A distance that leads through all numbers below `all`, evenly wherever it ends: near the golden
/// section, and without a common factor.
fn stride(all: u64) -> u64 {
    let near = (all as f64 * 0.618_033_988_75) as u64;
    (near.max(1)..=all.max(1)).find(|stride| gcd(all, *stride) == 1).unwrap_or(1)
}

/// An integer of each thread of a block.
#[derive(Clone, Debug, Default)]
enum Value {
    /// It depends on data.
    #[default]
    Unknown,
    /// All threads have the same.
    Same(i64),
    /// One for each thread.
    Each(Vec<i64>),
}

/// How often each thread of a block runs a region.
#[derive(Clone, Debug)]
enum Times {
    Same(u64),
    Each(Vec<u64>),
}

impl Times {
    fn of(&self, thread: usize) -> u64 {
        match self {
            Self::Same(times) => *times,
            Self::Each(all) => all.get(thread).copied().unwrap_or(0),
        }
    }

    /// How often all threads together do.
    fn total(&self, threads: usize) -> u64 {
        match self {
            Self::Same(times) => times.saturating_mul(threads as u64),
            Self::Each(all) => all.iter().fold(0, |sum, times| sum.saturating_add(*times)),
        }
    }

    /// The same where a thread runs it `by` times as often.
    fn times(&self, threads: usize, by: impl Fn(usize) -> u64) -> Self {
        Self::Each((0..threads).map(|thread| self.of(thread).saturating_mul(by(thread))).collect())
    }
}

/// A block whose accesses are counted.
struct Block<'e> {
    extents: &'e Extents<'e>,
    /// Its number in x, y, z.
    number: [u64; 3],
    threads: usize,
    values: Vec<Value>,
    /// Integers computed.
    work: u64,
    /// What the warps execute, where the space has costs.
    ledger: Option<Ledger>,
}

impl<'e> Block<'e> {
    fn new(space: &Space, extents: &'e Extents<'e>, number: u64) -> Self {
        let [x, y, _] = extents.grid.map(|blocks| u64::from(blocks.max(1)));
        let threads = extents.block.iter().map(|threads| *threads as usize).product();
        let mut values = vec![Value::Unknown; space.places];
        for (argument, place) in &space.arguments {
            let value = extents.arguments.get(*argument).copied().flatten();
            if let (Some(value), Some(slot)) = (value, values.get_mut(place.0)) {
                *slot = Value::Same(value);
            }
        }
        let number = [number % x, number / x % y, number / x / y];
        let ledger = space.has_costs.then(|| Ledger::new(threads));
        Self { extents, number, threads, values, work: 0, ledger }
    }

    fn at(&self, place: Place) -> &Value {
        self.values.get(place.0).unwrap_or(&Value::Unknown)
    }

    /// The value in a thread.
    fn in_thread(&self, place: Place, thread: usize) -> Option<i64> {
        match self.at(place) {
            Value::Unknown => None,
            Value::Same(value) => Some(*value),
            Value::Each(all) => all.get(thread).copied(),
        }
    }

    fn set(&mut self, place: Place, value: Value) {
        if let Some(slot) = self.values.get_mut(place.0) {
            *slot = value;
        }
    }

    /// Runs a region, and counts what the threads move.
    fn body(&mut self, body: &Body, times: &Times) -> Moved {
        let runs = times.total(self.threads);
        let bytes = |bytes: u64| bytes.saturating_mul(runs);
        let Moved { loaded, stored } = body.moved;
        let mut moved = Moved { loaded: bytes(loaded), stored: bytes(stored) };
        if body.accesses.is_empty() {
            self.execute(body, times);
        }
        for step in &body.steps {
            self.work += 1;
            match step {
                Step::Constant(to, value) => self.set(*to, Value::Same(*value)),
                Step::Position(to, position) => {
                    let value = self.position(*position);
                    self.set(*to, value);
                }
                Step::Same(to, from) => {
                    let value = self.at(*from).clone();
                    self.set(*to, value);
                }
                Step::Binary(to, by, operands) => {
                    let value = self.join(operands, times, |[a, b]| by(a, b));
                    self.set(*to, value);
                }
                Step::Select(to, operands) => {
                    let value = self.select(operands, times);
                    self.set(*to, value);
                }
                Step::Branch(branch) => moved = sum(moved, self.branch(branch, times)),
                Step::Loop(repeat) => moved = sum(moved, self.repeat(repeat, times)),
            }
        }
        // Their places are known by now.
        if !body.accesses.is_empty() {
            self.execute(body, times);
        }
        moved
    }

    fn position(&mut self, position: Position) -> Value {
        let [x, y, _] = self.extents.block.map(|threads| i64::from(threads.max(1)));
        let of = |by: &dyn Fn(i64) -> i64| {
            Value::Each((0..self.threads).map(|thread| by(thread as i64)).collect())
        };
        let along = |extents: [u32; 3], axis: usize| {
            Value::Same(extents.get(axis).copied().unwrap_or(1).into())
        };
        match position {
            Position::Thread(0) => of(&|thread| thread % x),
            Position::Thread(1) => of(&|thread| thread / x % y),
            Position::Thread(_) => of(&|thread| thread / x / y),
            Position::Lane => of(&|thread| thread % i64::from(WARP)),
            Position::Warp => of(&|thread| thread / i64::from(WARP)),
            Position::Block(axis) => {
                Value::Same(self.number.get(axis).copied().unwrap_or(0).cast_signed())
            }
            Position::Blocks(axis) => along(self.extents.grid, axis),
            Position::Threads(axis) => along(self.extents.block, axis),
        }
    }

    /// A function of integers in each thread; unknown if a thread that gets here has no result.
    fn join<const N: usize>(
        &mut self,
        operands: &[Place; N],
        times: &Times,
        by: impl Fn([i64; N]) -> Option<i64>,
    ) -> Value {
        let mut uniform = true;
        for operand in operands {
            match self.at(*operand) {
                Value::Unknown => return Value::Unknown,
                Value::Same(_) => {}
                Value::Each(_) => uniform = false,
            }
        }
        let in_thread = |thread: usize| {
            by(operands.map(|operand| self.in_thread(operand, thread).unwrap_or(0)))
        };
        if uniform {
            return in_thread(0).map_or(Value::Unknown, Value::Same);
        }
        let mut all = Vec::with_capacity(self.threads);
        for thread in 0..self.threads {
            match in_thread(thread) {
                Some(value) => all.push(value),
                None if times.of(thread) == 0 => all.push(0),
                None => return Value::Unknown,
            }
        }
        self.work += self.threads as u64;
        Value::Each(all)
    }

    /// One of two values, of which only the one that is taken must be known.
    fn select(&mut self, operands: &[Place; 3], times: &Times) -> Value {
        let [condition, yes, no] = *operands;
        match self.at(condition) {
            Value::Unknown => Value::Unknown,
            Value::Same(chosen) => self.at(if *chosen != 0 { yes } else { no }).clone(),
            Value::Each(_) => self.join(operands, times, |[chosen, yes, no]| {
                Some(if chosen != 0 { yes } else { no })
            }),
        }
    }

    fn branch(&mut self, branch: &Branch, times: &Times) -> Moved {
        let [yes, no] = &branch.sides;
        let (taken, sides) = match self.at(branch.condition) {
            Value::Unknown => {
                let both = [self.body(yes, times), self.body(no, times)];
                branch.results.iter().for_each(|(to, _)| self.set(*to, Value::Unknown));
                let [yes, no] = both;
                let bytes = |moved: Moved| moved.loaded.saturating_add(moved.stored);
                return if bytes(yes) < bytes(no) { no } else { yes };
            }
            Value::Same(0) => (vec![false], vec![(no, times.clone())]),
            Value::Same(_) => (vec![true], vec![(yes, times.clone())]),
            Value::Each(all) => {
                let all: Vec<bool> = all.iter().map(|value| *value != 0).collect();
                let side = |taken: bool| {
                    let runs = |thread: usize| u64::from(all.get(thread) == Some(&taken));
                    times.times(self.threads, runs)
                };
                let sides = vec![(yes, side(true)), (no, side(false))];
                (all, sides)
            }
        };
        self.meet(&taken, times);
        let mut moved = Moved::default();
        for (side, times) in sides {
            if times.total(self.threads) > 0 {
                moved = sum(moved, self.body(side, &times));
            }
        }
        for (to, [yes, no]) in &branch.results {
            let value = match taken.as_slice() {
                [all] => self.at(if *all { *yes } else { *no }).clone(),
                _ => self.merged(&taken, *yes, *no),
            };
            self.set(*to, value);
        }
        moved
    }

    /// The first value in the threads that took it, the other one elsewhere.
    fn merged(&self, taken: &[bool], yes: Place, no: Place) -> Value {
        let side =
            |(thread, taken): (usize, &bool)| self.in_thread(if *taken { yes } else { no }, thread);
        taken
            .iter()
            .enumerate()
            .map(side)
            .collect::<Option<_>>()
            .map_or(Value::Unknown, Value::Each)
    }

    /// Iterations of a loop in each thread, and of the thread with the most.
    fn trips(&mut self, repeat: &Loop, times: &Times) -> (Value, u64) {
        let trips = self.join(&repeat.bounds, times, |[lower, upper, step]| {
            let distance = upper.checked_sub(lower)?.max(0);
            Some(distance.checked_add(step.checked_sub(1)?)? / step.max(1))
        });
        let most = match &trips {
            Value::Unknown => 1,
            Value::Same(trips) => *trips,
            Value::Each(all) => {
                let active = all.iter().enumerate().filter(|(thread, _)| times.of(*thread) > 0);
                active.map(|(_, trips)| *trips).max().unwrap_or(0)
            }
        };
        (trips, most.max(0).unsigned_abs())
    }

    fn repeat(&mut self, repeat: &Loop, times: &Times) -> Moved {
        let (trips, most) = self.trips(repeat, times);
        let mut moved = Moved::default();
        for carried in &repeat.carried {
            let first = self.at(carried.first).clone();
            self.set(carried.argument, first);
        }
        if repeat.counter.is_none() && repeat.carried.is_empty() {
            // All iterations are alike.
            let all = match &trips {
                Value::Unknown => times.clone(),
                Value::Same(trips) => match times {
                    Times::Same(times) => Times::Same(times * trips.unsigned_abs()),
                    Times::Each(_) => times.times(self.threads, |_| trips.unsigned_abs()),
                },
                Value::Each(all) => times.times(self.threads, |thread| {
                    all.get(thread).map_or(0, |trips| trips.unsigned_abs())
                }),
            };
            return if most == 0 { moved } else { self.body(&repeat.body, &all) };
        }
        let [lower, _, step] = repeat.bounds;
        let sampled = self.ledger.is_some() && repeat.carried.is_empty() && most > TURNS;
        let turns = if sampled { TURNS } else { most };
        let weight = if sampled { most as f64 / turns as f64 } else { 1.0 };
        self.weigh(weight);
        for turn in 0..turns {
            // The middle of the iterations that it stands for.
            let turn = (((turn as f64 + 0.5) * weight) as u64).cast_signed();
            let inside = match &trips {
                Value::Each(all) => times.times(self.threads, |thread| {
                    u64::from(all.get(thread).is_some_and(|trips| turn < *trips))
                }),
                _ => times.clone(),
            };
            if let Some(counter) = repeat.counter {
                let value = self.join(&[lower, step], times, |[lower, step]| {
                    lower.checked_add(step.checked_mul(turn)?)
                });
                self.set(counter, value);
            }
            moved = sum(moved, self.body(&repeat.body, &inside));
            let next: Vec<_> =
                repeat.carried.iter().map(|carried| self.handed(carried, &trips, turn)).collect();
            for (carried, value) in repeat.carried.iter().zip(next) {
                self.set(carried.argument, value);
            }
        }
        self.weigh(1.0 / weight);
        for carried in &repeat.carried {
            let last = self.at(carried.argument).clone();
            self.set(carried.result, last);
        }
        moved
    }

    /// What an iteration hands on: threads that are done keep what they have.
    fn handed(&self, carried: &Carried, trips: &Value, turn: i64) -> Value {
        match trips {
            Value::Each(all) => {
                let inside: Vec<_> = all.iter().map(|trips| turn < *trips).collect();
                self.merged(&inside, carried.next, carried.argument)
            }
            _ => self.at(carried.next).clone(),
        }
    }
}

fn sum(a: Moved, b: Moved) -> Moved {
    Moved { loaded: a.loaded.saturating_add(b.loaded), stored: a.stored.saturating_add(b.stored) }
}

#[cfg(test)]
mod tests;
