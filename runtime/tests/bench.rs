//! `stencil-bench` from the outside, as far as that goes without a device: everything that the
//! user can get wrong must be told before one is asked for.

#![cfg(feature = "bench")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use stencil_runtime::array::{Array, Element};
use stencil_runtime::bind::{Request, bind};
use stencil_runtime::launch::Launches;
use stencil_runtime::npy;
use stencil_runtime::plan::Plan;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stencil-bench")).args(arguments).output().unwrap()
}

/// The one line on standard error of a call that must fail with exit code 1.
fn error(arguments: &[&str]) -> String {
    let output = bench(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Checks the beginnings of messages.
fn assert_told<W: AsRef<str>>(cases: &[(Vec<&str>, W)]) {
    for (arguments, wanted) in cases {
        let (found, wanted) = (error(arguments), wanted.as_ref());
        assert!(found.starts_with(wanted), "{arguments:?}\nfound:  {found}\nwanted: {wanted}");
    }
}

#[test]
fn wrong_files_are_told() {
    let plan = data("smear.plan.json");
    let plan = plan.to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let wide = file("wide.npy");
    npy::write(Path::new(&wide), &Array::noise(Element::F64, &[9], 1).unwrap()).unwrap();
    let right = file("right.npy");
    npy::write(Path::new(&right), &Array::noise(Element::F32, &[9], 1).unwrap()).unwrap();
    let cut = file("cut.npy");
    let whole = std::fs::read(&right).unwrap();
    std::fs::write(&cut, &whole[..whole.len() - 1]).unwrap();
    let lone = file("lone.plan.json");
    std::fs::copy(data("smear.plan.json"), &lone).unwrap();
    let old = file("old.plan.json");
    std::fs::write(&old, "{\"format\": 0}").unwrap();

    assert_told(&[
        (vec!["missing.plan.json"], "error: can't read the plan missing.plan.json: ".to_string()),
        (
            vec![&old],
            format!(
                "error: {old} is a plan of format 0, this program reads format 2; \
            compile the program again: stencilc PROGRAM.stencil --emit=ptx,plan -o NAME\n"
            ),
        ),
        (vec![&lone, "-D", "N=9"], format!("error: can't read the PTX {}: ", file("lone.ptx"))),
        (
            vec![plan, "--in", &format!("A={wide}")],
            format!(
                "error: {wide} holds f64 cells where \
            f32 is wanted; convert it with numpy's astype\n"
            ),
        ),
        (
            vec![plan, "--in", &format!("A={cut}")],
            format!(
                "error: {cut} is truncated: 35 bytes of \
            data where 9 f32 needs 36; copy or write it anew\n"
            ),
        ),
        (
            vec![plan, "-D", "N=8", "--in", &format!("A={right}")],
            "error: array `A` is 9, but its \
            dimension 0 must be 8, `N` (N = 8, given)\n"
                .to_string(),
        ),
    ]);
}

#[test]
fn wrong_sizes_and_names_are_told() {
    let plan = data("smear.plan.json");
    let plan = plan.to_str().unwrap();
    assert_told(&[
        (
            vec![plan],
            "error: the run-time size `N` has no value; give one with --size N=... or an \
            array whose shape tells it (--in A=...)\n",
        ),
        (vec![plan, "-D", "M=9"], "error: smear has no run-time size `M`; it has N\n"),
        (
            vec![plan, "-D", "N=1"],
            "error: the grid needs 2 cells (N = 1, steps = \
            10)\n",
        ),
        (
            vec![plan, "-D", "N=9", "--steps", "-1"],
            "error: -1 steps can't be run; give 0 to 281474976710656 with --steps\n",
        ),
        (
            vec![plan, "-D", "N=9", "--set", "beta=1"],
            "error: smear has no scalar `beta`; it has \
            alpha\n",
        ),
        (
            vec![plan, "-D", "N=9", "--choose", "work=large"],
            "error: smear has no choice `work` of `large`; it has none\n",
        ),
        (
            vec![plan, "-D", "N=9", "--choose", "large"],
            "error: invalid value 'large' for '--choose <NAME=BODY>': `large` is not of the form \
            NAME=VALUE\n",
        ),
        (
            vec![plan, "-D", "N=9", "--in", "B=zeros"],
            "error: smear has no input `B`; it has \
            A\n",
        ),
    ]);
}

#[test]
fn wrong_options_are_told() {
    let plan = data("smear.plan.json");
    let plan = plan.to_str().unwrap();
    assert_told(&[
        (vec![plan, "-D", "N=9", "-D", "N=8"], "error: -D N=... is given twice\n"),
        (vec![plan, "--in", "A=zeros", "--in", "A=zeros"], "error: --in A=... is given twice\n"),
        (
            vec![plan, "-D", "N=9", "--tolerance", "inf"],
            "error: invalid value 'inf' for '--tolerance <REL>': a finite number from 0 is \
            wanted\n",
        ),
        (
            vec![plan, "-D", "N"],
            "error: invalid value 'N' for '--size <NAME=SIZE>': `N` is not of \
            the form NAME=VALUE\n",
        ),
        (
            vec![plan, plan, "--ptx", "x.ptx"],
            "error: --ptx names the code of one plan, but several \
            plans are given\n",
        ),
        (vec![plan, "--fast"], "error: unexpected argument '--fast' found\n"),
        (
            vec![plan, "--cut-all"],
            "error: the following required arguments were not provided:\n  \
            --graph\n",
        ),
        (
            vec![plan, "--chunk", "3"],
            "error: the following required arguments were not provided:\n  --graph\n",
        ),
        (
            vec![plan, "--graph", "--chunk", "0"],
            "error: invalid value '0' for '--chunk <N>': a \
            number from 1 is wanted\n",
        ),
        (vec![plan, "--repeat", "0"], "error: invalid value '0' for '--repeat <N>': "),
        (vec![], "error: the following required arguments were not provided:\n"),
    ]);
}

#[test]
fn pages_are_printed() {
    for (arguments, wanted) in [
        (["--man"].as_slice(), ".TH stencil-bench 1"),
        (&["--completions", "bash"], "_stencil__bench()"),
        (&["--help"], "Usage: stencil-bench [OPTIONS] [PLAN]..."),
        (&["--version"], "stencil-bench 0."),
    ] {
        let output = bench(arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains(wanted), "{arguments:?}: {text}");
    }
}

#[test]
fn the_plans_written_by_hand_are_valid() {
    for name in ["smear", "smear_shared"] {
        let plan = Plan::load(&data(&format!("{name}.plan.json"))).unwrap();
        let request = Request { sizes: [("N".to_string(), 1000)].into(), ..Request::default() };
        let bound = bind(&plan, &request).unwrap();
        assert_eq!(Launches::new(&plan, &bound).unwrap().count(), 10);
        let code = std::fs::read_to_string(data(&format!("{name}.ptx"))).unwrap();
        assert!(code.contains(&format!(".entry {}(", plan.kernels[0].name)));
    }
}
