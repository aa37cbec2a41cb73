//! Values of the options of passes, mostly small, so that small programs meet the edges of tiles.

use crate::random::Random;
use stencil_passes::pass::Info;
use stencil_passes::strategies;

/// A pass with some of its options, as in the text of a pipeline; `rank` is the number of
/// dimensions of tiles.
pub fn step(random: &mut Random, info: &Info, rank: usize) -> String {
    let likely = random.pick(&[0, 30, 30, 70]);
    let mut options = Vec::new();
    for (name, _) in info.options {
        // A choice without a strategy looks at all of them, which takes long.
        let chance = if *name == "strategy" { 85 } else { likely };
        if let Some(value) = random.percent(chance).then(|| value(random, info.name, name, rank)) {
            options.extend(value.map(|value| format!("{name}={value}")));
        }
    }
    match options.as_slice() {
        [] => info.name.to_owned(),
        options => format!("{}{{{}}}", info.name, options.join(" ")),
    }
}

/// A value of an option; none for an option that is not known here.
fn value(random: &mut Random, pass: &str, option: &str, rank: usize) -> Option<String> {
    // Some lists are of the wrong length.
    let rank = if random.percent(92) { rank } else { random.range(1, 3) as usize };
    let number = |random: &mut Random, values: &[i64]| random.pick(values).to_string();
    let switch = |random: &mut Random| random.pick(&["on", "off"]).to_owned();
    Some(match (pass, option) {
        ("flexible-hyper-tiles", "heights") => switch(random),
        (_, "always" | "blocked" | "arrays" | "constants" | "split-interior" | "measured") => {
            switch(random)
        }
        (_, "devices") => random.pick(&["1", "2", "3", "2x2"]).to_string(),
        (_, "link") => random.pick(&["10000:50000", "1:1000000"]).to_string(),
        (_, "strategy") => random.pick(strategies::ALL).name().to_owned(),
        (_, "region") => random.pick(&["shrinking", "fixed"]).to_owned(),
        (_, "tile") => list(random, rank, &[1, 2, 3, 4, 5, 7, 8, 16, 24, 32, 64]),
        (_, "threads" | "block") => list(random, rank, &[1, 2, 4, 8, 16, 32]),
        (_, "per-thread") => list(random, rank, &[1, 1, 1, 2, 3, 4]),
        (_, "heights") => {
            let count = random.range(1, 3) as usize;
            list(random, count, &[1, 2, 3, 4])
        }
        (_, "pyramid-height") => number(random, &[1, 1, 2, 2, 3, 4, 5]),
        (_, "copiers") => number(random, &[1, 2, 4, 8]),
        (_, "time") => number(random, &[1, 2, 3, 4, 8, 16]),
        (_, "width") => number(random, &[1, 2, 3, 5, 8, 16, 64]),
        (_, "cells") => number(random, &[1, 2, 32]),
        (_, "sweeps" | "rounds") => number(random, &[1, 2, 3, 4, 8]),
        (_, "max-shared") => number(random, &[0, 256, 4_096, 49_152, 232_448]),
        (_, "max-threads") => number(random, &[1, 32, 64, 256, 1_024]),
        (_, "ahead") => number(random, &[1, 2, 3, 5]),
        (_, "prefetch") => number(random, &[0, 1, 2, 7]),
        (_, "unroll") => number(random, &[1, 2, 3, 4, 8]),
        (_, "registers") => number(random, &[16, 32, 64, 128, 255]),
        (_, "rows") => number(random, &[1, 2, 3]),
        (_, "warps") => number(random, &[1, 2, 3, 4, 8]),
        (_, "blocks") => number(random, &[1, 2, 3, 5, 132]),
        (_, "steps") => number(random, &[0, 1, 5, 1_000, 1_000_000]),
        (_, "index-bitwidth") => number(random, &[32, 64]),
        (_, "looks") => number(random, &[1, 1_000]),
        _ => return None,
    })
}

fn list(random: &mut Random, count: usize, values: &[i64]) -> String {
    let numbers = (0..count).map(|_| random.pick(values).to_string());
    numbers.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use stencil_passes::{pipeline_text, registry};

    #[test]
    fn every_option_has_values_that_its_pass_accepts() {
        let random = &mut Random::of_case(0, 0);
        for info in registry::passes() {
            for (option, _) in info.options {
                for _ in 0..50 {
                    let value = value(random, info.name, option, 2);
                    let value = value.unwrap_or_else(|| panic!("{}: {option}", info.name));
                    let text = format!("{}{{{option}={value}}}", info.name);
                    let parsed = pipeline_text::parse(&text);
                    assert!(parsed.is_ok(), "{text}: {:?}", parsed.err());
                }
            }
        }
    }
}
