//! Counts what a gpu-level kernel executes, by resource. One count serves all strategies.
//!
//! Of a kernel with two versions of its body the first is counted, which runs without checks: most
//! tiles run it. [`operation_cost`] has what an operation costs.

use super::lane_values;
use super::operation_cost::{self, Cost, Costs, LOOP};
use melior::ir::r#type::MemRefType;
use melior::ir::{ShapedTypeLike, ValueLike};
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
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

/// Counts what a block of a kernel does. What does not stand in the code (blocks, bytes of device
/// memory, redundancy) is left at zero.
pub fn of(launch: &Launch, device: &Device) -> Result<Work, Error> {
    let values = Values(Costs::of(launch.op));
    let mut count = Cost { instructions: START, ..Cost::default() };
    if let Some(entry) = mlir::entry(launch.op) {
        values.block(entry, ONCE, &mut count);
    }
    let threads = launch.block.iter().product::<i64>().max(1);
    let lanes = threads as f64;
    let number = |name| mlir::attribute(launch.op, name).and_then(attribute::as_integer);
    // Room for some blocks on a multiprocessor is room that ptxas uses.
    let shared_out = |blocks: i64| i64::from(device.registers) / (blocks.max(1) * threads);
    let registers =
        number("nvvm.maxnreg").or(number("nvvm.minctasm").map(shared_out)).unwrap_or(REGISTERS);
    let arguments = mlir::entry(launch.op).map(mlir::arguments).unwrap_or_default();
    let fixed: i64 =
        arguments.iter().skip(launch.bindings.len()).map(|buffer| shared_bytes(*buffer)).sum();
    Ok(Work {
        threads: u32::try_from(threads).unwrap_or(u32::MAX),
        lacking: launch.lacking.max(0) as f64,
        registers: u32::try_from(registers).unwrap_or(u32::MAX),
        shared: u64::try_from(fixed.saturating_add(launch.dynamic_shared)).unwrap_or(0),
        single: count.single * lanes,
        double: count.double * lanes,
        integers: count.integers * lanes,
        instructions: count.instructions * lanes / f64::from(WARP),
        shuffles: count.shuffles * lanes / f64::from(WARP),
        exchanged: count.exchanged * lanes,
        barriers: count.barriers,
        fetches: count.fetches,
        rounds: count.rounds,
        serial: count.serial,
        ..Work::default()
    })
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
struct Values<'c>(Costs<'c>);

impl<'c> Values<'c> {
    fn block(&self, block: Blk<'c>, times: Times, count: &mut Cost) {
        for op in mlir::operations(block) {
            self.operation(op, times, count);
        }
    }

    fn operation(&self, op: Op<'c>, all: Times, count: &mut Cost) {
        let times = all.mean;
        match mlir::name(op) {
            "scf.for" => {
                let trips = self.trips(op);
                let all = Times { mean: times * trips.mean, longest: all.longest * trips.longest };
                count.instructions += all.mean * LOOP;
                let bodies = mlir::blocks(op, 0);
                let innermost = |op: &Op<'c>| mlir::name(*op) != "scf.for";
                if bodies.iter().flat_map(|body| mlir::operations(*body)).all(|op| innermost(&op)) {
                    let body = || bodies.iter().flat_map(|body| mlir::operations(*body));
                    let kind = if body().any(|op| self.copies(op)) {
                        &mut count.fetches
                    } else {
                        &mut count.rounds
                    };
                    *kind += all.longest;
                }
                bodies.into_iter().for_each(|body| self.block(body, all, count));
            }
            "scf.if" => {
                // A choice of values runs both sides for some lanes; a choice of code is one
                // between a version without checks and one with.
                let regions = (0..2).flat_map(|region| mlir::blocks(op, region));
                let loops =
                    regions.flat_map(mlir::operations).any(|op| mlir::name(op) == "scf.for");
                let both = !mlir::results(op).is_empty() && !loops;
                count.instructions += times;
                for region in 0..if both { 2 } else { 1 } {
                    mlir::blocks(op, region)
                        .into_iter()
                        .for_each(|body| self.block(body, all, count));
                }
            }
            "gpu.barrier" => {
                count.add(&Cost { barriers: 0.0, ..self.0.cost(op) }, times);
                count.barriers += all.longest;
            }
            _ => count.add(&self.0.cost(op), times),
        }
    }

    /// Whether an operation loads a cell of device memory that another stores at once: the loop
    /// around them waits for it.
    fn copies(&self, op: Op<'c>) -> bool {
        let store = |user: &Op<'c>| mlir::name(*user) == "memref.store";
        let stored = |value: &Val<'c>| {
            self.0.users.get(&mlir::key(*value)).is_some_and(|users| users.iter().any(store))
        };
        mlir::name(op) == "memref.load"
            && mlir::operands(op).first().is_some_and(|buffer| !operation_cost::is_shared(*buffer))
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
        let Some(op) = self.0.defined.get(&mlir::key(value)) else { return itself };
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
        let op = self.0.defined.get(&mlir::key(value?))?;
        if mlir::name(*op) != "gpu.thread_id" {
            return None;
        }
        ["x", "y", "z"].get(lane_values::axis(*op)?).copied()
    }
}
