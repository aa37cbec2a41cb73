//! `unroll-by-registers`: innermost loops of a kernel get the factor by which LLVM unrolls them.
//!
//! Source: Baskaran et al., A Compiler Framework for Optimization of Affine Loop Nests for General
//! Purpose Computations on GPUs, section 3, and Ryoo et al., Optimization Principles and
//! Application Performance Evaluation of a Multithreaded GPU Using CUDA, section 4.3. Unrolling
//! saves branches and counters, and has more loads in flight. It takes registers, and with them
//! blocks of a multiprocessor.
//!
//! Needs: `gpu.func`s with `known_block_size`, whoever made them. Guarantees: each innermost
//! `scf.for` that is worth it has `llvm.loop_annotation` with a count, which `annotate-loops` hands
//! on; `tiled.unroll` has a note for each innermost loop. The count is the largest of 2, 4, 8 and
//! 16, or all iterations where these are at most 16, so that
//!
//! - the values that the loop holds, and those of an iteration as often, take so few registers that
//!   as many blocks run on a multiprocessor as before ([`LiveValues`]);
//! - the iterations have at most 512 operations together;
//! - it divides the number of iterations, if that is known.
//!
//! A second run changes nothing.
//!
//! ```text
//! scf.for %i = %c0 to %n step %c1 { ... }
//! ```
//! becomes
//! ```text
//! scf.for %i = %c0 to %n step %c1 { ... }
//!     {llvm.loop_annotation = #llvm.loop_annotation<unroll = <count = 8 : i32>>}
//! ```
//!
//! Leaves alone: loops with an annotation, and those with barriers, shuffles and other operations
//! of several threads. Loops without a count are LLVM's.

use crate::analysis::kernel_work;
use crate::analysis::lane_values;
use crate::analysis::live_values::{LiveValues, LoopRegisters};
use crate::analysis::shared_copies::is_shared;
use crate::analysis::thread_values;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::target::Target;
use melior::Context;
use melior::ir::{Attribute, Module};
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::tiled;
use stencil_runtime::device::Device;
use stencil_runtime::model::{self, Work};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "unroll-by-registers",
    summary: "choose how often loops are unrolled, by registers",
    options: &[],
    read: |_: &Options| Ok(Box::new(UnrollByRegisters)),
};

/// The pass.
pub struct UnrollByRegisters;

/// Operations of an unrolled loop at most. It is a limit on code, and was not fitted.
const MOST_OPERATIONS: i64 = 512;

/// The largest factor.
const MOST: i64 = 16;

/// Registers for addresses and what else ptxas needs.
const RESERVE: i64 = 10;

/// The attribute that `scf.for` hands to its branches.
const ANNOTATION: &str = "llvm.loop_annotation";

impl Pass for UnrollByRegisters {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let device = Target::of(module)?.device;
        let all = mlir::walk(mlir::module_op(module)).into_iter();
        let kernels = all.filter(|op| mlir::name(*op) == "gpu.func" && !tiled::has_unroll(*op));
        kernels.into_iter().try_for_each(|kernel| unroll(context, kernel, device))
    }
}

fn unroll<'c>(context: &'c Context, kernel: Op<'c>, device: &Device) -> Result<(), Error> {
    let Some(demand) = Demand::of(kernel, device)? else { return Ok(()) };
    let live = LiveValues::of(kernel);
    let mut notes = Vec::new();
    let is_loop = |op: &Op| mlir::name(*op) == "scf.for";
    for op in mlir::walk(kernel).into_iter().filter(is_loop) {
        let inside: Vec<_> = mlir::walk(op).into_iter().skip(1).collect();
        if inside.iter().any(is_loop) {
            continue;
        }
        let note = match choose(op, &inside, &live, &demand) {
            Err(reason) => format!("kept: {reason}"),
            Ok(choice) => {
                if choice.factor > 1 {
                    let text = format!(
                        "#llvm.loop_annotation<unroll = <count = {} : i32>>",
                        choice.factor
                    );
                    let annotation = Attribute::parse(context, &text)
                        .ok_or_else(|| Error::internal("the llvm dialect is not loaded"))?;
                    mlir::set_attribute(op, ANNOTATION, annotation);
                }
                choice.note
            }
        };
        notes.push(note);
    }
    tiled::set_unroll(context, kernel, &notes);
    Ok(())
}

/// What a block of a kernel needs beside its registers.
struct Demand<'d> {
    work: Work,
    device: &'d Device,
    /// The most registers of a thread that the kernel states.
    stated: i64,
}

