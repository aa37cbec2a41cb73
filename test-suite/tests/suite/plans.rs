//! Launch plans of whole programs, as the runtime gets them.

use crate::snapshot;
use stencil_runtime::plan::Plan;
use stencil_test_suite::Scratch;

fn plan(program: &str, arguments: &[&str]) -> String {
    let scratch = Scratch::new();
    let file = format!("{program}.stencil");
    scratch.copy(&format!("programs/{file}"));
    let outcome = scratch.run("stencilc", &[&[file.as_str(), "--emit=plan"], arguments].concat());
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    // The runtime reads it, and writes it alike.
    let read = Plan::from_json(&outcome.stdout, "plan").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(read.to_json().unwrap_or_else(|error| panic!("{error}")) + "\n", outcome.stdout);
    outcome.stdout
}

#[test]
fn heat_by_blocks() {
    snapshot(
        "plan__heat2d_block",
        &plan(
            "heat2d",
            &[
                "--strategy",
                "block",
                "--tile",
                "32,64",
                "--pyramid-height",
                "4",
                "--per-thread",
                "4",
            ],
        ),
    );
}

#[test]
fn heat_naive_with_sizes_fixed() {
    snapshot(
        "plan__heat2d_naive",
        &plan(
            "heat2d",
            &["--strategy", "naive", "-D", "N=344", "-D", "M=403", "--fp-contract=off"],
        ),
    );
}

#[test]
fn three_functions_a_step() {
    snapshot(
        "plan__fdtd2d_block",
        &plan(
            "fdtd2d",
            &[
                "--strategy",
                "block",
                "--pyramid-height",
                "3",
                "--tile",
                "16,64",
                "--per-thread",
                "4",
            ],
        ),
    );
    snapshot("plan__fdtd2d_naive", &plan("fdtd2d", &["--strategy", "naive"]));
}
