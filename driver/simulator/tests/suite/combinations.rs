//! The ways to run a wavefront, as combinations of passes: each equals the oracle bit for bit. The
//! programs of the test suite run in `orders.rs`.

use crate::common::Case;
use stencil_runtime::bind::Request;
use stencil_runtime::input::{self, Source as Input};
use stencil_simulator::{Options, Settings};

/// Skew and sync of each combination.
const COMBINATIONS: [&str; 6] = [
    "",
    ",grid-sync",
    ",peer-sync",
    ",hyperplane-skew",
    ",hyperplane-skew,grid-sync",
    ",hyperplane-skew,peer-sync",
];

/// Compares runs of several sizes, each with several orders of blocks, with the oracle.
fn check(case: &Case, sizes: &[&[i64]], seeds: u64) {
    let context = stencil_dialects::context().unwrap();
    let (module, plan) = crate::common::compile(&context, case);
    for sizes in sizes {
        let named = plan.params.iter().cloned().zip(sizes.iter().copied()).collect();
        let request = Request { sizes: named, steps: Some(2), ..Request::default() };
        let noise = |place: usize| Some(Input::Random(place as u64 + 7));
        let (bound, inputs) =
            input::prepare(&plan, request, &std::collections::BTreeMap::new(), noise)
                .unwrap_or_else(|error| panic!("{case:?} {sizes:?}: {error}"));
        let expected = crate::common::expected(case, &bound, &inputs);
        for seed in 0..seeds {
            let settings = Settings { seed: Some(seed), ..Settings::default() };
            let options = Options { settings, ..Options::default() };
            let run = crate::common::simulate(&module, &plan, &bound, &inputs, options)
                .unwrap_or_else(|error| panic!("{case:?} {sizes:?}, seed {seed}: {error}"));
            if let Some(difference) = crate::common::difference(&run.outputs, &expected) {
                panic!("{case:?} {sizes:?}, seed {seed}: {difference}");
            }
        }
    }
}

#[test]
fn combinations_in_one_and_three_dimensions_equal_the_oracle() {
    let line = "param N\ngrid G = [0..N-1]\nfield A : f32 on G\n\
                fn f -> A [2..N-1] = A[0] + 0.5*A'[-1] - A'[-2]\nsteps 1\n";
    for between in COMBINATIONS {
        check(&Case::combination(line, between, &[8], 3), &[&[30], &[3]], 1);
        check(
            &Case::combination("gauss-seidel3d", between, &[2, 3, 4], 5),
            &[&[11, 9, 10], &[3, 4, 3]],
            2,
        );
    }
}

// Dependences to the right and to later rows of a plane, some of them beyond the grid.
#[test]
fn skewed_tiles_take_dependences_to_the_right() {
    let plane = "param N\nparam M\ngrid G = [0..N-1, 0..M-1]\nfield A : f32 on G\nboundary A = 0\n\
                 fn f -> A [0..N-1, 0..M-1] = A[0,0] + A'[-1,700] + 0.5*A'[-1,2] - A'[0,-1]\n\
                 steps 1\n";
    let space = "param N\nparam M\nparam L\ngrid G = [0..N-1, 0..M-1, 0..L-1]\n\
                 field A : f32 on G\nboundary A = 0\n\
                 fn f -> A [0..N-1, 0..M-1, 0..L-1] = A[0,0,0] + A'[-1,2,3] - A'[0,-1,1]\n\
                 + 0.5*A'[0,0,-1] + A'[-1,-1,0]\nsteps 1\n";
    for between in COMBINATIONS.iter().filter(|between| between.contains("skew")) {
        check(&Case::combination(plane, between, &[3, 4], 3), &[&[11, 9]], 1);
        check(&Case::combination(space, between, &[2, 3, 4], 4), &[&[5, 6, 7]], 2);
    }
}
