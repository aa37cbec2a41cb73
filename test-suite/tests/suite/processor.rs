//! Programs on the processor of this machine: the results are those of the reference.

use stencil_test_suite::Scratch;

/// Runs a program of the suite on the processor and compares it with the reference.
fn agree(program: &str, arguments: &str) {
    let scratch = Scratch::new();
    scratch.copy(&format!("programs/{program}.stencil"));
    let words = format!(
        "run {program}.stencil --target cpu --threads 2 --check --fp-contract=off {arguments}"
    );
    let words: Vec<&str> = words.split_whitespace().collect();
    let outcome = scratch.run("stencilc", &words);
    assert_eq!(outcome.code, Some(0), "{words:?}\n{}", outcome.stderr);
    let said = outcome.stdout + &outcome.stderr;
    assert!(said.contains("agree bit for bit"), "{words:?}\n{said}");
}

#[test]
fn frozen_rims_and_steps_that_are_left_over() {
    let data = "--size N=67 --size M=131 --in A=random:1 --in K=random:2";
    // Several tiles in both dimensions, and the compiler's own.
    for schedule in ["--tile 13,29 --pyramid-height 5", "--tile 1,1 --pyramid-height 3", ""] {
        agree("heat2d", &format!("{data} --steps 37 {schedule}"));
    }
}

#[test]
fn grids_that_repeat_and_other_rules() {
    let sizes = "--size N=19 --size M=23 --size L=37 --steps 9";
    agree("torus3d", &format!("{sizes} --in A=random:1"));
    agree("torus3d", &format!("{sizes} --in A=random:1 --tile 5,6,17 --pyramid-height 2"));
    agree("insulated2d", "--size N=31 --size M=43 --in A=random:1 --tile 9,11 --steps 12");
}

#[test]
fn several_functions_reductions_and_sweeps() {
    let two = "--size N=67 --size M=131 --steps 10";
    let waves = "--in Ex=random:1 --in Ey=random:2 --in Hz=random:3 --tile 21,37";
    agree("fdtd2d", &format!("{two} {waves} --pyramid-height 4"));
    agree("srad", &format!("{two} --in J=random:1"));
    agree("weno1d", "--size N=403 --in u=random:1 --steps 9");
    agree("unsharp", &format!("{two} --in A=random:1"));
    agree("smith-waterman", &format!("{two} --in H=random:1 --in p=random:2 --in q=random:3"));
}
