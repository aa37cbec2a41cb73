//! `eliminate-barriers`: removes barriers that order no accesses.
//!
//! A barrier orders the accesses since the barrier before it with those up to the barrier after it.
//! It is removed if no two of these accesses, one before and one after, are by different threads
//! to one element, with at least one write (`analysis/memory_effects.rs`). A thread's accesses to
//! its own elements need no barrier. These have the thread's number as an index along each axis.
//!
//! Needs: `gpu.func`s of any compiler. Guarantees: the same results; a second run changes nothing.
//! Removing a barrier only adds accesses that the remaining barriers order.
//!
//! ```text
//! memref.store %a, %s[%thread_id_x]
//! gpu.barrier
//! %b = memref.load %s[%thread_id_x]
//! gpu.barrier
//! %c = memref.load %s[%other]
//! ```
//! becomes
//! ```text
//! memref.store %a, %s[%thread_id_x]
//! %b = memref.load %s[%thread_id_x]
//! gpu.barrier
//! %c = memref.load %s[%other]
//! ```
//!
//! Keeps barriers beside operations with unknown effects on memory, such as flags between blocks,
//! asynchronous copies and calls. Keeps all barriers of a kernel with several basic blocks.
//! Upstream's pass for this purpose runs on `func.func` alone, and treats a buffer as one element.

use crate::analysis::memory_effects::{Effects, Kernel, structured_kernels};
use crate::options::Options;
use crate::pass::{Info, Pass};
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "eliminate-barriers",
    summary: "remove barriers that order no accesses",
    options: &[],
    read: |_: &Options| Ok(Box::new(EliminateBarriers)),
};

/// The pass.
pub struct EliminateBarriers;

impl Pass for EliminateBarriers {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        Ok(mlir::walk(mlir::module_op(module)).into_iter().any(is_barrier))
    }

    fn run<'c>(&self, _: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        structured_kernels(module).into_iter().for_each(eliminate);
        Ok(())
    }
}

fn eliminate(kernel: Op) {
    let known = Kernel::of(kernel);
    let axes = axes(kernel);
    let barriers: Vec<_> = mlir::walk(kernel).into_iter().filter(|op| is_barrier(*op)).collect();
    for barrier in barriers {
        let before = around(&known, barrier, Side::Before);
        let behind = around(&known, barrier, Side::Behind);
        if before.zip(behind).is_some_and(|(before, behind)| !before.conflict(&behind, &axes)) {
            mlir::erase(barrier);
        }
    }
}

fn is_barrier(op: Op) -> bool {
    mlir::name(op) == "gpu.barrier"
}

/// Whether a barrier orders all memory, and not that of some address spaces alone.
fn orders_all(op: Op) -> bool {
    is_barrier(op) && mlir::own_attributes(op).is_empty()
}

/// The axes along which a block has more than one thread; all where the kernel does not say it.
fn axes(kernel: Op) -> Vec<usize> {
    let stated = mlir::attribute(kernel, "known_block_size").and_then(attribute::as_integers);
    let several =
        |axis: &usize| stated.as_ref().and_then(|stated| stated.get(*axis)).is_none_or(|n| *n != 1);
    (0..3).filter(several).collect()
}

/// A side of a barrier.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    Behind,
}

/// What may run between a barrier and those on one side of it. Nothing where an operation around it
/// is not known.
fn around<'c>(known: &Kernel<'c>, barrier: Op<'c>, side: Side) -> Option<Effects> {
    let mut effects = Effects::default();
    let mut at = barrier;
    loop {
        let block = at.block().map(mlir::block)?;
        let mut all = mlir::operations(block);
        if side == Side::Before {
            all.reverse();
        }
        let place = all.iter().position(|op| *op == at)?;
        let (others, beside) = all.split_at(place);
        if to_barrier(known, beside.get(1..).unwrap_or_default(), &mut effects) {
            return Some(effects);
        }
        let parent = at.parent_operation().map(mlir::op)?;
        match mlir::name(parent) {
            "gpu.func" => return Some(effects),
            "scf.if" | "affine.if" => {}
            // The next iteration or the one before, as far as a barrier.
            "scf.for" | "affine.for" => {
                if !to_barrier(known, others, &mut effects) && !is_barrier(at) {
                    effects.extend(known.effects(at));
                }
            }
            "scf.while" => effects.extend(known.effects(parent)),
            _ => return None,
        }
        at = parent;
    }
}

/// Adds the effects of operations as far as a barrier, and says whether there is one.
fn to_barrier<'c>(known: &Kernel<'c>, all: &[Op<'c>], effects: &mut Effects) -> bool {
    for op in all {
        if orders_all(*op) {
            return true;
        }
        effects.extend(known.effects(*op));
    }
    false
}
