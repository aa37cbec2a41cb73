//! Functions that read values of their own sweep.

use super::{computes, plain_case, program, repeats, rows, schedules};
use crate::model::*;
use crate::random::Random;

/// The case of a seed and a number whose program reads values of its own sweep. It is small, and
/// compiled and run once, so that many run in a short time.
pub fn sweep(seed: u64, index: u64) -> Case {
    let mut random = Random::of_case(seed, index);
    let rank = random.pick(&[1, 2, 2, 2, 2, 2, 3, 3]);
    // A strip has at least 32 rows.
    let strips = rank == 2 && random.percent(35);
    let most = if strips { [30, 70, 8] } else { [30, 18, 8] };
    let program = loop {
        let ruled = random.percent(30);
        let mut program = program(&mut random, rank, most, ruled, false);
        prime(&mut random, &mut program);
        if strips && random.percent(60) {
            rows::leave(&mut random, &mut program);
        }
        program.steps = program.steps.min(3);
        repeats(&mut random, &mut program, 15);
        if has_any(&program) && (computes(&program) || random.percent(20)) {
            break program;
        }
    };
    let schedule = schedules::sweep(&mut random, &program, strips);
    plain_case(&mut random, program, schedule)
}

/// Makes most reads of updated fields those of the same sweep, where points before are read.
pub fn prime(random: &mut Random, program: &mut Program) {
    // A rule that takes another cell has no value of the same sweep for each point.
    let ordered: Vec<bool> = (program.fields.iter())
        .map(|field| match &field.rule {
            None => true,
            Some(Rule::Value(value)) => {
                let mut nearest = false;
                value.visit(&mut |part| nearest |= part.kind == Kind::Nearest);
                !nearest
            }
            Some(_) => false,
        })
        .collect();
    for function in &mut program.functions {
        let updates = function.updates.clone();
        // A sweep reads no field at computed places that it updates.
        let mut gathers = false;
        for value in function.pieces.iter().flat_map(Piece::exprs) {
            value.visit(&mut |part| {
                gathers |= matches!(part.kind, Kind::Gather(field, _) if updates.contains(&field));
            });
        }
        if gathers {
            continue;
        }
        for value in function.pieces.iter_mut().flat_map(Piece::exprs_mut) {
            value.change(&mut |part| {
                let Kind::Read(field, offset) = &part.kind else { return };
                let before =
                    offset.iter().find(|cells| **cells != 0).is_some_and(|first| *first < 0);
                if before && updates.contains(field) && ordered[*field] && random.percent(80) {
                    part.kind = Kind::Current(*field, offset.clone());
                }
            });
        }
    }
}

/// How many rows away such values are read along each dimension but the last of so many, and
/// whether some lie in later columns, or in later rows of a plane.
pub fn reach(program: &Program, rank: usize) -> (Vec<i64>, bool) {
    let (mut rows, mut later) = (vec![1; rank.saturating_sub(1)], false);
    for value in program.values() {
        value.visit(&mut |part| {
            let Kind::Current(_, offset) = &part.kind else { return };
            later |= offset.iter().any(|cells| *cells > 0);
            for (rows, cells) in rows.iter_mut().zip(offset) {
                *rows = cells.abs().max(*rows);
            }
        });
    }
    (rows, later)
}

/// Whether a program has such functions.
pub fn has_any(program: &Program) -> bool {
    let mut any = false;
    for value in program.values() {
        value.visit(&mut |part| any |= matches!(part.kind, Kind::Current(..)));
    }
    any
}
