//! Cases of the strategy `patch`.

use super::schedules::patch_schedule;
use super::{case, sweeps};
use crate::model::{Case, Program};
use crate::random::Random;

/// Programs that are looked at for a case.
const TRIED: u64 = 64;

/// The case of a seed and a number whose program is of two dimensions, by the strategy `patch`.
pub fn in_patches(seed: u64, index: u64) -> Case {
    let mut random = Random::of_case(seed ^ 0x0070_6174_6368_6573, index);
    let flat = |program: &Program| {
        let first = program.functions.first().and_then(|function| function.updates.first());
        first.is_some_and(|field| program.grid_of(*field).rank() == 2) && !sweeps::has_any(program)
    };
    let mut all = (0..TRIED).map(|turn| case(seed, index.wrapping_mul(TRIED) + turn));
    let case = all.find(|case| flat(&case.program));
    let case = case.unwrap_or_else(|| super::case(seed, index));
    Case { schedules: vec![patch_schedule(&mut random, &case.program)], ..case }
}
