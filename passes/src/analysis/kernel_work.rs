//! Counts what a gpu-level kernel executes, by resource. One count serves all strategies.
//!
//! Of a kernel with two versions of its body the first is counted, which runs without checks: most
//! tiles run it. The counts are those of the instructions that ptxas makes of an operation, on
//! average; index arithmetic is not counted by itself but as a part of loops and accesses, because
//! most of it goes away.

use super::lane_values;
use melior::ir::r#type::MemRefType;
use melior::ir::{Attribute, ShapedTypeLike, ValueLike};
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::fast_math;
use stencil_dialects::mlir::{self, Blk, Op, Val};
use stencil_dialects::tiled::{CONSTANT_SPACE, Launch};
use stencil_runtime::device::{Device, WARP};
use stencil_runtime::model::Work;

/// Instructions of an iteration of a loop: counter, comparison, branch, and the indices of its
/// body.
const LOOP: f64 = 8.0;
/// Instructions that the address of an access to global memory takes.
const ADDRESS: f64 = 2.0;
/// Instructions of a block's start: its tile's place, and whether it lies at a rim.
const START: f64 = 30.0;
/// Registers of a thread where the kernel states no limit: ptxas chose 13 to 26 for kernels of the
/// strategy naive.
const REGISTERS: i64 = 32;

/// Floating-point instructions on `f32` in whose time an integer instruction runs: of these a
/// multiprocessor runs 64 a clock, and of those 128 (CUDA programming guide, throughput of
/// arithmetic instructions).
const INTEGER: f64 = 2.0;

/// What ptxas makes of an operation for which the device has no instruction: instructions, and
/// those of them that the floating-point units run. Fitted to rates of kernels that differ in these
/// alone.
#[derive(Clone, Copy)]
struct Sequence {
    instructions: f64,
    arithmetic: f64,
}

const fn sequence(instructions: f64, arithmetic: f64) -> Sequence {
    Sequence { instructions, arithmetic }
}

const ONE: Sequence = sequence(1.0, 1.0);

/// Exact and fast sequences, each for `f32` and `f64`.
struct Long([[Sequence; 2]; 2]);

const DIVISION: Long =
    Long([[sequence(18.0, 9.0), sequence(40.0, 14.0)], [sequence(2.0, 1.0), sequence(20.0, 15.0)]]);
const ROOT: Long =
    Long([[sequence(20.0, 9.0), sequence(45.0, 16.0)], [sequence(2.0, 1.0), sequence(20.0, 15.0)]]);
const FUNCTION: Long = Long([
    [sequence(40.0, 20.0), sequence(90.0, 45.0)],
    [sequence(10.0, 4.0), sequence(60.0, 40.0)],
]);

/// How often something runs: on average over the threads, and in the thread that it keeps longest.
#[derive(Clone, Copy)]
struct Times {
    mean: f64,
    longest: f64,
}

const ONCE: Times = Times { mean: 1.0, longest: 1.0 };

/// Counts of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Count {
    single: f64,
    double: f64,
    integers: f64,
    instructions: f64,
    shuffles: f64,
    exchanged: f64,
    barriers: f64,
    fetches: f64,
    rounds: f64,
    serial: f64,
}

/// Counts what a block of a kernel does. What does not stand in the code (blocks, bytes of device
/// memory, redundancy) is left at zero.
pub fn of(launch: &Launch, device: &Device) -> Result<Work, Error> {
    let values = Values::of(launch.op);
    let mut count = Count { instructions: START, ..Count::default() };
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

/// Where values come from and who uses them, by [`mlir::key`].
struct Values<'c> {
    defined: BTreeMap<usize, Op<'c>>,
    users: BTreeMap<usize, Vec<Op<'c>>>,
    arguments: BTreeSet<usize>,
    fast_math: fast_math::Cache<'c>,
}

