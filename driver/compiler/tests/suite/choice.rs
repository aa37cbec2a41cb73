//! The choice among schedules that were measured on an H200, by the model of today. Decision 049
//! has the table that these tests compute.

use crate::model::{candidates_of, integers, options, record, suite};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;
use stencil_compiler::{Choice, Options, Source};

/// A program with the schedules of it that were measured.
struct Measured {
    source: Source,
    sizes: Vec<(String, i64)>,
    fast_math: bool,
    /// Rates in GCells/s.
    schedules: Vec<(Choice, f64)>,
}

/// The choice of a program: the schedule of the least expected time.
struct Chosen {
    name: String,
    measured: f64,
    best: f64,
    naive: Option<f64>,
    /// Measured over predicted rates of all schedules.
    errors: Vec<f64>,
}

/// The schedule of a line of a record.
fn schedule(line: &BTreeMap<String, String>) -> Choice {
    Choice {
        strategy: Some(line["strategy"].clone()),
        tile: Some(integers(&line["tile"])),
        per_thread: Some(integers(&line["per_thread"])),
        pyramid_height: Some(line["height"].parse().unwrap()),
        ..Choice::default()
    }
}

/// The random programs of a record, which ran so many steps. Schedules of whose steps kernels of
/// fewer steps run more than a twentieth are left out: their rates are those of other kernels too.
fn random_programs(name: &str, steps: i64) -> Vec<Measured> {
    let text = std::fs::read_to_string(suite().join(format!("bench/results/{name}.programs")));
    let text = text.unwrap();
    let lines = record(&format!("{name}.tsv"));
    let programs = text.split("# case ").skip(1).map(|program| {
        let (head, text) = program.split_once('\n').unwrap();
        let mut words = head.split(' ');
        let case = words.next().unwrap();
        let sizes = words.map(|size| size.split_once('=').unwrap());
        let of_case = lines.iter().filter(|line| line["case"] == case);
        let schedules = of_case.map(|line| (schedule(line), line["gcells"].parse().unwrap()));
        let whole = |choice: &Choice| {
            let height = choice.pyramid_height.unwrap_or(1);
            20 * (steps % height) <= steps
        };
        Measured {
            source: Source { name: format!("case{case}.stencil"), text: text.to_owned() },
            sizes: sizes.map(|(name, size)| (name.to_owned(), size.parse().unwrap())).collect(),
            fast_math: false,
            schedules: schedules.filter(|(choice, _)| whole(choice)).collect(),
        }
    });
    programs.collect()
}

/// The rows of the search over all schedules that the model looks at.
fn searched() -> Vec<Measured> {
    let mut found: BTreeMap<String, Measured> = BTreeMap::new();
    for line in record("2026-11-22-h200-search.tsv") {
        let (program, kind) = (&line["program"], &line["type"]);
        let file = suite().join(format!("programs/{program}.stencil"));
        let text = std::fs::read_to_string(file).unwrap().replace("f32", kind);
        let declared = text.lines().filter_map(|line| line.strip_prefix("param "));
        let params = declared.filter(|rest| !rest.contains('='));
        let params = params.map(|rest| rest.split(['#', ' ']).next().unwrap().to_owned());
        let sizes = params.zip(integers(&line["cells"])).collect();
        let name = format!("{program} {kind}");
        let source = Source { name: name.clone(), text: text.clone() };
        let new = Measured { source, sizes, fast_math: true, schedules: Vec::new() };
        let rows = found.entry(name).or_insert(new);
        rows.schedules.push((schedule(&line), line["gcells"].parse().unwrap()));
    }
    found.into_values().collect()
}

/// The choice of a program; none where all of its schedules are declined today.
fn choose(program: &Measured) -> Option<Chosen> {
    // A schedule may have been measured several times.
    let mut rates: Vec<(Choice, Vec<f64>)> = Vec::new();
    for (choice, rate) in &program.schedules {
        match rates.iter_mut().find(|(other, _)| other == choice) {
            Some((_, all)) => all.push(*rate),
            None => rates.push((choice.clone(), vec![*rate])),
        }
    }
    let mut found = Vec::new();
    for (choice, mut rates) in rates {
        rates.sort_by(f64::total_cmp);
        let options: Options = options(program.sizes.clone(), choice.clone(), program.fast_math);
        // Some tiles of the records are declined today.
        let Some(candidate) = candidates_of(&program.source, options).unwrap_or_default().pop()
        else {
            continue;
        };
        let naive = choice.strategy.as_deref() == Some("naive");
        found.push((candidate.expected, candidate.gcells(), median(&rates), naive));
    }
    let chosen = found.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(Chosen {
        name: program.source.name.clone(),
        measured: chosen.2,
        best: found.iter().map(|one| one.2).fold(0.0, f64::max),
        naive: found.iter().find(|one| one.3).map(|one| one.2),
        errors: found.iter().map(|one| one.2 / one.1).collect(),
    })
}

/// The middle one of sorted numbers; of an even number, the mean of the middle two.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    } else {
        sorted[middle]
    }
}

/// The line of decision 049 for some programs, whose first cell is given.
fn line(first: &str, programs: &[Measured]) -> String {
    let chosen = Mutex::new(Vec::new());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for first in 0..threads {
            let chosen = &chosen;
            scope.spawn(move || {
                for program in programs.iter().skip(first).step_by(threads) {
                    chosen.lock().unwrap().extend(choose(program));
                }
            });
        }
    });
    let mut chosen = chosen.into_inner().unwrap();
    chosen.sort_by(|a, b| a.name.cmp(&b.name));
    for one in &chosen {
        let of_naive = one.measured / one.naive.unwrap_or(one.measured);
        println!(
            "{}: {:.2} of the best, {of_naive:.2} of naive",
            one.name,
            one.measured / one.best
        );
    }
    let near = chosen.iter().filter(|one| one.measured >= 0.85 * one.best).count();
    let behind = chosen.iter().filter(|one| one.naive > Some(one.measured / 0.95)).count();
    let logarithms: f64 = chosen.iter().map(|one| (one.measured / one.best).ln()).sum();
    let mean = (logarithms / chosen.len() as f64).exp();
    let errors = chosen.iter().flat_map(|one| &one.errors);
    let mut errors: Vec<f64> = errors.map(|error| error.ln().abs().exp_m1()).collect();
    errors.sort_by(f64::total_cmp);
    let error = 100.0 * median(&errors);
    format!("| {first} | {} | {near} | {behind} | {mean:.3} | {error:.0} % |", chosen.len())
}

/// Holds a line against the table of decision 049.
fn stands_in_the_decision(line: &str) {
    let file = suite().join("../docs/decisions/049-what-the-choice-misses.md");
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.lines().any(|other| other == line), "decision 049 lacks the line\n{line}");
}

#[test]
fn the_programs_that_fitted_the_model() {
    let programs = random_programs("2026-11-27-h200-choice-training", 24);
    stands_in_the_decision(&line("35 fitted, now", &programs));
}

#[test]
fn programs_that_the_model_had_not_seen() {
    let programs = random_programs("2026-11-28-h200-choice", 240);
    stands_in_the_decision(&line("others, now", &programs));
}

#[test]
fn the_searches_of_named_programs() {
    stands_in_the_decision(&line("searches, now", &searched()));
}
