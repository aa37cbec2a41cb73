//! How much code the kernels of a schedule have, told before any is built.
//!
//! A kernel has the code of every point function once for each step, piece, and copy: a thread of
//! some strategies has code of its own for each of its cells. The time of a compile is
//! proportional to that. Therefore no candidate has many evaluations where fewer steps have less,
//! and a schedule that was asked for is declined where it would take minutes.

use crate::analysis::crossed::Crossed;
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::Strategy;
use crate::subject::Subject;
use melior::ir::operation::OperationLike;
use melior::ir::{TypeLike, ValueLike};
use std::cell::Cell;
use stencil_dialects::error::{Decline, Error, Place};
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::stencil::{Apply, Argument, Boundary, GATHER, Piece, Program, function_body};
use stencil_dialects::tiled::{Halo, Schedule};

/// Evaluations of point functions in the code of a candidate of several steps.
const MOST_EVALUATIONS: i64 = 400;

/// Operations in the code of a kernel. Kernels just below take 5 to 35 s to compile.
pub const MOST_OPERATIONS: i64 = 200_000;

/// Operations beside those of its function that an evaluation takes.
const EVALUATION: i64 = 10;

/// Operations in the code of all kernels of a program.
pub const MOST_OF_ALL: i64 = 300_000;

/// Operations of an absolute read: its address, and LLVM's looks at all pairs of addresses.
const ABSOLUTE_READ: i64 = 8;

/// Operations of a conversion of a float to an integer: it also keeps to the integer's ends. 47,000
/// conversions took 58 s to compile.
const CONVERSION: i64 = 9;

/// Operations of a boundary rule along a dimension: 2 and 6 ms of a read in a kernel of 1,200.
const RULE: i64 = 20;
const REFLECTION: i64 = 60;

/// Operations for each cell that a boundary rule may find, where cells stay in registers: it is
/// compared and selected.
const FOUND_CELL: i64 = 4;

/// The most cells that a boundary rule may find where cells stay in registers: strategies decline
/// more, and say why.
pub const MOST_FOUND: i64 = 8192;

/// Operations of an apply's loops, barriers and versions.
const APPLY: i64 = 800;

/// Operations for each integer that a function reads, where cells stay in registers from step to
/// step. LLVM's straight-line passes write every value as a sum of what it is made from, which
/// takes a thousand times longer for sums of integers than for those of floats.
const INTEGER_READ: i64 = 200;

/// The most steps per launch of some applies whose code is short enough to be a candidate.
pub fn most_steps(
    program: &Program,
    strategy: &dyn Strategy,
    applies: &[&Apply],
    (per_thread, rank): (&[i64], usize),
) -> Result<i64, Error> {
    let pieces: i64 = applies.iter().map(|apply| count(apply.pieces.len())).sum();
    let evaluations = pieces.saturating_mul(strategy.usual_copies(rank)).max(1);
    let operations = operations(program, strategy, applies, per_thread)?.max(1);
    let last = last_steps(program, strategy, applies, per_thread)?;
    let most = (MOST_EVALUATIONS / evaluations).min((MOST_OPERATIONS - last) / operations);
    let kernel = |steps: i64| operations.saturating_mul(steps).saturating_add(last);
    let all = |height: i64| heights(height).into_iter().map(kernel).sum::<i64>();
    let fits = |height: &i64| all(*height) <= MOST_OF_ALL;
    Ok((2..=most).rev().find(fits).unwrap_or(1))
}

/// The pyramid height of a group where none is asked for.
pub fn usual_height(
    subject: &Subject,
    strategy: &dyn Strategy,
    group: &Group,
    schedule: &Schedule,
) -> Result<i64, Error> {
    let shape = (schedule.per_thread.as_slice(), group.hull.rank());
    let most = most_steps(subject.program, strategy, &group.applies, shape)?;
    Ok(strategy.pyramid_height(subject, group, schedule)?.min(most))
}

