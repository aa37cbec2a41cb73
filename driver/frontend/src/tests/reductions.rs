//! What reductions and `until` mean: the order of sums, values before the first step, NaNs.

use super::{line, messages, program};
use crate::oracle::{self, Ended};
use crate::sizes::Sizes;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use stencil_runtime::array::{Array, Data};

/// Runs a program of `A`, f32 cells of a line; gives all outputs and how it ended.
fn run(text: &str, cells: &[f32], steps: u64) -> (BTreeMap<String, Array>, Ended) {
    let program = program(text);
    let sizes: Sizes = program.params.keys().map(|id| (id, cells.len() as i64)).collect();
    let input = Array::new(vec![cells.len()], Data::F32(cells.to_vec())).unwrap();
    let mut fields = BTreeMap::from([("A".to_owned(), input)]);
    let scalars = BTreeMap::new();
    let mut go_on = |_, _| ControlFlow::Continue(());
    let ended = oracle::run(&program, &sizes, &scalars, steps, &mut fields, &mut go_on).unwrap();
    (fields, ended)
}

/// The value of a reduction.
fn value(outputs: &BTreeMap<String, Array>, name: &str) -> f64 {
    outputs[name].get(0).unwrap()
}

const STAY: &str = "fn stay -> A [0] = A[0]\n";

#[test]
fn a_place_is_the_first_in_order_and_a_nan_is_best() {
    let text = line(&format!(
        "{STAY}reduce high : i64 = argmax(A[0]) on [1..N-1]\n\
         reduce low : i64 = argmin(A[0]) on [0..N-1]\n\
         reduce none : i64 = argmax(A[0]) on [N..N-1]\nsteps 1"
    ));
    let places = |cells: &[f32]| {
        let (outputs, _) = run(&text, cells, 1);
        ["high", "low"].map(|name| value(&outputs, name))
    };
    assert_eq!(places(&[9.0, 2.0, 7.0, 7.0, 2.0, 1.0, 1.0]), [1.0, 5.0]);
    assert_eq!(places(&[9.0, 2.0, 7.0, f32::NAN, 2.0, f32::NAN, 1.0]), [2.0, 3.0]);
    let (outputs, _) = run(&text, &[1.0, 2.0], 1);
    assert_eq!(value(&outputs, "none"), i64::MAX as f64);
    assert_eq!(value(&outputs, "high.best"), 2.0);
}

#[test]
fn a_sum_goes_by_lanes_halves_and_blocks() {
    // 2^24 + 1 is no f32: what meets first tells.
    let big = 16_777_216.0;
    let text = line(&format!("{STAY}reduce s : f32 = sum(A[0]) on [0..N-1]\nsteps 1"));
    let sum = |ones: &[usize], cells: usize| {
        let mut all = vec![0.0; cells];
        all[0] = big;
        ones.iter().for_each(|at| all[*at] = 1.0);
        value(&run(&text, &all, 1).0, "s") - f64::from(big)
    };
    // In the lane of the large number each 1 is lost.
    assert_eq!(sum(&[256, 512], 600), 0.0);
    // Two in another lane make 2.
    assert_eq!(sum(&[255, 511], 600), 2.0);
    // Lanes 1 and 129 meet before lane 0.
    assert_eq!(sum(&[1, 129], 600), 2.0);
    // Lanes 64 and 128: the first halves are 0 and 128, so that the 1 of lane 128 is lost.
    assert_eq!(sum(&[64, 128], 600), 0.0);
    // In another block they are one value before the blocks meet, whatever their lanes.
    assert_eq!(sum(&[8192, 8193], 9000), 2.0);
    // Those of two other blocks meet the large one each by itself.
    assert_eq!(sum(&[8192, 2 * 8192], 3 * 8192), 0.0);
    assert_eq!(sum(&[8192, 3 * 8192], 4 * 8192), 2.0);
}

#[test]
fn a_nan_anywhere_is_the_least_and_the_largest() {
    let text = line(&format!(
        "{STAY}reduce low : f32 = min(A[0]) on [0..N-1]\n\
         reduce high : f32 = max(A[0]) on [0..N-1]\n\
         steps 10 until high < 5"
    ));
    let (outputs, ended) = run(&text, &[1.0, f32::NAN, 3.0], 10);
    assert!(value(&outputs, "low").is_nan() && value(&outputs, "high").is_nan());
    assert_eq!(ended, Ended { steps: 10, met: false });
    let (outputs, ended) = run(&text, &[1.0, -2.0, 3.0], 10);
    assert_eq!((value(&outputs, "low"), value(&outputs, "high")), (-2.0, 3.0));
    assert_eq!(ended, Ended { steps: 1, met: true });
}

