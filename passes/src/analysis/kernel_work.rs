//! Counts what a gpu-level kernel executes, by resource. One count serves all strategies.
//!
//! Of a kernel with two versions of its body the first is counted, which runs without checks: most
//! tiles run it. Where a condition on places chooses between values, each side counts as often as
//! warps take it ([`branch_shares`](super::branch_shares)). Arithmetic counts in the loop on which
//! it depends, since LLVM moves it there. [`operation_cost`] has what an operation costs.

use super::branch_shares::Shares;
use super::lane_values;
use super::operation_cost::{self, Cost, Costs, LOOP};
use melior::ir::r#type::MemRefType;
use melior::ir::{ShapedTypeLike, ValueLike};
use std::cell::RefCell;
use std::collections::BTreeMap;
use stencil_dialects::attribute;
use stencil_dialects::mlir::{self, Blk, Op, Val};
use stencil_dialects::tiled::Launch;
use stencil_runtime::device::{Device, WARP};
use stencil_runtime::model::Work;

/// Instructions of a block's start: its tile's place, and whether it lies at a rim.
pub const START: f64 = 30.0;
/// Registers of a thread where the kernel states no limit: ptxas chose 13 to 26 for kernels of the
/// strategy naive.
const REGISTERS: i64 = 32;

/// How often something runs: on average over the threads, and in the thread that it keeps longest.
#[derive(Clone, Copy)]
struct Times {
    mean: f64,
    longest: f64,
}

const ONCE: Times = Times { mean: 1.0, longest: 1.0 };

impl Times {
    fn by(self, mean: f64, longest: f64) -> Self {
        Self { mean: self.mean * mean, longest: self.longest * longest }
    }
}

/// How often the loops around an operation run their bodies, the outermost first; the first number
/// is that of the kernel.
type Nest = Vec<Times>;

/// Counts what a block of a kernel does in a launch of so many blocks. `size` tells the kernel's
/// arguments that are sizes. Blocks, bytes of device memory and redundancy do not stand in the code
/// and are left at zero.
pub fn of(
    launch: &Launch,
    device: &Device,
    blocks: f64,
    size: &dyn Fn(usize) -> Option<i64>,
) -> Work {
    let costs = Costs::of(launch.op);
    let values = Values {
        shares: Shares::of(launch, blocks, size, &costs.defined),
        costs: &costs,
        levels: RefCell::default(),
    };
    let mut count = Cost { instructions: START, ..Cost::default() };
    if let Some(entry) = mlir::entry(launch.op) {
        values.block(entry, &vec![ONCE], &mut count);
    }
    let fixed = resources(launch, device);
    let lanes = f64::from(fixed.threads);
    Work {
        single: count.single * lanes,
        double: count.double * lanes,
        integers: count.integers * lanes,
        instructions: count.instructions * lanes / f64::from(WARP),
        shuffles: count.shuffles * lanes / f64::from(WARP),
        exchanged: count.exchanged * lanes,
        cached: count.cached * lanes,
        barriers: count.barriers,
        fetches: count.fetches,
        rounds: count.rounds,
        waits: count.waits,
        serial: count.serial,
        ..fixed
    }
}

/// The threads, registers and shared memory of a block of a kernel.
pub fn resources(launch: &Launch, device: &Device) -> Work {
    let threads = launch.block.iter().product::<i64>().max(1);
    let number = |name| mlir::attribute(launch.op, name).and_then(attribute::as_integer);
    // Room for some blocks on a multiprocessor is room that ptxas uses.
    let shared_out = |blocks: i64| i64::from(device.registers) / (blocks.max(1) * threads);
    let registers =
        number("nvvm.maxnreg").or(number("nvvm.minctasm").map(shared_out)).unwrap_or(REGISTERS);
    let arguments = mlir::entry(launch.op).map(mlir::arguments).unwrap_or_default();
    let fixed: i64 =
        arguments.iter().skip(launch.bindings.len()).map(|buffer| shared_bytes(*buffer)).sum();
    Work {
        threads: u32::try_from(threads).unwrap_or(u32::MAX),
        lacking: launch.lacking.max(0) as f64,
        registers: u32::try_from(registers).unwrap_or(u32::MAX),
        shared: u64::try_from(fixed.saturating_add(launch.dynamic_shared)).unwrap_or(0),
        ..Work::default()
    }
}

