//! Lists of passes: the compiler's own with a few edits, or passes in any order.

use super::options;
use crate::random::Random;
use stencil_passes::pass::Step;
use stencil_passes::registry;

/// Passes of upstream's that may stand between ours.
const UPSTREAM: [&str; 9] = [
    "canonicalize",
    "cse",
    "gpu.module(canonicalize{top-down=false},cse)",
    "gpu.module(canonicalize,cse)",
    "func.func(canonicalize,cse)",
    "func.func(cse)",
    "loop-invariant-code-motion",
    "sccp",
    "symbol-dce",
];

/// The most edits of the compiler's own list.
const MOST_EDITS: i64 = 6;

/// A list from the compiler's own; `rank` is the number of dimensions of tiles.
pub fn list(random: &mut Random, own: &[Step], rank: usize) -> Vec<String> {
    let own: Vec<String> = own.iter().map(Step::text).collect();
    if random.percent(55) {
        let mut steps = own;
        for _ in 0..random.range(0, MOST_EDITS) {
            edit(random, &mut steps, rank);
        }
        return steps;
    }
    let count = random.range(3, 20);
    let mut steps: Vec<String> = (0..count).map(|_| any(random, rank)).collect();
    // Most random lists do not reach the gpu level by themselves.
    if random.percent(80) {
        steps.extend(own);
        for _ in 0..random.range(0, 2) {
            steps.push(any(random, rank));
        }
    }
    steps
}

/// Any pass, of ours in most cases.
fn any(random: &mut Random, rank: usize) -> String {
    if random.percent(15) {
        return random.pick(&UPSTREAM).to_owned();
    }
    let infos: Vec<_> = registry::passes().collect();
    let info = random.pick(&infos);
    options::step(random, info, rank)
}

/// Swaps, drops, doubles, moves or replaces a step, or inserts one.
fn edit(random: &mut Random, steps: &mut Vec<String>, rank: usize) {
    let place = random.below(steps.len() + 1);
    let (one, other) = (random.below(steps.len()), random.below(steps.len()));
    match random.below(7) {
        0 if !steps.is_empty() => steps.swap(one, other),
        1 if !steps.is_empty() => drop(steps.remove(one)),
        2 if !steps.is_empty() => steps.insert(place, steps[one].clone()),
        3 if !steps.is_empty() => {
            let step = steps.remove(one);
            steps.insert(other, step);
        }
        4 if let Some(step) = steps.get_mut(one) => {
            let name = step.split('{').next().unwrap_or_default();
            if let Some(info) = registry::find(name) {
                *step = options::step(random, info, rank);
            }
        }
        _ => steps.insert(place, any(random, rank)),
    }
}