#[test]
fn boxes_without_points_have_neutral_values() {
    let on = "on [1..N-2]";
    let text = line(&format!(
        "{STAY}reduce s : f32 = sum(A[0]) {on}\nreduce low : i32 = min(7) {on}\n\
         reduce high : f32 = max(A[0]) {on}\nreduce c : i64 = count(A[0] > 0) {on}\n\
         reduce a : bool = any(A[0] > 0) {on}\nreduce b : bool = all(A[0] > 0) {on}\n\
         reduce both : i64 = count(b && !a) on [0]\nsteps 1"
    ));
    let (outputs, _) = run(&text, &[4.0, 5.0], 1);
    let found = ["s", "low", "c", "a", "b", "both"].map(|name| value(&outputs, name));
    assert_eq!(found, [0.0, 2_147_483_647.0, 0.0, 0.0, 1.0, 1.0]);
    assert_eq!(value(&outputs, "high"), f64::NEG_INFINITY);
}

#[test]
fn items_see_reductions_of_this_step_or_of_the_step_before() {
    let text = line(
        "fn early -> A [0] = A[0] + last\nreduce now : f32 = sum(A[0]) on [0..N-1]\n\
         fn late -> A [1] = now\nreduce last : f32 = max(A[0]) on [0..N-1] initially 100\n\
         reduce steps_so_far : i64 = sum(steps_so_far + 1) on [0] initially 40\n\
         reduce step : i64 = sum(t) on [0]\nsteps 2",
    );
    // Step 0: A = [101, 2], now = 103, A = [101, 103], last = 103.
    // Step 1: A = [204, 103], now = 307, A = [204, 307].
    let (outputs, _) = run(&text, &[1.0, 2.0], 2);
    assert_eq!((outputs["A"].get(0), outputs["A"].get(1)), (Some(204.0), Some(307.0)));
    let found = ["now", "last", "steps_so_far", "step"].map(|name| value(&outputs, name));
    assert_eq!(found, [307.0, 307.0, 42.0, 1.0]);
    // A run of no steps has the values before the first one.
    let (outputs, ended) = run(&text, &[1.0, 2.0], 0);
    let found = ["now", "last", "steps_so_far", "step"].map(|name| value(&outputs, name));
    assert_eq!((found, ended.steps), ([0.0, 100.0, 40.0, 0.0], 0));
}

#[test]
fn a_run_looks_at_its_condition_every_so_many_steps() {
    let grows = "fn grow -> A [0..N-1] = A[0] + 1\nreduce high : f32 = max(A[0]) on [0..N-1]\n";
    let ended = |every: &str, steps| {
        let text = line(&format!("{grows}steps 20 until high >= 4 {every}"));
        let (outputs, ended) = run(&text, &[0.0], steps);
        assert_eq!(value(&outputs, "high"), ended.steps as f64);
        (ended.steps, ended.met)
    };
    assert_eq!(ended("", 20), (4, true));
    assert_eq!(ended("every 3", 20), (6, true));
    assert_eq!(ended("every 4", 20), (4, true));
    // Steps behind the last look are taken, and not looked at.
    assert_eq!(ended("every 3", 5), (5, false));
    assert_eq!(ended("every 30", 20), (20, false));
}

#[test]
fn a_condition_may_use_steps_scalars_and_several_reductions() {
    let text = line(
        "scalar most : f32 = 3\nfn grow -> A [0..N-1] = A[0] + 1\n\
         reduce high : f32 = max(A[0]) on [0..N-1]\n\
         reduce some : bool = any(A[0] > 1) on [0..N-1]\n\
         steps 20 until some && high > most && t % 2 == 1",
    );
    assert_eq!(run(&text, &[0.0], 20).1, Ended { steps: 4, met: true });
}

#[test]
fn words_of_reductions_are_no_names_of_others() {
    assert_eq!(
        messages(&line("scalar reduce : f32 = 1\nfn f -> A [0] = A[0]\nsteps 1")),
        ["expected the scalar's name, found the keyword `reduce`"]
    );
    // These stand for something at one place alone.
    let text = "scalar until : f32 = 1\nscalar every : f32 = 1\nscalar initially : f32 = 2\n\
                fn f -> A [0] = until + every + initially\nsteps 1";
    assert_eq!(messages(&line(text)), Vec::<String>::new());
}
