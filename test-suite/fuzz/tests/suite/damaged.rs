//! Some damaged inputs, and some hostile use of the built tools, in every test run. An abort in
//! here has no number; `stencil-fuzz` finds it.

use std::collections::BTreeMap;
use stencil_fuzz::hostile::Class;
use stencil_fuzz::outcome::Outcome;
use stencil_fuzz::random::Random;
use stencil_fuzz::{hostile, ir, sl, text};

const SEED: u64 = 0;

#[test]
fn damaged_text_is_refused_in_words() {
    let context = stencil_dialects::context().unwrap();
    let corpus = text::corpus().unwrap();
    let (mut accepted, mut refused) = (0, 0);
    for index in 0..7_000 {
        let input = text::input(&corpus, SEED, index);
        match text::check(&input, &context, &mut Random::of_case(!SEED, index)) {
            Outcome::Accepted(_) => accepted += 1,
            Outcome::Refused => refused += 1,
            Outcome::Failed(fault, message) => {
                panic!("case {index}: {fault:?}: {message}\n{input}")
            }
        }
    }
    assert!(accepted > 250 && refused > 2_500, "{accepted} accepted, {refused} refused");
}

#[test]
fn damaged_sl_is_refused_in_words() {
    let context = stencil_dialects::context().unwrap();
    let corpus = sl::corpus().unwrap();
    let (mut accepted, mut refused) = (0, 0);
    for index in 0..5_000 {
        let input = sl::input(&corpus, SEED, index);
        match sl::check(&input, &context, &mut Random::of_case(!SEED, index)) {
            Outcome::Accepted(_) => accepted += 1,
            Outcome::Refused => refused += 1,
            Outcome::Failed(fault, message) => {
                panic!("case {index}: {fault:?}: {message}\n{input}")
            }
        }
    }
    assert!(accepted > 60 && refused > 2_500, "{accepted} accepted, {refused} refused");
}

#[test]
fn damaged_ir_is_refused_in_words() {
    let context = stencil_dialects::context().unwrap();
    let inputs = ir::inputs(&context).unwrap();
    let (mut accepted, mut refused) = (0, 0);
    for index in 0..500 {
        let input = ir::input(&inputs, SEED, index);
        match ir::check(&input, &context) {
            Outcome::Accepted(_) => accepted += 1,
            Outcome::Refused => refused += 1,
            Outcome::Failed(fault, message) => {
                panic!("case {index}: {fault:?}: {message}\n{}", input.text)
            }
        }
    }
    assert!(accepted > 10 && refused > 250, "{accepted} accepted, {refused} refused");
}

/// How many of a class succeeded or were ended by the signal, and how many were refused.
type Counts = BTreeMap<Class, [u64; 2]>;

#[test]
fn hostile_use_loses_nothing() {
    const WORKERS: u64 = 2;
    let work = |first: u64| {
        let inputs = hostile::inputs().unwrap();
        let mut counts = Counts::new();
        for index in (first..1_000).step_by(WORKERS as usize) {
            let class = hostile::attempt(&inputs, SEED, index).class;
            let refused = match hostile::check(&inputs, SEED, index) {
                Outcome::Accepted(how) => how == "refused",
                Outcome::Refused => true,
                Outcome::Failed(fault, message) => {
                    let script = hostile::attempt(&inputs, SEED, index).script();
                    panic!("case {index}: {fault:?}: {message}\n{script}")
                }
            };
            counts.entry(class).or_default()[usize::from(refused)] += 1;
        }
        counts
    };
    let counts = std::thread::scope(|scope| {
        let workers = (0..WORKERS).map(|first| scope.spawn(move || work(first)));
        let workers = workers.collect::<Vec<_>>().into_iter();
        workers.map(|worker| worker.join().unwrap()).collect::<Vec<_>>()
    });
    let least = [
        (Class::Options, [40, 200]),
        (Class::Files, [30, 60]),
        // No device is there to run a plan.
        (Class::Plans, [0, 100]),
        (Class::Headers, [5, 60]),
        (Class::Signals, [20, 0]),
    ];
    for (class, least) in least {
        let [done, refused] = [0, 1].map(|at| {
            counts
                .iter()
                .filter_map(|counts| counts.get(&class))
                .map(|count| count[at])
                .sum::<u64>()
        });
        let enough = done >= least[0] && refused >= least[1];
        assert!(enough, "{class:?}: {done} done, {refused} refused");
    }
}
