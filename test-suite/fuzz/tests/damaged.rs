//! Some damaged inputs in every test run. An abort in here has no number; `stencil-fuzz` finds it.

use stencil_fuzz::outcome::Outcome;
use stencil_fuzz::random::Random;
use stencil_fuzz::{ir, text};

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
