//! `hoist-guards`: a condition that a loop does not change goes out of it.
//!
//! LLVM moves loads whose address and memory a loop does not change out of the loop, and keeps in a
//! register what each iteration loads and stores again. It does neither for accesses that may not
//! run, and it keeps conditions that differ between threads where they are. Behind this pass the
//! accesses run in each iteration, and a thread's invariants go to registers (Baskaran et al., A
//! Compiler Framework for Optimization of Affine Loop Nests for General Purpose Computations on
//! GPUs, section 5.4).
//!
//! Needs: `gpu.func`s, whoever made them. Guarantees: each iteration that did something does the
//! same; a second run changes nothing.
//!
//! ```text
//! scf.for %t = %0 to %steps step %1 {
//!   scf.if %inside { ... memref.load %x[%i] ... }
//! }
//! ```
//! becomes
//! ```text
//! scf.if %inside {
//!   scf.for %t = %0 to %steps step %1 { ... memref.load %x[%i] ... }
//! }
//! ```
//!
//! Leaves alone: loops that carry values, conditions with an `else` or results, conditions that
//! change in the loop, and loops with anything beside the condition but operations on numbers.
//! Operations whose values do not change go out of the loop with it.

use crate::analysis::total_operations::is_total;
use crate::options::Options;
use crate::pass::{Info, Pass};
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use std::collections::BTreeSet;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "hoist-guards",
    summary: "move conditions that a loop does not change out of it",
    options: &[],
    read: |_: &Options| Ok(Box::new(HoistGuards)),
};

/// The pass.
pub struct HoistGuards;

impl Pass for HoistGuards {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        let loops = kernels(module).into_iter().flat_map(mlir::walk).filter(is_loop);
        Ok(loops.into_iter().any(|op| guard(op).is_some()))
    }

    fn run<'c>(&self, _: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        for kernel in kernels(module) {
            // Inner loops first: their conditions may leave the outer ones too.
            let mut loops: Vec<Op> = mlir::walk(kernel).into_iter().filter(is_loop).collect();
            loops.reverse();
            for op in loops {
                while let Some(guard) = guard(op) {
                    hoist(op, &guard)?;
                }
            }
        }
        Ok(())
    }
}

fn kernels<'c>(module: &Module<'c>) -> Vec<Op<'c>> {
    let all = mlir::walk(mlir::module_op(module)).into_iter();
    all.filter(|op| mlir::name(*op) == "gpu.func").collect()
}

fn is_loop(op: &Op) -> bool {
    mlir::name(*op) == "scf.for"
}

/// A condition that can go out of a loop.
pub(super) struct Guard<'c> {
    /// The `scf.if`.
    pub(super) op: Op<'c>,
    /// The operations of the loop whose values do not change, in order.
    fixed: Vec<Op<'c>>,
}

/// The condition in a loop that can go out of it.
pub(super) fn guard<'c>(op: Op<'c>) -> Option<Guard<'c>> {
    let body = mlir::entry(op)?;
    let (guards, others): (Vec<Op>, Vec<Op>) =
        mlir::operations(body).iter().partition(|op| mlir::name(**op) == "scf.if");
    let [guard] = guards[..] else { return None };
    let mut changing: BTreeSet<usize> = mlir::arguments(body).into_iter().map(mlir::key).collect();
    let mut fixed = Vec::new();
    for other in others {
        let name = mlir::name(other);
        let mut operands = mlir::operands(other).into_iter();
        if is_total(other) && !operands.any(|value| changing.contains(&mlir::key(value))) {
            fixed.push(other);
        } else if is_total(other) || name.starts_with("arith.") {
            changing.extend(mlir::results(other).into_iter().map(mlir::key));
        } else if name != "scf.yield" {
            return None;
        }
    }
    let condition = mlir::operands(guard).first().map(|value| mlir::key(*value))?;
    let bare = guard.result_count() == 0 && mlir::blocks(guard, 1).is_empty();
    let leaves = op.result_count() == 0 && bare && !changing.contains(&condition);
    leaves.then_some(Guard { op: guard, fixed })
}

/// Puts a loop into the condition that is in it.
///
/// # Errors
/// Internal ones.
pub(super) fn hoist<'c>(op: Op<'c>, Guard { op: guard, fixed }: &Guard<'c>) -> Result<(), Error> {
    let body = mlir::entry(*guard).map(mlir::operations).unwrap_or_default();
    let (end, body) = body.split_last().ok_or_else(|| Error::internal("an if without a body"))?;
    body.iter().for_each(|inner| mlir::move_before(*inner, *guard));
    fixed.iter().chain([guard]).for_each(|outer| mlir::move_before(*outer, op));
    mlir::move_before(op, *end);
    Ok(())
}
