//! What an operation of a gpu-level kernel costs a thread, by resource.
//!
//! The costs are those of the instructions that ptxas makes of an operation, on average. Index
//! arithmetic is not counted by itself but as a part of loops and accesses, because most of it goes
//! away. [`kernel_work`](super::kernel_work) and
//! [`global_traffic`](super::global_traffic) count how often operations run.

use super::exact_quotient::Divisor;
use melior::ir::r#type::MemRefType;
use melior::ir::{Attribute, ShapedTypeLike, ValueLike};
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::attribute;
use stencil_dialects::fast_math;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::tiled::CONSTANT_SPACE;

/// Instructions of an iteration of a loop: counter, comparison, branch, and the indices of its
/// body.
pub const LOOP: f64 = 8.0;
/// Instructions that the address of an access to global memory takes.
const ADDRESS: f64 = 2.0;
/// Bytes of a lane in whose time the level 1 cache serves an access: a narrower one takes as long.
const NARROWEST: f64 = 4.0;
/// Floating-point instructions on `f32` in whose time an integer instruction runs: of these a
/// multiprocessor runs 64 a clock, and of those 128 (CUDA programming guide, throughput of
/// arithmetic instructions).
const INTEGER: f64 = 2.0;

/// Sums of sums that are followed to tell whether a number is small.
const SUMMANDS: usize = 4;

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

/// Costs of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Floating-point instructions on `f32`; a fused multiply-add counts one.
    pub single: f64,
    /// The same on `f64`.
    pub double: f64,
    /// The time of operations on integers that are no index, in instructions on `f32`.
    pub integers: f64,
    /// Instructions, whatever they do.
    pub instructions: f64,
    /// Shuffles.
    pub shuffles: f64,
    /// Bytes that are read from and written to shared memory.
    pub exchanged: f64,
    /// Bytes that pass through the level 1 cache.
    pub cached: f64,
    /// Barriers.
    pub barriers: f64,
    /// Waits for device memory.
    pub fetches: f64,
    /// Iterations of other loops, where they wait for what they compute with.
    pub rounds: f64,
    /// Loads from device memory that such an iteration waits for.
    pub waits: f64,
    /// Instructions that wait for each other: those of divisions, roots and the like.
    pub serial: f64,
}

impl Cost {
    /// The numbers, in the order of the fields.
    fn numbers(&mut self) -> [&mut f64; 12] {
        [
            &mut self.single,
            &mut self.double,
            &mut self.integers,
            &mut self.instructions,
            &mut self.shuffles,
            &mut self.exchanged,
            &mut self.cached,
            &mut self.barriers,
            &mut self.fetches,
            &mut self.rounds,
            &mut self.waits,
            &mut self.serial,
        ]
    }

    /// Adds another one, so many times.
    pub fn add(&mut self, other: &Self, times: f64) {
        let mut other = *other;
        for (sum, one) in self.numbers().into_iter().zip(other.numbers()) {
            *sum += *one * times;
        }
    }

    /// The larger number of both, one by one.
    pub fn larger(mut self, other: &Self) -> Self {
        let mut other = *other;
        for (number, one) in self.numbers().into_iter().zip(other.numbers()) {
            *number = number.max(*one);
        }
        self
    }
}

/// The operations of a kernel: where values come from and who uses them, by [`mlir::key`].
pub struct Costs<'c> {
    pub(super) defined: BTreeMap<usize, Op<'c>>,
    pub(super) users: BTreeMap<usize, Vec<Op<'c>>>,
    arguments: BTreeSet<usize>,
    fast_math: fast_math::Cache<'c>,
}

