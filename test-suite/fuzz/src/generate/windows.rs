//! Cases for runs out of core.

use super::processor::for_processor;
use super::{computes, plain_case, program, repeats, schedule, sweeps};
use crate::model::{Case, Kind, Program, Rule};
use crate::random::Random;

/// The case of a seed and a number for runs out of core: many rows of few cells, and many steps.
/// Most programs can run in windows. Every fourth one runs on the processor.
pub fn out_of_core(seed: u64, index: u64) -> Case {
    let mut random = Random::of_case(seed ^ 0x0077_696e_646f_7773, index);
    let rank = random.pick(&[1, 2, 2, 2, 3]);
    let program = loop {
        let ruled = random.percent(40);
        let mut program = program(&mut random, rank, [20, 14, 7], ruled, true);
        repeats(&mut random, &mut program, 15);
        if computes(&program) && (is_local(&program) || random.percent(5)) {
            break program;
        }
    };
    let schedule = match index % 4 {
        0 => for_processor(&mut random, &program),
        _ => schedule(&mut random, &program),
    };
    Case { windows: true, ..plain_case(&mut random, program, schedule) }
}

/// Whether each function reads near cells alone, but for those of const fields.
fn is_local(program: &Program) -> bool {
    let is_updated =
        |field: &usize| program.functions.iter().any(|function| function.updates.contains(field));
    let mut gathers = false;
    for value in program.values() {
        value.visit(&mut |part| {
            gathers |= matches!(&part.kind, Kind::Gather(field, _) if is_updated(field));
        });
    }
    let periodic = program.fields.iter().any(|field| field.rule == Some(Rule::Periodic));
    !gathers && !periodic && !sweeps::has_any(program)
}
