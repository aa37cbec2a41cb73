//! Cases of the strategy `relay`.

use super::schedules::relay_schedule;
use super::{case, sweeps};
use crate::model::{Case, Program};
use crate::random::Random;

/// Programs that are looked at for a case: few have a single field.
const TRIED: u64 = 256;

/// The case of a seed and a number by the strategy `relay`, whose program has one field of two
/// dimensions.
pub fn in_relays(seed: u64, index: u64) -> Case {
    let mut random = Random::of_case(seed ^ 0x0072_656c_6179_7300, index);
    let mut all = (0..TRIED).map(|turn| case(seed, index.wrapping_mul(TRIED) + turn));
    match all.find(|case| fits(&case.program)) {
        Some(case) => {
            let schedule = relay_schedule(&mut random, &case.program);
            Case { schedules: vec![schedule], ..case }
        }
        None => case(seed, index),
    }
}

/// Whether all functions update one field of two dimensions, the only one.
fn fits(program: &Program) -> bool {
    let updates = program.functions.iter().flat_map(|function| &function.updates);
    let all: Vec<_> = updates.collect();
    let single = all.first().is_some_and(|first| all.iter().all(|field| field == first));
    single
        && program.fields.len() == 1
        && program.grid_of(*all[0]).rank() == 2
        && !sweeps::has_any(program)
}
