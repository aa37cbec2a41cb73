//! `sink-time-loops`: loops in time go inside of the loops in space that they hold.
//!
//! Source: Baskaran et al., A Compiler Framework for Optimization of Affine Loop Nests for General
//! Purpose Computations on GPUs, section 5.1: loops that threads share come first, loops that a
//! thread runs come behind them, whatever their order in the text.
//!
//! Needs: a function of upstream's affine loops. Guarantees: the same loops, and the same order of
//! iterations in each thread. A loop that holds a loop in space alone has changed places with it,
//! so that `tile-affine-nest` finds loops in time innermost. A second run changes nothing.
//!
//! ```text
//! affine.for %l = 0 to %k {          // in time
//!   affine.for %i = 0 to %n {        // in space
//!     affine.for %j = 0 to %m { ... %c[%i, %j] + %a[%i, %l] * %b[%l, %j] ... }
//!   }
//! }
//! ```
//! becomes
//! ```text
//! affine.for %i = 0 to %n {
//!   affine.for %j = 0 to %m {
//!     affine.for %l = 0 to %k { ... }
//!   }
//! }
//! ```
//!
//! That is what the threads of a launch do: each has its iterations of the loops in space, and runs
//! its loops in time around what is left. Leaves alone: loops that the host runs, loops around more
//! than one operation, loops whose inner bounds depend on the outer counter, and loops of which the
//! mapping takes the inner one for threads in either order.

use super::launches::{Function, Launch, is_loop};
use super::lower_affine_nest::with_launches;
use super::shared_tiles::in_space;
use crate::options::Options;
use crate::pass::{Info, Pass};
use melior::Context;
use melior::ir::Module;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "sink-time-loops",
    summary: "put loops in time of affine loops inside of loops in space",
    options: &[],
    read: |_: &Options| Ok(Box::new(SinkTimeLoops)),
};

/// The pass.
pub struct SinkTimeLoops;

impl Pass for SinkTimeLoops {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn run<'c>(&self, _: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let sunk = sink_all(module)?;
        if sunk.is_empty() {
            return Ok(());
        }
        // A launch that a second run changes has two orders with equal score; it keeps its own.
        let again = sink_all(module)?;
        again.iter().for_each(|pairs| undo(pairs));
        let loops: Vec<Op> =
            again.iter().flatten().flat_map(|(one, other)| [*one, *other]).collect();
        let turns = |pairs: &&Vec<Pair>| pairs.iter().any(|(outer, _)| loops.contains(outer));
        sunk.iter().filter(turns).for_each(|pairs| undo(pairs));
        Ok(())
    }
}

/// A loop that went inside of another one.
type Pair<'c> = (Op<'c>, Op<'c>);

/// Sinks the loops of all launches. The pairs that changed places, for each launch with a change.
fn sink_all<'c>(module: &Module<'c>) -> Result<Vec<Vec<Pair<'c>>>, Error> {
    with_launches(module, |function, phases| {
        let launches = phases.iter().flat_map(|phase| &phase.launches);
        let sunk = launches.filter_map(|launch| match launch.ops[..] {
            [root] => Some(sink(function, launch, root)),
            _ => None,
        });
        Ok(sunk.filter(|pairs| !pairs.is_empty()).collect())
    })
}

fn undo(pairs: &[Pair]) {
    for (outer, inner) in pairs.iter().rev() {
        exchange(*inner, *outer);
    }
}

/// Exchanges neighbours until all that can go are inside.
fn sink<'c>(function: &Function<'c, '_>, launch: &Launch<'c>, root: Op<'c>) -> Vec<Pair<'c>> {
    let mut pairs = Vec::new();
    let in_space = |op| in_space(function, launch, op);
    let mut chain = vec![root];
    while let Some(inner) = chain.last().and_then(|op| only_loop(*op)) {
        chain.push(inner);
    }
    for _ in 0..chain.len() {
        for place in 1..chain.len() {
            let pair = chain.get(place - 1).copied().zip(chain.get(place).copied());
            if let Some((outer, inner)) = pair
                && !in_space(outer)
                && in_space(inner)
                && exchange(outer, inner)
            {
                chain.swap(place - 1, place);
                pairs.push((outer, inner));
            }
        }
    }
    pairs
}

/// The loop that is all that a loop holds.
fn only_loop(op: Op<'_>) -> Option<Op<'_>> {
    match mlir::operations(mlir::entry(op)?)[..] {
        [inner, _] if is_loop(inner) => Some(inner),
        _ => None,
    }
}

/// Puts a loop inside of the one that it holds, unless that one's bounds have its counter. Says
/// whether it did.
fn exchange(outer: Op, inner: Op) -> bool {
    let (Some(around), Some(body)) = (mlir::entry(outer), mlir::entry(inner)) else {
        return false;
    };
    let counters: Vec<usize> = mlir::arguments(around).into_iter().map(mlir::key).collect();
    let bounds = mlir::operands(inner);
    let ends = (mlir::operations(around).last().copied(), mlir::operations(body).last().copied());
    let (Some(end_of_outer), Some(end_of_inner)) = ends else { return false };
    if bounds.into_iter().any(|bound| counters.contains(&mlir::key(bound))) {
        return false;
    }
    mlir::move_before(inner, outer);
    for op in mlir::operations(body) {
        if op != end_of_inner {
            mlir::move_before(op, end_of_outer);
        }
    }
    mlir::move_before(outer, end_of_inner);
    true
}
