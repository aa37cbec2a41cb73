//! Memory that is not there is refused before any is spent, and sizes given to a run fix its
//! compile.

use stencil_test_suite::Scratch;

const RUN: &str = "stencilc run heat2d.stencil --in A=zeros --in K=zeros --steps 1";

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.copy("programs/heat2d.stencil");
    scratch
}

/// 670 GiB, which no machine of the tests has.
#[test]
fn a_run_says_what_it_needs() {
    let needed = "the run needs 670.6 GiB of memory for its fields, and ";
    for target in ["reference", "sim"] {
        let scratch = scratch();
        let run = format!("{RUN} --target {target} --size N=300000 --size M=300000");
        let outcome = scratch.shell(&format!("{run} --out A=a.npy"));
        assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(needed), "{target}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("on this machine; use smaller sizes"), "{target}");
        assert_eq!(outcome.new_files, [""; 0]);
    }
}

/// The kernels of a run are made for its sizes, as with `-D`.
#[test]
fn sizes_of_a_run_fix_its_compile() {
    let scratch = scratch();
    let blocks = |sizes: &str| {
        let line = format!("{RUN} --target sim {sizes} --report-json r.json --print-ir-after-all");
        let outcome = scratch.shell(&line);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        (scratch.read("r.json"), outcome.stderr)
    };
    let (fixed, ir) = blocks("-D N=100 -D M=90");
    assert!(ir.contains("memref<100x90xf32"), "{ir}");
    let given = blocks("--size N=100 --size M=90");
    assert!(given.0 == fixed, "the same kernels");
    assert!(given.1.contains("memref<100x90xf32"), "{}", given.1);
    let both = blocks("-D N=100 --size N=100 --size M=90");
    assert!(both.0 == fixed, "given twice, and equal");
}
