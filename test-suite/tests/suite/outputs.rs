//! Outputs: none replaces an input or another one, all of a command appear or none, and what can't
//! be written changes neither the work nor its exit code.

use crate::snapshot;
use stencil_runtime::array::{Array, Element};
use stencil_runtime::npy;
use stencil_test_suite::Scratch;

const RUN: &str =
    "stencilc run heat2d.stencil --target reference --steps 1 --in A=a.npy --in K=zeros";

const FDTD: &str = "stencilc run fdtd2d.stencil --target reference --size N=9 --size M=9 --steps \
                    20 --in Ex=zeros --in Ey=zeros --in Hz=zeros --snapshot-every 1";

/// Programs, an input, and links to them.
fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.copy("programs/heat2d.stencil");
    scratch.copy("programs/fdtd2d.stencil");
    scratch.copy("programs/sor2d.stencil");
    scratch.write("plain.mlir", "module {}\n");
    scratch.write("schedules.json", "{\"entries\": []}\n");
    scratch.write("plan.json", include_str!("../../../runtime/tests/data/heat.plan.json"));
    scratch.write("plan.ptx", "");
    std::fs::create_dir(scratch.path().join("folder")).unwrap_or_else(|error| panic!("{error}"));
    scratch.write("folder/old.npy", "old");
    let noise = Array::noise(Element::F32, &[16, 16], 1).unwrap_or_else(|error| panic!("{error}"));
    let place = |name: &str| scratch.path().join(name);
    npy::write(&place("a.npy"), &noise).unwrap_or_else(|error| panic!("{error}"));
    let made = [
        std::os::unix::fs::symlink("heat2d.stencil", place("link.ptx")),
        std::os::unix::fs::symlink("folder/old.npy", place("to-old.npy")),
        std::fs::hard_link(place("a.npy"), place("same.npy")),
    ];
    for result in made {
        result.unwrap_or_else(|error| panic!("{error}"));
    }
    scratch
}

/// Checks that a command is refused before any work, and that every file is as it was.
fn refused(case: &str, command: &str) {
    let scratch = scratch();
    let before = scratch.contents();
    let outcome = scratch.shell(command);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{}", outcome.stderr);
    assert!(scratch.contents() == before, "{command}: {:?}", outcome.new_files);
    snapshot(&format!("outputs__{case}"), &format!("$ {command}\n{}", outcome.stderr));
}

macro_rules! refused {
    ($($case:ident: $command:expr;)*) => {
        $(#[test]
        fn $case() {
            refused(stringify!($case), &$command);
        })*
    };
}

refused! {
    program_as_output: "stencilc heat2d.stencil -o heat2d.stencil";
    program_by_another_path: "stencilc heat2d.stencil -o folder/../heat2d.stencil";
    program_by_a_link: "stencilc heat2d.stencil -o link.ptx";
    program_under_its_syntax_tree: "stencilc heat2d.stencil --emit=ast,ptx -o heat2d";
    ir_as_output: "stencil-opt plain.mlir -o ./plain.mlir";
    schedules_as_output: "stencilc heat2d.stencil --schedules schedules.json -o schedules.json";
    input_as_result: format!("{RUN} --out A=./a.npy");
    input_by_a_hard_link: format!("{RUN} --out A=same.npy");
    program_as_result: format!("{RUN} --out A=heat2d.stencil");
    snapshot_in_a_later_result: format!(
        "{FDTD} --out 'Ex=w{{step}}.npy' --out Ey=./w1.npy"
    );
    snapshots_that_meet: format!(
        "{FDTD} --out 'Ex=w{{step}}.npy' --out 'Ey=w1{{step}}.npy'"
    );
    checkpoint_in_a_snapshot: format!(
        "{RUN} --snapshot-every 1 --out 'A=c{{step}}.npy' --checkpoint c10.npy --checkpoint-every 1"
    );
    report_in_a_result: "stencilc run heat2d.stencil --target sim --steps 1 --in A=a.npy --in \
        K=zeros --out A=new.npy --report-json folder/../new.npy";
    standard_input_as_output: "stencilc - -o heat2d.stencil <heat2d.stencil";
    ir_on_standard_input_as_output: "stencil-opt -o plain.mlir <plain.mlir";
    candidates_of_a_wavefront: "stencilc sor2d.stencil --candidates 3 --emit=ptx,plan -o x";
    records_in_a_plan: "stencil-bench plan.json --json ./plan.json";
    records_in_code: "stencil-bench plan.json --reference plan.json --tune plan.ptx";
    records_in_an_expected_result: "stencil-bench plan.json --json old.npy --expect A=old.npy";
    records_to_standard_output: "stencil-bench plan.json --json -";
    candidates_to_standard_output: "stencilc heat2d.stencil --candidates 3 -o -";
    levels_to_standard_output: "stencilc heat2d.stencil --emit=ptx,plan -o -";
    levels_to_a_folder: "stencilc heat2d.stencil --emit=ptx,plan -o folder/";
    result_to_standard_output: format!("{RUN} --out A=-");
    two_results_in_one_file: "stencilc run fdtd2d.stencil --target reference --size N=9 --size \
        M=9 --steps 1 --in Ex=zeros --in Ey=zeros --in Hz=zeros --out Ex=to-old.npy --out \
        Ey=folder/old.npy";
}