/// A pyramid height and the powers of two below it, the largest first: the steps of the launches
/// that a run needs.
pub fn heights(pyramid_height: i64) -> Vec<i64> {
    let below = (0..62).map(|bit| 1_i64 << bit).take_while(|digit| *digit < pyramid_height);
    let mut heights: Vec<i64> = below.chain([pyramid_height]).collect();
    heights.reverse();
    heights
}

/// Operations of a step in the code of a kernel.
fn operations(
    program: &Program,
    strategy: &dyn Strategy,
    applies: &[&Apply],
    per_thread: &[i64],
) -> Result<i64, Error> {
    let copies = strategy.copies(per_thread);
    let mut operations = count(applies.len()).saturating_mul(APPLY);
    for piece in applies.iter().flat_map(|apply| &apply.pieces) {
        let own = evaluation(program, piece.function)?;
        let rules = rules(program, strategy, piece)?;
        let reads = match strategy.keeps_cells() {
            true => integer_reads(program, piece.function)?.saturating_mul(INTEGER_READ),
            false => 0,
        };
        let each = own.saturating_add(rules).saturating_add(reads).saturating_mul(copies);
        operations = operations.saturating_add(each);
    }
    Ok(operations)
}

/// Operations of the steps for which a kernel has code beside those of its launch.
fn last_steps(
    program: &Program,
    strategy: &dyn Strategy,
    applies: &[&Apply],
    per_thread: &[i64],
) -> Result<i64, Error> {
    let copies = strategy.copies(per_thread).saturating_mul(strategy.further_steps());
    let mut operations = 0_i64;
    for piece in applies.iter().flat_map(|apply| &apply.pieces) {
        let each = evaluation(program, piece.function)?.saturating_mul(copies);
        operations = operations.saturating_add(each);
    }
    Ok(operations)
}

/// Operations of an evaluation of a point function.
pub fn evaluation(program: &Program, name: &str) -> Result<i64, Error> {
    let own: i64 = mlir::walk(program.function(name)?).iter().map(|op| cost(op, 1)).sum();
    Ok(own.saturating_add(EVALUATION))
}

/// Operations of the boundary rules that the reads of a piece follow.
fn rules(program: &Program, strategy: &dyn Strategy, piece: &Piece) -> Result<i64, Error> {
    let mut operations = 0_i64;
    for argument in program.arguments(piece.function)? {
        let Argument::Read { field, offset } = &argument else { continue };
        let field = program.field(field)?;
        let grid = program.grid_of(field.name)?;
        // Tiles go on beyond a grid that repeats.
        let Some(rule) = field.boundary.filter(|rule| *rule != Boundary::Periodic) else {
            continue;
        };
        let leaves = |(dimension, cells): &(usize, &i64)| {
            Crossed::of(piece, grid, *dimension, **cells).any()
        };
        let crossed = offset.iter().enumerate().filter(leaves).count();
        let each = if rule == Boundary::Reflect { REFLECTION } else { RULE };
        operations = operations.saturating_add(count(crossed) * each);
        if strategy.keeps_cells() && crossed > 0 {
            let extents = Halo::of_read(field, offset).extents(&vec![1; offset.len()]);
            let cells = extents.into_iter().fold(1, i64::saturating_mul);
            let found = Some(cells).filter(|cells| *cells <= MOST_FOUND).unwrap_or(0);
            operations = operations.saturating_add(found * FOUND_CELL);
        }
        if let Boundary::Value(function) = rule
            && crossed > 0
        {
            for op in mlir::walk(program.function(function)?) {
                operations = operations.saturating_add(cost(&op, 2));
            }
        }
    }
    Ok(operations)
}

/// Operations of a kernel with some cells per thread and steps.
pub fn of_kernel(
    program: &Program,
    strategy: &dyn Strategy,
    applies: &[&Apply],
    (per_thread, steps): (&[i64], i64),
) -> Result<i64, Error> {
    let operations = operations(program, strategy, applies, per_thread)?.saturating_mul(steps);
    Ok(operations.saturating_add(last_steps(program, strategy, applies, per_thread)?))
}

