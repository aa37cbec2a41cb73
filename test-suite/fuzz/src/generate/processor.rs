//! Cases for the processor of this machine.

use super::{case, reduction, sweep};
use crate::model::{Case, PROCESSOR, Program, Schedule};
use crate::random::Random;

/// The case of a seed and a number for the processor of this machine: a program, one that reads
/// values of its own sweep, or one with reductions, with tiles of few cells in most cases.
pub fn on_processor(seed: u64, index: u64) -> Case {
    let mut random = Random::of_case(seed ^ 0x0070_726f_6365_7373, index);
    let case = match index % 4 {
        0 => sweep(seed, index),
        1 => reduction(seed, index),
        _ => case(seed, index),
    };
    let schedule = for_processor(&mut random, &case.program);
    Case {
        schedules: vec![schedule],
        round_trip: false,
        transpose: false,
        shift: None,
        outline: false,
        ptx: false,
        ..case
    }
}

/// A schedule for the processor, mostly with tiles of few cells.
pub fn for_processor(random: &mut Random, program: &Program) -> Schedule {
    // A tile has the dimensions of a function: those of no function are refused.
    let updated = program.functions.iter().flat_map(|function| &function.updates);
    let ranks = updated.map(|field| program.grid_of(*field).rank()).max().unwrap_or(1);
    let sides = [9, 21, 40].iter().rev().take(ranks).rev();
    let tile: Vec<i64> = sides.map(|side| random.range(1, *side)).collect();
    Schedule {
        strategy: PROCESSOR,
        tile: random.percent(70).then_some(tile),
        height: random.percent(60).then(|| random.range(1, 5)),
        per_thread: None,
        flags: Vec::new(),
        combination: None,
    }
}