/// The environment names files that a compile reads or runs.
#[test]
fn tools_of_the_environment_are_inputs() {
    for (variable, file) in [
        ("STENCILC_PTXAS=$PWD/ptxas", "ptxas"),
        ("STENCILC_LIBDEVICE=$PWD/device.bc", "device.bc"),
        ("CUDA_HOME=$PWD/cuda", "cuda/nvvm/libdevice/libdevice.10.bc"),
    ] {
        let scratch = scratch();
        let make = format!("mkdir -p $(dirname {file}) && echo older > {file}");
        // Elsewhere, the tools of the project would be found first.
        let alone = "cp $(command -v stencilc) alone";
        assert_eq!(scratch.shell(&format!("{make} && {alone}")).code, Some(0));
        let outcome = scratch.shell(&format!("{variable} ./alone heat2d.stencil -o {file}"));
        assert_eq!(outcome.code, Some(1), "{variable}\n{}", outcome.stderr);
        assert!(outcome.stderr.contains("would replace the input"), "{}", outcome.stderr);
        assert_eq!(scratch.read(file), "older\n", "{variable}");
    }
}

/// A limit on the size of files stands for a full disk.
#[test]
fn all_outputs_appear_or_none() {
    let scratch = scratch();
    scratch.write("out.plan.json", "older plan");
    scratch.write("out.ptx", "older PTX");
    let before = scratch.contents();
    let compile = "stencilc heat2d.stencil --strategy block --emit=plan,ptx -o out";
    let outcome = scratch.shell(&format!("trap '' XFSZ; ulimit -f 32; exec {compile}"));
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("out.ptx"), "{}", outcome.stderr);
    assert!(scratch.contents() == before, "{:?}", outcome.new_files);
    assert_eq!(scratch.shell(compile).code, Some(0));
    let after = scratch.contents();
    assert!(after["out.plan.json"].len() < 16 << 10 && after["out.ptx"].len() > 32 << 10);
    assert_eq!(after.len(), before.len());
}

/// A picture that does not fit the disk has the remedy that cells have.
#[test]
fn pictures_on_a_full_disk_are_refused_with_a_remedy() {
    for (file, option) in [("new.npy", ""), ("new.png", ""), ("new.gif", "--snapshot-every 1")] {
        let run = format!(
            "stencilc run heat2d.stencil --target reference --size N=200 --size M=200 --steps 1 \
             --in A=random:1 --in K=zeros --out A={file} {option}"
        );
        let outcome = scratch().shell(&format!("trap '' XFSZ; ulimit -f 1; exec {run}"));
        assert_eq!((outcome.code, outcome.new_files.len()), (Some(1), 0), "{}", outcome.stderr);
        let words = format!("can't write {file}: File too large (os error 27); make room or");
        assert!(outcome.stderr.contains(&words), "{}", outcome.stderr);
    }
}

