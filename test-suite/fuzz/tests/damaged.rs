//! Some damaged inputs, and some hostile use of the built tools, in every test run. An abort in
//! here has no number; `stencil-fuzz` finds it.

use stencil_fuzz::outcome::Outcome;
use stencil_fuzz::random::Random;
use stencil_fuzz::{hostile, ir, text};

const SEED: u64 = 0;

#[test]
fn damaged_text_is_refused_in_words() {
    let context = stencil_dialects::context().unwrap();
    let corpus = text::corpus().unwrap();
    let (mut accepted, mut refused) = (0, 0);
    for index in 0..5_000 {
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

#[test]
fn hostile_use_loses_nothing() {
    const WORKERS: u64 = 2;
    let work = |first: u64| {
        let inputs = hostile::inputs().unwrap();
        let counts = (first..1_000).step_by(WORKERS as usize).map(|index| {
            match hostile::check(&inputs, SEED, index) {
                Outcome::Accepted("done") => (1_u64, 0_u64),
                Outcome::Failed(fault, message) => {
                    let script = hostile::attempt(&inputs, SEED, index).script();
                    panic!("case {index}: {fault:?}: {message}\n{script}")
                }
                _ => (0, 1),
            }
        });
        counts.fold((0_u64, 0_u64), |sum, count| (sum.0 + count.0, sum.1 + count.1))
    };
    let counts = std::thread::scope(|scope| {
        let workers = (0..WORKERS).map(|first| scope.spawn(move || work(first)));
        let workers = workers.collect::<Vec<_>>().into_iter();
        workers.map(|worker| worker.join().unwrap()).collect::<Vec<_>>()
    });
    let done: u64 = counts.iter().map(|count| count.0).sum();
    let refused: u64 = counts.iter().map(|count| count.1).sum();
    assert!(done > 40 && refused > 200, "{done} done, {refused} refused");
}