impl<'c> Values<'c> {
    fn of(root: Op<'c>) -> Self {
        let (mut defined, mut users) = (BTreeMap::new(), BTreeMap::<_, Vec<_>>::new());
        for op in mlir::walk(root) {
            for result in mlir::results(op) {
                defined.insert(mlir::key(result), op);
            }
            for operand in mlir::operands(op) {
                users.entry(mlir::key(operand)).or_default().push(op);
            }
        }
        let arguments = mlir::entry(root).map(mlir::arguments).unwrap_or_default();
        let arguments = arguments.into_iter().map(mlir::key).collect();
        Self { defined, users, arguments, fast_math: fast_math::Cache::default() }
    }

    fn block(&self, block: Blk<'c>, times: Times, count: &mut Count) {
        for op in mlir::operations(block) {
            self.operation(op, times, count);
        }
    }

    fn operation(&self, op: Op<'c>, all: Times, count: &mut Count) {
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
                count.barriers += all.longest;
                count.instructions += times;
            }
            "gpu.shuffle" => {
                count.shuffles += times;
                count.instructions += times;
            }
            "memref.load" | "vector.load" => {
                access(mlir::operands(op).first(), mlir::results(op).first(), times, count)
            }
            "memref.store" | "vector.store" => {
                access(mlir::operands(op).get(1), mlir::operands(op).first(), times, count);
            }
            "arith.select" | "arith.cmpf" | "arith.sitofp" | "arith.uitofp" | "arith.fptosi"
            | "arith.fptoui" => {
                count.instructions += times;
            }
            _ => self.arithmetic(op, times, count),
        }
    }

    /// Operations on cells: floating-point numbers, and integers that are no index.
    fn arithmetic(&self, op: Op<'c>, times: f64, count: &mut Count) {
        let name = mlir::name(op);
        let Some(result) = mlir::results(op).first().copied() else { return };
        let wide = usize::from(mlir::bit_width(result.r#type()) == Some(64));
        let flags = self.fast_math.of(op);
        let by = |long: &Long| long.0[usize::from(flags.may_reciprocal())][wide];
        let sequence = match name {
            _ if flags.may_contract() && self.is_product(op) && self.fused(op, result) => return,
            _ if self.is_product(op) => ONE,
            "arith.divf" | "arith.remf" => by(&DIVISION),
            "math.sqrt" | "math.rsqrt" => by(&ROOT),
            "math.absf" | "math.fma" | "math.floor" | "math.ceil" => ONE,
            _ if name.starts_with("math.") => by(&FUNCTION),
            _ if name.starts_with("arith.") && name.ends_with('f') => ONE,
            _ => return self.integers(op, times, count),
        };
        count.instructions += times * sequence.instructions;
        if sequence.instructions > ONE.instructions {
            count.serial += times * sequence.instructions;
        }
        *(if wide == 1 { &mut count.double } else { &mut count.single }) +=
            times * sequence.arithmetic;
    }

    /// Integer operations on cells. Those on indices are counted as a part of loops and accesses,
    /// and conditions are predicates. The two halves of a 64-bit number are registers.
    fn integers(&self, op: Op<'c>, times: f64, count: &mut Count) {
        let Some(operand) = mlir::operands(op).first().copied() else { return };
        let name = mlir::name(op);
        let is_index = mlir::bit_width(operand.r#type()).is_none();
        let bits = mlir::bit_width(operand.r#type()).unwrap_or(0);
        if is_index || bits <= 1 || self.is_half(op) {
            return;
        }
        let wide = bits > 32;
        let instructions = match name {
            "arith.addi" | "arith.subi" | "arith.andi" | "arith.ori" | "arith.xori"
            | "arith.shli" | "arith.shrsi" | "arith.shrui" | "arith.cmpi" => [1.0, 2.0],
            "arith.minsi" | "arith.maxsi" | "arith.minui" | "arith.maxui" => [1.0, 4.0],
            "arith.muli" => [1.0, 4.0],
            _ if name.starts_with("arith.div") || name.starts_with("arith.rem") => [20.0, 80.0],
            _ => return,
        }[usize::from(wide)];
        count.instructions += times * instructions;
        count.integers += times * instructions * INTEGER;
    }

    /// Whether an operation takes a 64-bit number apart or puts it together.
    fn is_half(&self, op: Op<'c>) -> bool {
        let shifts = |op: Op<'c>| {
            let by = mlir::operands(op).get(1).and_then(|by| self.defined.get(&mlir::key(*by)));
            let constant = by.and_then(|by| mlir::attribute(*by, "value"));
            matches!(mlir::name(op), "arith.shli" | "arith.shrui")
                && constant.and_then(attribute::as_integer) == Some(32)
        };
        let made = |value: &Val<'c>| self.defined.get(&mlir::key(*value)).copied();
        shifts(op)
            || mlir::name(op) == "arith.ori"
                && mlir::operands(op).iter().filter_map(made).any(shifts)
    }

    /// Whether an operation loads a cell of device memory that another stores at once: the loop
    /// around them waits for it.
    fn copies(&self, op: Op<'c>) -> bool {
        let store = |user: &Op<'c>| mlir::name(*user) == "memref.store";
        let stored = |value: &Val<'c>| {
            self.users.get(&mlir::key(*value)).is_some_and(|users| users.iter().any(store))
        };
        mlir::name(op) == "memref.load"
            && mlir::operands(op).first().is_some_and(|buffer| !is_shared(*buffer))
            && mlir::results(op).first().is_some_and(stored)
    }

    /// Whether an operation multiplies: so does a division by what is known before the loop, whose
    /// reciprocal is computed once.
    fn is_product(&self, op: Op<'c>) -> bool {
        match mlir::name(op) {
            "arith.mulf" => true,
            "arith.divf" => {
                self.fast_math.of(op).may_reciprocal() && self.invariant(mlir::operands(op).get(1))
            }
            _ => false,
        }
    }

    /// Whether a product becomes a part of each sum that uses it. Of a sum of two such products one
    /// does.
    fn fused(&self, product: Op<'c>, result: Val<'c>) -> bool {
        let sums = |value: Val| {
            let users = self.users.get(&mlir::key(value)).map(Vec::as_slice).unwrap_or_default();
            let all =
                users.iter().all(|user| matches!(mlir::name(*user), "arith.addf" | "arith.subf"));
            if all { users } else { &[] }
        };
        let first = |sum: &Op<'c>| {
            mlir::operands(*sum).into_iter().find_map(|operand| {
                let made = self.defined.get(&mlir::key(operand)).copied()?;
                (self.is_product(made) && !sums(operand).is_empty()).then_some(made)
            })
        };
        let sums = sums(result);
        !sums.is_empty() && sums.iter().all(|sum| first(sum) == Some(product))
    }

    /// Whether a value is a constant or the kernel's argument.
    fn invariant(&self, value: Option<&Val<'c>>) -> bool {
        value.is_some_and(|value| match self.defined.get(&mlir::key(*value)) {
            Some(op) => mlir::name(*op) == "arith.constant",
            None => self.arguments.contains(&mlir::key(*value)),
        })
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
        let Some(op) = self.defined.get(&mlir::key(value)) else { return itself };
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
        let op = self.defined.get(&mlir::key(value?))?;
        if mlir::name(*op) != "gpu.thread_id" {
            return None;
        }
        ["x", "y", "z"].get(lane_values::axis(*op)?).copied()
    }
}

/// An access to a buffer, of the cells in `value`.
fn access(buffer: Option<&Val>, value: Option<&Val>, times: f64, count: &mut Count) {
    let Some(buffer) = buffer else { return };
    count.instructions += times;
    // A warp has a value of constant memory as fast as one of a register.
    if space(*buffer).and_then(attribute::as_integer) == Some(CONSTANT_SPACE) {
        return;
    }
    if !is_shared(*buffer) {
        count.instructions += times * ADDRESS;
        return;
    }
    let Ok(memref) = MemRefType::try_from(buffer.r#type()) else { return };
    let bytes = f64::from(mlir::bit_width(memref.element()).unwrap_or(0)) / 8.0;
    let cells = value.map_or(1, |value| mlir::vector_cells(value.r#type()));
    count.exchanged += times * bytes * cells as f64;
}

fn is_shared(buffer: Val) -> bool {
    space(buffer).is_some()
}

fn space<'c>(buffer: Val<'c>) -> Option<Attribute<'c>> {
    MemRefType::try_from(buffer.r#type()).ok()?.memory_space()
}
