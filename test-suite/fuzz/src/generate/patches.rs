//! Cases of the strategy `patch`.

use super::schedules::patch_schedule;
use super::{case, sweeps};
use crate::model::{Case, Program};
use crate::random::Random;

/// Programs that are looked at for a case.
const TRIED: u64 = 64;

/// The case of a seed and a number by the strategy `patch`, whose program is of two dimensions or
/// of three.
pub fn in_patches(seed: u64, index: u64) -> Case {
    let mut random = Random::of_case(seed ^ 0x0070_6174_6368_6573, index);
    let fits = |program: &Program| rank(program) > 1 && !sweeps::has_any(program);
    let mut all = (0..TRIED).map(|turn| case(seed, index.wrapping_mul(TRIED) + turn));
    match all.find(|case| fits(&case.program)) {
        Some(case) => {
            let schedule = patch_schedule(&mut random, &case.program, rank(&case.program));
            Case { schedules: vec![schedule], ..case }
        }
        None => case(seed, index),
    }
}

/// Dimensions of the first function's grid.
fn rank(program: &Program) -> usize {
    let first = program.functions.first().and_then(|function| function.updates.first());
    first.map_or(1, |field| program.grid_of(*field).rank())
}