/// A name that promises a format that no result has.
#[test]
fn results_of_other_formats_are_refused() {
    let run = "stencilc run heat2d.stencil --target reference --size N=20 --size M=20 --steps 1 \
               --in A=random:1 --in K=zeros --out";
    let outcome = scratch().shell(&format!("{run} A=A.jpg"));
    assert_eq!((outcome.code, outcome.new_files.len()), (Some(1), 0), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("A.jpg: `.jpg` is no format of results"), "{}", outcome.stderr);
    for file in ["A", "A.NPY", "A.5", "A.Png"] {
        let outcome = scratch().shell(&format!("{run} A={file}"));
        assert_eq!((outcome.code, outcome.new_files.len()), (Some(0), 1), "{}", outcome.stderr);
    }
}

/// Names that differ, of folders that do not.
#[test]
fn a_snapshot_does_not_replace_one_of_another_step() {
    let scratch = scratch();
    let folders = "for n in $(seq 0 20); do ln -s folder s$n; done";
    assert_eq!(scratch.shell(folders).code, Some(0));
    let outcome = scratch.shell(&format!("{FDTD} --out 'Ex=s{{step}}/x.npy'"));
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    let words = "writing s1/x.npy after step 1 would replace the output of step 0";
    assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
    assert!(scratch.path().join("folder/x.npy").exists());
    // Names of other letters, and one field's own, never meet.
    let two = "--out 'Ex=x1-{step}.npy' --out 'Ey=x2-{step}.npy'";
    let outcome = scratch.shell(&format!("{FDTD} {two}"));
    assert_eq!((outcome.code, outcome.new_files.len()), (Some(0), 42), "{}", outcome.stderr);
}

#[test]
fn results_and_counters_appear_together() {
    let scratch = scratch();
    let before = scratch.contents();
    let run = "stencilc run heat2d.stencil --target sim --steps 1 --size N=99 --size M=99 --in \
        A=zeros --in K=zeros --report-json counters.json --out A=out.npy";
    let outcome = scratch.shell(&format!("trap '' XFSZ; ulimit -f 16; exec {run}"));
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(scratch.contents() == before, "{:?}", outcome.new_files);
    assert_eq!(scratch.shell(run).new_files, ["counters.json", "out.npy"]);
}

/// The system ends a process at this limit, unless the process has said otherwise.
#[test]
fn a_limit_on_the_size_of_files_is_an_error() {
    let scratch = scratch();
    scratch.write("out.ptx", "older PTX");
    let before = scratch.contents();
    let outcome = scratch.shell("ulimit -f 4; exec stencilc heat2d.stencil -o out.ptx");
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("can't write out.ptx"), "{}", outcome.stderr);
    assert!(scratch.contents() == before, "{:?}", outcome.new_files);
}

/// Others write to an open descriptor before and after: its file is not replaced.
#[test]
fn descriptors_are_written_where_they_stand() {
    let print = "stencilc heat2d.stencil --emit=stencil";
    let scratch = scratch();
    assert_eq!(scratch.shell(&format!("{print} -o ir")).code, Some(0));
    std::os::unix::fs::symlink("/dev/stdout", scratch.path().join("link"))
        .unwrap_or_else(|error| panic!("{error}"));
    let wanted = format!("head\n{}tail\n", scratch.read("ir"));
    for (place, to) in [
        ("/dev/stdout", ">"),
        ("/dev/stdout", ">>"),
        ("/dev/fd/1", ">"),
        ("/proc/self/fd/1", ">"),
        ("link", ">"),
        ("/dev/stderr", "2>"),
        ("/dev/fd/5", "5>"),
    ] {
        scratch.write("x", "");
        let echo = format!(">&{}", to.trim_end_matches('>').parse().unwrap_or(1));
        let line = format!("(echo head {echo}; {print} -o {place}; echo tail {echo}) {to} x");
        let outcome = scratch.shell(&line);
        assert_eq!(outcome.code, Some(0), "{line}\n{}", outcome.stderr);
        assert!(scratch.read("x") == wanted, "{line}\n{}", scratch.read("x"));
    }
    let run = format!("(echo head; {RUN} --out A=/dev/stdout) >x");
    assert_eq!(scratch.shell(&run).code, Some(0));
    let bytes = std::fs::read(scratch.path().join("x")).unwrap_or_default();
    assert!(bytes.starts_with(b"head\n\x93NUMPY"));
    // Nothing but a descriptor for reading is there.
    let outcome = scratch.shell(&format!("{print} -o /dev/fd/0 <ir"));
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
}

