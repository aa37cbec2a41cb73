//! How much code the kernels of a schedule have, told before any is built.
//!
//! A kernel has the code of every point function once for each step, piece, and copy: a thread of
//! some strategies has code of its own for each of its cells. The time of a compile is
//! proportional to that. Therefore no candidate has many evaluations where fewer steps have less,
//! and a schedule that was asked for is declined where it would take minutes.

use crate::schedule::strategy::Strategy;
use melior::ir::operation::OperationLike;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir::{self, Op};
use stencil_dialects::stencil::{Apply, Program};

/// Evaluations of point functions in the code of a candidate of several steps.
const MOST_EVALUATIONS: i64 = 400;

/// Operations in the code of a kernel. Kernels just below take 5 to 15 s to compile.
pub const MOST_OPERATIONS: i64 = 200_000;

/// Operations beside those of its function that an evaluation takes.
const EVALUATION: i64 = 10;

/// Operations of an apply's loops, barriers and versions.
const APPLY: i64 = 800;

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
    let mut operations = count(applies.len()).saturating_mul(APPLY);
    for piece in applies.iter().flat_map(|apply| &apply.pieces) {
        let own: i64 = mlir::walk(program.function(piece.function)?).iter().map(cost).sum();
        let each = own.saturating_add(EVALUATION).saturating_mul(copies);
        operations = operations.saturating_add(each);
    }
    operations = operations.saturating_mul(steps);
    if operations <= MOST_OPERATIONS {
        return Ok(());
    }
    let place = applies.first().map(|apply| mlir::place(apply.op.location())).unwrap_or_default();
    Err(Error::declined(
        Decline::CodeSize,
        format!(
            "the code of a kernel with {steps} step{} per launch and cells per thread \
             {per_thread:?} would have about {operations} operations, and the limit is \
             {MOST_OPERATIONS}; take fewer steps, fewer cells per thread or another strategy",
            if steps == 1 { "" } else { "s" }
        ),
    )
    .at(place))
}

/// How much an operation adds to the time of a compile: its instructions, visited once for each
/// region around them.
fn cost(op: &Op) -> i64 {
    let mut regions = 1;
    let mut around = op.parent_operation();
    while let Some(parent) = around.filter(|parent| mlir::name(*parent).starts_with("scf.")) {
        regions += 1;
        around = parent.parent_operation();
    }
    instructions(op).saturating_mul(regions)
}

/// Instructions of an operation. Libdevice's functions are inlined: theirs are those of PTX for f32
/// or f64, whichever has more, in a kernel of twenty calls.
fn instructions(op: &Op) -> i64 {
    match mlir::name(*op) {
        "math.powf" => 107,
        "math.sin" | "math.cos" | "math.tan" => 90,
        "math.log" | "math.log2" => 64,
        "math.erf" | "math.tanh" => 56,
        "math.atan2" => 52,
        "math.exp" | "math.exp2" => 45,
        "math.cbrt" => 43,
        _ => 1,
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::lowering::Settings;
    use crate::schedule::predict;
    use crate::strategies;
    use crate::subject::Subject;
    use melior::ir::Module;
    use stencil_dialects::tiled::Choice;

    /// A step of so many applies of one piece, from field to field of a plane.
    fn program(applies: usize) -> String {
        let map = |bounds: &str| format!("affine_map<()[n] -> ({bounds})>");
        let mut text = format!(
            "module attributes {{stencil.params = [\"N\"], stencil.steps = {}}} {{\n\
             \"stencil.grid\"() {{sym_name = \"G\", lower = {}, upper = {}}} : () -> ()\n",
            map("4"),
            map("0, 0"),
            map("n - 1, n - 1")
        );
        for number in 0..applies {
            text += &format!(
                "\"stencil.field\"() {{sym_name = \"A{number}\", grid = @G, type = f32, \
                 role = \"state\"}} : () -> ()\n"
            );
        }
        for number in 0..applies {
            text += &format!(
                "func.func private @f{number}(%a: f32 {{stencil.read = @A{number}, \
                 stencil.offset = array<i64: -1, 0>}}) -> f32 {{ return %a : f32 }}\n\
                 \"stencil.apply\"() {{updates = [@A{}], pieces = [{{function = @f{number}, \
                 lower = {}, upper = {}}}]}} : () -> ()\n",
                (number + 1) % applies,
                map("1, 1"),
                map("n - 2, n - 2")
            );
        }
        text + "}"
    }

    #[test]
    fn candidates_of_many_functions_have_no_more_code_than_those_of_few() {
        let context = stencil_dialects::context().unwrap();
        for applies in [1, 2, 8, 32, 100, 300] {
            let module = Module::parse(&context, &program(applies)).unwrap();
            let program = Program::read(&module).unwrap();
            let subject = Subject::of(&module, &program).unwrap();
            let open =
                predict::openings(&context, &subject, &Choice::default(), Settings::default());
            let open = open.unwrap();
            assert!(open.len() <= 32, "{applies}: {}", open.len());
            for choice in &open {
                let strategy = strategies::named(choice.strategy.as_deref().unwrap()).unwrap();
                let steps = choice.pyramid_height.unwrap_or(1);
                let code = steps * count(applies) * strategy.usual_copies(2);
                assert!(steps == 1 || code <= MOST_EVALUATIONS, "{applies}: {choice:?}");
            }
        }
    }

    #[test]
    fn code_is_declined_by_its_operations() {
        let context = stencil_dialects::context().unwrap();
        let module = Module::parse(&context, &program(2)).unwrap();
        let program = Program::read(&module).unwrap();
        let applies: Vec<_> = program.applies.iter().collect();
        let strategy = strategies::named("block").unwrap();
        let declined = |steps| {
            check(&program, strategy, &applies, (&[4, 1], steps)).err().map(|error| error.message)
        };
        // An apply is 800 operations, and four evaluations of its function and return and 10 each.
        let each = 2 * (800 + 4 * (2 + 10));
        assert_eq!(declined(MOST_OPERATIONS / each), None);
        let message = declined(MOST_OPERATIONS / each + 1).unwrap();
        assert!(message.contains("the limit is 200000"), "{message}");
    }
}