/// Bytes of a shared buffer; 0 where they are not known.
pub fn shared_bytes(buffer: Val) -> i64 {
    let ty = buffer.r#type();
    let Ok(memref) = MemRefType::try_from(ty) else { return 0 };
    let bits = i64::from(mlir::bit_width(memref.element()).unwrap_or(0));
    mlir::static_cells(ty).unwrap_or(0).saturating_mul(bits) / 8
}

/// A value plus a constant, or a constant alone.
type Sum<'c> = (Option<Val<'c>>, i64);

/// The operations of a kernel.
struct Values<'a, 'c> {
    costs: &'a Costs<'c>,
    shares: Shares<'a, 'c>,
    /// The loops in which a value is computed, by [`mlir::key`]; none for the kernel's arguments.
    levels: RefCell<BTreeMap<usize, usize>>,
}

impl<'c> Values<'_, 'c> {
    fn block(&self, block: Blk<'c>, nest: &Nest, count: &mut Cost) {
        for op in mlir::operations(block) {
            let level = self.level(op, nest.len() - 1);
            for result in mlir::results(op) {
                self.levels.borrow_mut().insert(mlir::key(result), level);
            }
            self.operation(op, level, nest, count);
        }
    }

    /// How many of the loops around an operation it depends on.
    fn level(&self, op: Op<'c>, inside: usize) -> usize {
        let name = mlir::name(op);
        if !name.starts_with("arith.") && !name.starts_with("math.") {
            return inside;
        }
        let levels = self.levels.borrow();
        let of = |value: &Val| levels.get(&mlir::key(*value)).copied().unwrap_or(0);
        mlir::operands(op).iter().map(of).max().unwrap_or(0).min(inside)
    }

    fn operation(&self, op: Op<'c>, level: usize, nest: &Nest, count: &mut Cost) {
        let all = nest.get(level).or(nest.last()).copied().unwrap_or(ONCE);
        match mlir::name(op) {
            "scf.for" => self.repeated(op, nest, count),
            "scf.if" => self.chosen(op, nest, count),
            "gpu.barrier" => {
                count.add(&Cost { barriers: 0.0, ..self.costs.cost(op) }, all.mean);
                count.barriers += all.longest;
            }
            _ => count.add(&self.costs.cost(op), all.mean),
        }
    }

    fn repeated(&self, op: Op<'c>, nest: &Nest, count: &mut Cost) {
        let trips = self.trips(op);
        let all = nest.last().copied().unwrap_or(ONCE).by(trips.mean, trips.longest);
        count.instructions += all.mean * LOOP;
        let bodies = mlir::blocks(op, 0);
        let body = || bodies.iter().flat_map(|body| mlir::operations(*body));
        let mut waits = false;
        if body().all(|op| mlir::name(op) != "scf.for") {
            if body().any(|op| self.copies(op)) {
                count.fetches += all.longest;
            } else {
                count.rounds += all.longest;
                waits = body().flat_map(mlir::walk).any(operation_cost::loads_device_memory);
            }
        }
        let before = count.barriers;
        let nest = [nest.as_slice(), &[all]].concat();
        for body in bodies {
            for argument in mlir::arguments(body) {
                self.levels.borrow_mut().insert(mlir::key(argument), nest.len() - 1);
            }
            self.block(body, &nest, count);
        }
        // A barrier ends each plane of an iteration that has several.
        if waits {
            count.waits += all.longest.max(count.barriers - before);
        }
    }

    /// A choice of values runs both sides for some lanes, as far as its condition depends on more
    /// than places; a choice of code is one between a version without checks and one with.
    fn chosen(&self, op: Op<'c>, nest: &Nest, count: &mut Cost) {
        let regions = [0, 1].map(|region| mlir::blocks(op, region));
        let inside = regions.iter().flatten().flat_map(|body| mlir::operations(*body));
        let loops = inside.into_iter().any(|op| mlir::name(op) == "scf.for");
        count.instructions += nest.last().map_or(1.0, |times| times.mean);
        let condition = mlir::operands(op).first().copied();
        let sides = match mlir::results(op).is_empty() || loops {
            true => [1.0, 0.0],
            false => condition.and_then(|one| self.shares.sides(one)).unwrap_or([1.0, 1.0]),
        };
        for (bodies, part) in regions.into_iter().zip(sides).filter(|(_, part)| *part > 0.0) {
            let nest = nest.iter().map(|times| times.by(part, part)).collect();
            bodies.into_iter().for_each(|body| self.block(body, &nest, count));
        }
    }

    /// Whether an operation loads a cell of device memory that another stores at once: the loop
    /// around them waits for it.
    fn copies(&self, op: Op<'c>) -> bool {
        let store = |user: &Op<'c>| mlir::name(*user) == "memref.store";
        let stored = |value: &Val<'c>| {
            self.costs.users.get(&mlir::key(*value)).is_some_and(|users| users.iter().any(store))
        };
        mlir::name(op) == "memref.load"
            && operation_cost::loads_device_memory(op)
            && mlir::results(op).first().is_some_and(stored)
    }

    /// Iterations of a loop: one where they can't be told.
    fn trips(&self, op: Op<'c>) -> Times {
        let operands = mlir::operands(op);
        let [lower, upper, step, ..] = operands.as_slice() else { return ONCE };
        let step = self.places(*step).first().map_or(1, |(_, step)| *step).max(1) as f64;
        let (lowers, uppers) = (self.places(*lower), self.places(*upper));
        if let ([(from, _)], [(None, last)]) = (lowers.as_slice(), uppers.as_slice())
            && let Some(axis) = self.thread_axis(*from)
        {
            // Threads share the iterations; along x, warps run on as long as one of their lanes
            // does.
            let cells = *last as f64;
            let warp = f64::from(WARP);
            let active = if axis == "x" { (cells / warp).ceil() * warp } else { cells };
            return Times { mean: active / step, longest: (cells / step).ceil() };
        }
        let pairs = lowers.iter().flat_map(|lower| uppers.iter().map(move |upper| (lower, upper)));
        let same =
            |((from, _), (to, _)): &(&Sum<'c>, &Sum<'c>)| from.map(mlir::key) == to.map(mlir::key);
        // Of two constants one is a rim's.
        let mut pairs: Vec<_> = pairs.filter(same).collect();
        pairs.sort_by_key(|((from, _), _)| from.is_none());
        pairs.first().map_or(ONCE, |((_, first), (_, last))| {
            let trips = ((last - first) as f64 / step).ceil().max(0.0);
            Times { mean: trips, longest: trips }
        })
    }

    /// What a value may be, as another plus a constant; no other where it is a constant. The larger
    /// or smaller of two values may be either: rims cut off what most tiles have whole.
    fn places(&self, value: Val<'c>) -> Vec<Sum<'c>> {
        let itself = vec![(Some(value), 0)];
        let Some(op) = self.costs.defined.get(&mlir::key(value)) else { return itself };
        match (mlir::name(*op), mlir::operands(*op).as_slice()) {
            ("arith.constant", _) => {
                match mlir::attribute(*op, "value").and_then(attribute::as_integer) {
                    Some(number) => vec![(None, number)],
                    None => itself,
                }
            }
            ("arith.addi", [left, right]) => {
                let (left, right) = (self.places(*left), self.places(*right));
                let pairs = left.iter().flat_map(|one| right.iter().map(move |other| (one, other)));
                let sums = pairs.filter_map(|((root, a), (other, b))| {
                    let root = if root.is_none() || other.is_none() {
                        root.or(*other)
                    } else {
                        return None;
                    };
                    Some((root, a.saturating_add(*b)))
                });
                let sums: Vec<_> = sums.collect();
                if sums.is_empty() { itself } else { sums }
            }
            ("arith.maxsi" | "arith.minsi", [left, right]) => {
                [self.places(*left), self.places(*right)].concat()
            }
            _ => itself,
        }
    }

    /// The axis of which a value is the thread's number.
    fn thread_axis(&self, value: Option<Val<'c>>) -> Option<&'static str> {
        let op = self.costs.defined.get(&mlir::key(value?))?;
        if mlir::name(*op) != "gpu.thread_id" {
            return None;
        }
        ["x", "y", "z"].get(lane_values::axis(*op)?).copied()
    }
}