/// Several files get their names from one; a device or `..` has none for them.
#[test]
fn several_files_need_a_name() {
    for place in ["/dev/stdout", "/dev/null", ".", "..", "/"] {
        for more in ["--emit=ast,plan", "--candidates 2"] {
            let outcome = scratch().shell(&format!("stencilc heat2d.stencil {more} -o {place}"));
            assert_eq!(outcome.code, Some(1), "{place}\n{}", outcome.stderr);
            assert!(outcome.stderr.contains("no name of a file"), "{place}\n{}", outcome.stderr);
            assert!(outcome.new_files.is_empty(), "{place}: {:?}", outcome.new_files);
        }
    }
}

/// Messages that can't be written are lost; the work and its exit code stay the same.
#[test]
fn a_full_standard_error_changes_nothing() {
    for (command, code, written) in [
        ("stencilc heat2d.stencil --timing --report --print-ir-after-all -o out", 0, true),
        (&format!("{RUN} --out A=out"), 0, true),
        (RUN, 0, false),
        ("stencilc missing.stencil", 1, false),
        ("stencilc heat2d.stencil --strategy blocks -o out", 1, false),
        ("stencilc heat2d.stencil --tile x", 1, false),
        ("stencilc --completions basic", 1, false),
        ("stencil-opt plain.mlir --timing -o out", 0, true),
        ("stencil-opt missing.mlir -o out", 1, false),
    ] {
        let scratch = scratch();
        let outcome = scratch.shell(&format!("{command} 2>/dev/full"));
        let found = (outcome.code, outcome.new_files.contains(&"out".to_owned()));
        assert_eq!(found, (Some(code), written), "{command}");
    }
}

#[test]
fn a_full_standard_output_is_an_error() {
    for command in [
        "stencilc heat2d.stencil",
        "stencil-opt plain.mlir",
        "stencilc --man",
        "stencilc --help",
        "stencil-bench --man",
    ] {
        let outcome = scratch().shell(&format!("{command} >/dev/full"));
        assert_eq!(outcome.code, Some(1), "{command}\n{}", outcome.stderr);
        assert!(!outcome.stderr.contains("panicked"), "{command}\n{}", outcome.stderr);
    }
    let outcome = scratch().shell("stencilc heat2d.stencil >/dev/full");
    assert!(outcome.stderr.starts_with("error: standard output: "), "{}", outcome.stderr);
}

/// Without a standard output the result would be lost.
#[test]
fn a_closed_standard_output_is_an_error() {
    for command in [
        "stencilc heat2d.stencil",
        "stencil-opt plain.mlir",
        "stencilc --man",
        "stencilc --help",
        "stencil-opt --version",
        "stencil-bench --man",
        "stencil-bench --help",
    ] {
        let outcome = scratch().shell(&format!("{command} >&-"));
        let words = "error: standard output: it is closed";
        assert_eq!(outcome.code, Some(1), "{command}");
        assert!(outcome.stderr.starts_with(words), "{command}\n{}", outcome.stderr);
    }
    // A name of standard output leads to the same place.
    for command in ["-o /dev/stdout", "--emit=plan -o /dev/fd/1", "-o /dev/stdout <&-"] {
        let outcome = scratch().shell(&format!("stencilc heat2d.stencil {command} >&-"));
        assert_eq!(outcome.code, Some(1), "{command}\n{}", outcome.stderr);
    }
    for command in ["stencilc heat2d.stencil >/dev/null", "stencilc heat2d.stencil -o out >&-"] {
        assert_eq!(scratch().shell(command).code, Some(0), "{command}");
    }
}