impl<'d> Demand<'d> {
    /// The demand of a kernel; nothing where the number of threads is not known.
    fn of(kernel: Op, device: &'d Device) -> Result<Option<Self>, Error> {
        let Some(threads) = thread_values::threads(kernel) else { return Ok(None) };
        let threads = u32::try_from(threads.iter().product::<i64>()).unwrap_or(u32::MAX);
        let arguments = mlir::entry(kernel).map(mlir::arguments).unwrap_or_default();
        let buffers = arguments.iter().filter(|buffer| is_shared(**buffer));
        let shared = buffers.map(|buffer| kernel_work::shared_bytes(*buffer));
        let shared = shared.fold(tiled::dynamic_shared(kernel)?, i64::saturating_add);
        let number = |name| mlir::attribute(kernel, name).and_then(attribute::as_integer);
        let of_blocks = number("nvvm.minctasm").and_then(|blocks| u32::try_from(blocks).ok());
        let of_blocks = of_blocks
            .map(|blocks| model::most_registers(threads.saturating_mul(blocks.max(1)), device));
        let most = of_blocks.unwrap_or_else(|| model::most_registers(threads, device));
        let stated = number("nvvm.maxnreg").filter(|registers| *registers > 0);
        let stated = stated.unwrap_or(i64::MAX).min(most.into());
        let shared = u64::try_from(shared).unwrap_or(0);
        Ok(Some(Self { work: Work { threads, shared, ..Work::default() }, device, stated }))
    }

    /// Blocks that run with so many registers of a thread.
    fn blocks(&self, registers: i64) -> u32 {
        let registers = u32::try_from(registers).unwrap_or(u32::MAX);
        model::resident_blocks(&Work { registers, ..self.work.clone() }, self.device)
    }
}

/// A factor, and what there is to say about it.
struct Choice {
    factor: i64,
    note: String,
}

fn choose<'c>(
    op: Op<'c>,
    inside: &[Op<'c>],
    live: &LiveValues<'c>,
    demand: &Demand,
) -> Result<Choice, String> {
    if mlir::attribute(op, ANNOTATION).is_some() {
        return Err("it has an annotation".to_owned());
    }
    if let Some(together) = inside.iter().find(|op| is_together(mlir::name(**op))) {
        return Err(format!("it has a {}", mlir::name(*together)));
    }
    let LoopRegisters { held, body } =
        live.registers(op).ok_or_else(|| "it is in no kernel".to_owned())?;
    let registers = |factor: i64| RESERVE + held + factor * body;
    let counts = |op: &&Op| !matches!(mlir::name(**op), "arith.constant" | "scf.yield");
    let operations = i64::try_from(inside.iter().filter(counts).count()).unwrap_or(i64::MAX);
    let blocks = demand.blocks(registers(1).min(demand.stated));
    let trips = trips(op);
    let factors = [trips.filter(|trips| *trips <= MOST), Some(MOST), Some(8), Some(4), Some(2)];
    let mut limits = Vec::new();
    let mut factor = 1;
    for candidate in factors.into_iter().flatten().filter(|factor| *factor > 1) {
        let needed = registers(candidate);
        if trips.is_some_and(|trips| trips % candidate != 0) {
            continue;
        } else if needed > demand.stated || demand.blocks(needed) < blocks {
            limits.push(format!("{candidate} would take {needed} registers"));
        } else if operations.saturating_mul(candidate) > MOST_OPERATIONS {
            limits.push(format!("{candidate} would have {} operations", operations * candidate));
        } else {
            factor = candidate;
            break;
        }
    }
    let limit = limits.pop().unwrap_or_else(|| match trips {
        Some(trips) if factor == trips => "all iterations".to_owned(),
        Some(trips) => format!("of {trips} iterations"),
        None => "the most".to_owned(),
    });
    let needed = registers(factor);
    let blocks = if blocks == 1 { "one block".to_owned() } else { format!("{blocks} blocks") };
    let times = if factor == 1 { "once".to_owned() } else { format!("{factor} times") };
    let note = format!(
        "{times}: {needed} registers ({} and {body} an iteration) for {blocks}; {limit}",
        RESERVE + held
    );
    Ok(Choice { factor, note })
}

/// Iterations of a loop with constant bounds.
fn trips(op: Op) -> Option<i64> {
    let constant = |value: &Val| {
        let maker = melior::ir::operation::OperationResult::try_from(*value).ok()?;
        lane_values::constant(mlir::op(maker.owner()))
    };
    let operands = mlir::operands(op);
    let [lower, upper, step, ..] = &operands[..] else { return None };
    let (lower, upper, step) = (constant(lower)?, constant(upper)?, constant(step)?);
    (step > 0).then(|| upper.checked_sub(lower)?.max(0).checked_add(step - 1)?.checked_div(step))?
}

/// Whether threads run an operation together.
fn is_together(name: &str) -> bool {
    let alone = ["gpu.thread_id", "gpu.block_id", "gpu.block_dim", "gpu.grid_dim", "gpu.lane_id"];
    let known = ["arith.", "math.", "memref.", "vector.", "scf.", "affine."];
    !alone.contains(&name) && !known.iter().any(|dialect| name.starts_with(dialect))
}
