//! Memory that is not there is refused before any is spent, and sizes given to a run fix its
//! compile.

use std::io::{Read, Seek, SeekFrom};
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

/// Results are read in parts while their file is written. With 2.2 GB of addresses, two buffers and
/// the input of zeros have room, and a third copy of 0.5 GB has none.
#[test]
fn results_need_no_memory_of_their_own() {
    let scratch = Scratch::new();
    scratch.write(
        "grow.stencil",
        "param N\ngrid G = [0..N-1, 0..N-1]\nfield A : f64 on G\n\
         fn f -> A [i in 1..N-2, 0..N-1] = A[-1,0] + A[1,0] + f64(i)\nsteps 2\n",
    );
    let run = "ulimit -v 2200000; exec stencilc run grow.stencil --target cpu --threads 1 \
               --size N=8192 --in A=zeros --out A=a.npy";
    let outcome = scratch.shell(&format!("{run} --check-finite"));
    assert_eq!((outcome.code, outcome.new_files), (Some(1), vec![]), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("out of memory"), "{}", outcome.stderr);
    let outcome = scratch.shell(run);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let mut file = std::fs::File::open(scratch.path().join("a.npy")).unwrap();
    let header = file.metadata().unwrap().len() - 8 * 8192 * 8192;
    for (row, value) in [(0, 0.0), (1, 3.0), (5000, 15_000.0), (8190, 16_379.0)] {
        let mut cell = [0; 8];
        file.seek(SeekFrom::Start(header + 8 * (row * 8192 + 4096))).unwrap();
        file.read_exact(&mut cell).unwrap();
        assert_eq!(f64::from_le_bytes(cell), value, "row {row}");
    }
}

/// The first thread's stack may be as small as the system allows.
#[test]
fn a_small_stack_is_enough() {
    for line in [
        "run heat2d.stencil --in A=zeros --in K=zeros --steps 1 --size N=30 --size M=30",
        "heat2d.stencil --emit=ptx -o out.ptx",
    ] {
        let outcome = scratch().shell(&format!("ulimit -s 112; exec stencilc {line}"));
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    }
}

/// The system refuses a thread of this stack.
#[test]
fn threads_of_devices_that_are_not_there_end_the_run() {
    let run = format!("{RUN} --target sim --devices 4 --size N=100 --size M=100");
    let outcome = scratch().shell(&format!("RUST_MIN_STACK=999999999999999 {run}"));
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("no threads for 4 devices: "), "{}", outcome.stderr);
}
