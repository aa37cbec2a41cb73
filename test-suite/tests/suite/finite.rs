//! `--check-finite`: the first NaN or infinity with its step, cell and expression, on every target.

use crate::snapshot;
use stencil_test_suite::Scratch;

/// The cell that grows the fastest is infinite after some steps.
const GROWS: &str = "param N\ngrid G = [0..N-1, 0..N-1]\nfield A : f32 on G\nfield B : f32 on G\n\
    fn copy -> B [0..N-1, 0..N-1] = A[0,0]\n\
    fn grow -> A {\n  [0..0, 0..N-1]   = 1.0\n\
    \x20 [1..N-1, 0..N-1] = 3.0 * B[-1,0] * (A[0,0] + 1)\n}\n\
    steps 60\n";
const ROOT: &str = "param N\ngrid G = [0..N-1]\nfield A : f64 on G\ntemp field T : f64 on G\n\
    fn f -> T [1..N-2] = sqrt(A[0] - 0.5)\nfn g -> A [0..N-1] = A[0]\nsteps 3\n";
const LEAST: &str = "param N\ngrid G = [0..N-1]\nfield A : f32 on G\nfn f -> A [0..N-1] = A[0]\n\
    reduce least : f32 = max(log(A[0] - A[0])) on [0..N-1]\nsteps 3\n";

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("grows.stencil", GROWS);
    scratch.write("root.stencil", ROOT);
    scratch.write("least.stencil", LEAST);
    scratch
}

/// The words on standard error, which must be an error.
fn found(scratch: &Scratch, line: &str) -> String {
    let outcome = scratch.shell(line);
    assert_eq!(outcome.code, Some(1), "{line}\n{}", outcome.stderr);
    assert_eq!(outcome.new_files, [""; 0], "{line}");
    outcome.stderr
}

#[test]
fn every_target_finds_the_same_cell() {
    let run = "stencilc run grows.stencil --size N=20 --in A=random:1 --in B=zeros --out A=a.npy \
        --check-finite --fp-contract off --target";
    let scratch = scratch();
    let reference = found(&scratch, &format!("{run} reference"));
    assert_eq!(found(&scratch, &format!("{run} sim")), reference);
    let parts = found(&scratch, &format!("{run} sim --snapshot-every 5 --out B=none/b.gif"));
    assert!(parts.contains("there is no folder"), "{parts}");
    std::fs::create_dir(scratch.path().join("none")).unwrap_or_else(|error| panic!("{error}"));
    let parts = found(&scratch, &format!("{run} sim --snapshot-every 5 --out B=none/b.gif"));
    assert_eq!(parts, reference);
    snapshot("finite__grows", &reference);
}

#[test]
fn temp_fields_reductions_and_inputs_are_looked_at() {
    let run = "stencilc run PROGRAM --size N=9 --target reference --check-finite --in A=IN";
    let line = |program: &str, input: &str| run.replace("PROGRAM", program).replace("IN", input);
    let scratch = scratch();
    snapshot("finite__temp", &found(&scratch, &line("root.stencil", "random:3")));
    snapshot("finite__reduction", &found(&scratch, &line("least.stencil", "zeros")));
    scratch.shell(
        "stencilc run grows.stencil --size N=20 --in A=random:1 --in B=zeros --target \
        reference --out A=a.npy",
    );
    let input = "stencilc run grows.stencil --in A=a.npy --in B=zeros --target reference";
    snapshot("finite__input", &found(&scratch, &format!("{input} --check-finite")));
}

#[test]
fn a_run_without_one_ends_as_ever() {
    let scratch = scratch();
    for target in ["reference", "sim"] {
        let run = format!(
            "stencilc run grows.stencil --size N=9 --in A=zeros --in B=zeros \
            --steps 3 --target {target} --out A=a.npy"
        );
        assert_eq!(scratch.shell(&run).code, Some(0));
        let plain = scratch.contents()["a.npy"].clone();
        assert_eq!(scratch.shell(&format!("{run} --check-finite")).code, Some(0));
        assert!(scratch.contents()["a.npy"] == plain);
    }
}

/// Cells that are NaN on both sides agree about nothing.
#[test]
fn a_check_tells_of_nans() {
    let scratch = scratch();
    let run = "stencilc run root.stencil --size N=9 --in A=random:3 --out T=t.npy --target sim";
    let outcome = scratch.shell(&format!("{run} --check"));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    snapshot("finite__check", &outcome.stderr);
}