impl<'c> Costs<'c> {
    /// Those of the operations inside of a kernel.
    pub fn of(root: Op<'c>) -> Self {
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

    /// What an operation costs each time it runs, without the loop that it may be and without what
    /// is inside of it.
    pub fn cost(&self, op: Op<'c>) -> Cost {
        let one = Cost { instructions: 1.0, ..Cost::default() };
        let operands = mlir::operands(op);
        match mlir::name(op) {
            "scf.for" => Cost::default(),
            "gpu.barrier" => Cost { barriers: 1.0, ..one },
            "gpu.shuffle" => Cost { shuffles: 1.0, ..one },
            "memref.load" | "vector.load" => access(operands.first(), mlir::results(op).first()),
            "memref.store" | "vector.store" => access(operands.get(1), operands.first()),
            "scf.if" | "arith.select" | "arith.cmpf" | "arith.sitofp" | "arith.uitofp"
            | "arith.fptosi" | "arith.fptoui" => one,
            _ => self.arithmetic(op),
        }
    }

    /// Operations on cells: floating-point numbers, and integers that are no index.
    fn arithmetic(&self, op: Op<'c>) -> Cost {
        let name = mlir::name(op);
        let Some(result) = mlir::results(op).first().copied() else { return Cost::default() };
        let wide = usize::from(mlir::bit_width(result.r#type()) == Some(64));
        let flags = self.fast_math.of(op);
        let by = |long: &Long| long.0[usize::from(flags.may_reciprocal())][wide];
        let sequence = match name {
            _ if flags.may_contract() && self.is_product(op) && self.fused(op, result) => {
                return Cost::default();
            }
            _ if self.is_product(op) => ONE,
            "arith.divf" => self.quotient(op).unwrap_or(by(&DIVISION)),
            "arith.remf" => by(&DIVISION),
            "math.sqrt" | "math.rsqrt" => by(&ROOT),
            "math.absf" | "math.fma" | "math.floor" | "math.ceil" => ONE,
            _ if name.starts_with("math.") => by(&FUNCTION),
            _ if name.starts_with("arith.") && name.ends_with('f') => ONE,
            _ => return self.integers(op),
        };
        let Sequence { instructions, arithmetic } = sequence;
        let serial = if instructions > ONE.instructions { instructions } else { 0.0 };
        let [single, double] = if wide == 1 { [0.0, arithmetic] } else { [arithmetic, 0.0] };
        Cost { single, double, instructions, serial, ..Cost::default() }
    }

    /// What `exact-division` makes of a division: its operations and a comparison, which for `f64`
    /// runs on the floating-point units. The select is a predicate of the last operation.
    fn quotient(&self, op: Op<'c>) -> Option<Sequence> {
        let (operands, results) = (mlir::operands(op), mlir::results(op));
        let bits = mlir::bit_width(results.first()?.r#type())?.max(32);
        let constant = self.defined.get(&mlir::key(*operands.get(1)?))?;
        let divisor = mlir::attribute(*constant, "value").and_then(attribute::as_float)?;
        let operations = f64::from(Divisor::of(divisor, bits)?.operations());
        let compares = if bits == 64 { 1.0 } else { 0.0 };
        Some(sequence(operations + 1.0, operations + compares))
    }

    /// Integer operations on cells. Those on indices are counted as a part of loops and accesses,
    /// and conditions are predicates. The two halves of a 64-bit number are registers.
    fn integers(&self, op: Op<'c>) -> Cost {
        let Some(operand) = mlir::operands(op).first().copied() else { return Cost::default() };
        let name = mlir::name(op);
        let is_index = mlir::bit_width(operand.r#type()).is_none();
        let bits = mlir::bit_width(operand.r#type()).unwrap_or(0);
        if is_index || bits <= 1 || self.is_half(op) {
            return Cost::default();
        }
        let wide = bits > 32;
        let instructions = match name {
            "arith.addi" | "arith.subi" | "arith.andi" | "arith.ori" | "arith.xori"
            | "arith.shli" | "arith.shrsi" | "arith.shrui" | "arith.cmpi" => [1.0, 2.0],
            "arith.minsi" | "arith.maxsi" | "arith.minui" | "arith.maxui" => [1.0, 4.0],
            "arith.muli" => [1.0, 4.0],
            // A product's upper half and a shift; LLVM divides small 64-bit numbers as 32-bit ones.
            _ if is_division(name) && self.is_constant(mlir::operands(op).get(1)) => [5.0, 12.0],
            _ if is_division(name)
                && mlir::operands(op).iter().all(|one| self.is_small(*one, SUMMANDS)) =>
            {
                [20.0, 26.0]
            }
            _ if is_division(name) => [20.0, 80.0],
            _ => return Cost::default(),
        }[usize::from(wide)];
        Cost { instructions, integers: instructions * INTEGER, ..Cost::default() }
    }

    fn is_constant(&self, value: Option<&Val<'c>>) -> bool {
        let made = value.and_then(|value| self.defined.get(&mlir::key(*value)));
        made.is_some_and(|op| mlir::name(*op) == "arith.constant")
    }

    /// Whether a number comes from a place or from a narrower one, so that it fits 32 bits. Sums
    /// are followed so far.
    fn is_small(&self, value: Val<'c>, depth: usize) -> bool {
        self.is_constant(Some(&value))
            || self.defined.get(&mlir::key(value)).is_some_and(|op| match mlir::name(*op) {
                "arith.extsi" | "arith.extui" | "arith.index_cast" | "arith.index_castui" => true,
                "arith.addi" | "arith.subi" | "arith.remsi" | "arith.select" if depth > 0 => {
                    let numbers = mlir::operands(*op).into_iter();
                    let numbers = numbers.filter(|one| one.r#type() == value.r#type());
                    numbers.into_iter().all(|one| self.is_small(one, depth - 1))
                }
                _ => false,
            })
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
        let argument = value.is_some_and(|value| self.arguments.contains(&mlir::key(*value)));
        argument || self.is_constant(value)
    }
}

fn is_division(name: &str) -> bool {
    name.starts_with("arith.div") || name.starts_with("arith.rem")
}

/// An access to a buffer, of the cells in `value`.
fn access(buffer: Option<&Val>, value: Option<&Val>) -> Cost {
    let Some(buffer) = buffer else { return Cost::default() };
    let one = Cost { instructions: 1.0, ..Cost::default() };
    // A warp has a value of constant memory as fast as one of a register.
    if space(*buffer).and_then(attribute::as_integer) == Some(CONSTANT_SPACE) {
        return one;
    }
    let memref = MemRefType::try_from(buffer.r#type());
    let element = memref.ok().and_then(|memref| mlir::bit_width(memref.element())).unwrap_or(0);
    let cells = value.map_or(1, |value| mlir::vector_cells(value.r#type()));
    let bytes = f64::from(element) / 8.0 * cells as f64;
    if is_shared(*buffer) {
        return Cost { exchanged: bytes, ..one };
    }
    Cost { instructions: 1.0 + ADDRESS, cached: bytes.max(NARROWEST), ..one }
}

/// Whether an operation loads from the device's memory.
pub(super) fn loads_device_memory(op: Op) -> bool {
    matches!(mlir::name(op), "memref.load" | "vector.load")
        && mlir::operands(op).first().is_some_and(|buffer| !is_shared(*buffer))
}

/// Whether a buffer lies in another memory than the device's.
pub(super) fn is_shared(buffer: Val) -> bool {
    space(buffer).is_some()
}

fn space<'c>(buffer: Val<'c>) -> Option<Attribute<'c>> {
    MemRefType::try_from(buffer.r#type()).ok()?.memory_space()
}