/// Declines kernels of some steps whose code would be too long. The result is its operations.
pub fn check(
    program: &Program,
    strategy: &dyn Strategy,
    applies: &[&Apply],
    (per_thread, steps): (&[i64], i64),
) -> Result<i64, Error> {
    let operations = of_kernel(program, strategy, applies, (per_thread, steps))?;
    if operations <= MOST_OPERATIONS {
        return Ok(operations);
    }
    Err(Error::declined(
        Decline::CodeSize,
        format!(
            "the code of a kernel with {steps} step{} per launch and cells per thread \
             {per_thread:?} would have about {operations} operations, and the limit is \
             {MOST_OPERATIONS}; take fewer steps, fewer cells per thread or another strategy",
            if steps == 1 { "" } else { "s" }
        ),
    )
    .at(place(applies)))
}

/// The code of all kernels of a program.
#[derive(Debug, Default)]
pub struct Total(Cell<i64>);

impl Total {
    /// Adds a kernel of some steps. Declines too much code of the kernel, or of all kernels.
    pub fn add(
        &self,
        program: &Program,
        strategy: &dyn Strategy,
        applies: &[&Apply],
        shape: (&[i64], i64),
    ) -> Result<(), Error> {
        let kernel = check(program, strategy, applies, shape)?;
        let all = self.0.get().saturating_add(kernel);
        self.0.set(all);
        if all <= MOST_OF_ALL {
            return Ok(());
        }
        Err(Error::declined(
            Decline::CodeSize,
            format!(
                "the code of all kernels, up to this one, would have about {all} operations, and \
                 the limit is {MOST_OF_ALL}; take fewer steps, fewer cells per thread or another \
                 strategy, or write fewer or shorter functions"
            ),
        )
        .at(place(applies)))
    }
}

fn place(applies: &[&Apply]) -> Place {
    applies.first().map(|apply| mlir::place(apply.op.location())).unwrap_or_default()
}

/// Reads of integer cells that a function has, absolute ones too.
fn integer_reads(program: &Program, name: &str) -> Result<i64, Error> {
    let values = mlir::arguments(function_body(program.function(name)?)?);
    let arguments = program.arguments(name)?.iter().zip(values);
    let integers = arguments.filter(|(argument, value)| {
        matches!(argument, Argument::Read { .. }) && value.r#type().is_integer()
    });
    let gathers = mlir::walk(program.function(name)?).into_iter().filter(|op| {
        let is_integer = |value: &Val| value.r#type().is_integer();
        mlir::name(*op) == GATHER && mlir::results(*op).iter().any(is_integer)
    });
    Ok(count(integers.count() + gathers.count()))
}

/// How much an operation adds to the time of a compile: its instructions, visited once for each
/// region around them. `regions` counts those around its function.
fn cost(op: &Op, mut regions: i64) -> i64 {
    let mut around = op.parent_operation();
    while let Some(parent) = around.filter(|parent| mlir::name(*parent).starts_with("scf.")) {
        regions += 1;
        around = parent.parent_operation();
    }
    instructions(op).saturating_mul(regions)
}

/// Instructions of an operation. A function of libdevice counts those of its PTX where it is
/// inlined, for f32 or f64, whichever has more, in a kernel of twenty calls. A power of f64 counts
/// by its time inlined: 400 of them in a kernel take 2 s, and 800 take 9 s.
fn instructions(op: &Op) -> i64 {
    let wide = || mlir::results(*op).first().and_then(|value| mlir::bit_width(value.r#type()));
    match mlir::name(*op) {
        GATHER => ABSOLUTE_READ,
        "math.powf" if wide() == Some(64) => 250,
        "math.powf" => 107,
        "math.sin" | "math.cos" | "math.tan" => 90,
        "math.log" | "math.log2" => 64,
        "math.erf" | "math.tanh" => 56,
        "math.atan2" => 52,
        "math.exp" | "math.exp2" => 45,
        "math.cbrt" => 43,
        "arith.fptosi" | "arith.fptoui" => CONVERSION,
        _ => 1,
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