/// A reader that closes its end early needs no message, but it did not get everything.
#[test]
fn a_reader_that_has_gone_is_a_silent_failure() {
    for command in ["stencilc heat2d.stencil", "stencil-opt plain.mlir", "stencil-bench --man"] {
        // The tool writes once nobody holds the other end any more.
        let line = format!("{{ sleep 1; {command}; echo $? >code; }} | true");
        let scratch = scratch();
        let outcome = scratch.shell(&line);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{command}");
        assert_eq!(scratch.read("code"), "1\n", "{command}");
    }
}

/// It is 0.
#[test]
fn a_default_of_negative_zero_is_taken() {
    let scratch = Scratch::new();
    scratch.write(
        "zero.stencil",
        "param N\nscalar s : i32 = -0\ngrid G = [0..N-1]\nfield A : i32 on G\nfn f -> A [0..N-1] = \
         s + A[0]\nsteps 4\n",
    );
    let outcome = scratch.run("stencilc", &["zero.stencil", "-o", "out.ptx"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    assert_eq!(outcome.new_files, ["out.ptx"]);
}

/// A run that `nohup` or a script's background starts is not ended by what it was told to ignore.
#[test]
fn an_ignored_signal_stays_ignored() {
    for signal in ["HUP", "INT", "QUIT"] {
        let scratch = scratch();
        let run = "stencilc run heat2d.stencil --target reference --steps 2000 --in A=zeros --in \
                   K=zeros --out A=out.npy --size N=500 --size M=500";
        // The signal comes while it runs, or the exit code is that of a run too short.
        let line =
            format!("env --ignore-signal={signal} {run} & sleep 0.3; kill -{signal} $! && wait $!");
        let outcome = scratch.shell(&line);
        assert_eq!(outcome.code, Some(0), "{signal}: {}", outcome.stderr);
        assert_eq!(outcome.new_files, ["out.npy"], "{signal}");
    }
}

/// Ctrl-C ends a run in order, and nothing is written. `timeout` sends SIGINT twice, to the process
/// and to its group.
#[test]
fn an_interrupted_run_says_so_and_writes_nothing() {
    for target in ["reference", "sim"] {
        let scratch = scratch();
        let before = scratch.contents();
        let run = format!(
            "stencilc run heat2d.stencil --target {target} --steps 1000000000000 --in A=a.npy --in \
             K=zeros --out A=out.npy"
        );
        let outcome = scratch.shell(&format!("timeout --preserve-status -s INT 5 {run}"));
        assert_eq!(outcome.code, Some(1), "{target}: {}", outcome.stderr);
        assert!(outcome.stderr.starts_with("error: cancelled"), "{target}: {}", outcome.stderr);
        assert!(scratch.contents() == before, "{target}: {:?}", outcome.new_files);
    }
}

/// A pipe that nobody writes to would be read for ever: Ctrl-C ends the process at once.
#[test]
fn an_interrupt_ends_the_wait_for_an_input() {
    for line in [
        "stencilc - --emit=ptx <&3",
        "stencilc pipe.stencil --emit=ptx",
        "stencilc run heat2d.stencil --target sim --steps 1 --in A=pipe.stencil --in K=zeros",
        "stencilc run heat2d.stencil --target sim --steps 1 --in A=a.npy --in K=zeros --resume \
         pipe.stencil",
    ] {
        let scratch = scratch();
        let open = "mkfifo pipe.stencil; exec 3<>pipe.stencil";
        let outcome = scratch.shell(&format!("{open}; timeout -k 10 -s INT 0.5 {line}"));
        assert_eq!(outcome.code, Some(124), "{line}: {}", outcome.stderr);
    }
}
