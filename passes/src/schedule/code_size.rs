//! How much code the kernels of a schedule have, told before any is built.
//!
//! A kernel has the code of every point function once for each step, piece, and copy: a thread of
//! some strategies has code of its own for each of its cells. The time of a compile is
//! proportional to that. Therefore no candidate has many evaluations where fewer steps have less,
//! and a schedule that was asked for is declined where it would take minutes.

use crate::schedule::strategy::Strategy;
use melior::ir::operation::OperationLike;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir;
use stencil_dialects::stencil::{Apply, Program};

/// Evaluations of point functions in the code of a candidate of several steps.
const MOST_EVALUATIONS: i64 = 400;

/// Operations in the code of a kernel. LLVM compiles about 3,000 a second.
pub const MOST_OPERATIONS: i64 = 50_000;

/// Operations beside those of its function that an evaluation takes.
const EVALUATION: i64 = 25;

/// The most steps per launch of some applies whose code is short enough to be a candidate.
pub fn most_steps(strategy: &dyn Strategy, applies: &[&Apply], rank: usize) -> i64 {
    let pieces: i64 = applies.iter().map(|apply| count(apply.pieces.len())).sum();
    (MOST_EVALUATIONS / pieces.saturating_mul(strategy.usual_copies(rank)).max(1)).max(1)
}

/// Declines kernels of some steps whose code would be too long.
pub fn check(
    program: &Program,
    strategy: &dyn Strategy,
    applies: &[&Apply],
    (per_thread, steps): (&[i64], i64),
) -> Result<(), Error> {
    let copies = strategy.copies(per_thread);
    let mut operations = 0_i64;
    for piece in applies.iter().flat_map(|apply| &apply.pieces) {
        let own = count(mlir::walk(program.function(piece.function)?).len());
        let each = own.saturating_add(EVALUATION).saturating_mul(copies);
        operations = operations.saturating_add(each);
    }
    let operations = operations.saturating_mul(steps);
    if operations <= MOST_OPERATIONS {
        return Ok(());
    }
    let place = applies.first().map(|apply| mlir::place(apply.op.location())).unwrap_or_default();
    Err(Error::declined(
        Decline::CodeSize,
        format!(
            "the code of a kernel with {steps} step{} per launch and cells per thread \
             {per_thread:?} would have about {operations} operations, and the limit is \
             {MOST_OPERATIONS}; take fewer steps, fewer cells per thread or the strategy naive",
            if steps == 1 { "" } else { "s" }
        ),
    )
    .at(place))
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
