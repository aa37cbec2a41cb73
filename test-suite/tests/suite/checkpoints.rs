//! Runs in parts: with `--first-step`, and from checkpoints. A run that was killed at any moment
//! goes on and ends with the bits of one that was not.

use crate::snapshot;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use stencil_runtime::checkpoint;
use stencil_test_suite::{Scratch, tool};

/// The step number, a temp field that is kept, a reduction of the step before, a const field, a
/// scalar and a rim: all that a run goes on with.
const ALL: &str = "param N\nscalar c : f32 = 0.25\ngrid G = [0..N-1, 0..N-1]\nfield A : f32 on G\n\
    const field K : f32 on G\ntemp field T : f32 on G\n\
    fn count -> T [1..N-2, 1..N-3] = T[0,0] + A[0,1] * f32(t % 7)\n\
    fn move -> A [1..N-2, 1..N-2] = c * (A[-1,0] + A[1,0] + A[0,-1] + A[0,1]) + K[0,0] * T[1,0] / \
    (1000 + most + f32(t))\n\
    reduce most : f32 = max(abs(A[0,0])) on [0..N-1, 0..N-1] initially 2\nsteps 40\n";
/// May end after every 4 steps.
const UNTIL: &str = "param N\ngrid G = [0..N-1]\nfield A : f32 on G\n\
    fn move -> A [1..N-2] = 0.5 * A[0]\nreduce most : f32 = max(A[0]) on [1..N-2]\n\
    steps 40 until most < 0.001 every 4\n";

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("all.stencil", ALL);
    scratch.write("until.stencil", UNTIL);
    for (folder, text) in
        [("wide", ALL.replace("f32", "f64")), ("later", ALL.replace("1000", "1001"))]
    {
        std::fs::create_dir(scratch.path().join(folder)).unwrap_or_else(|e| panic!("{e}"));
        scratch.write(&format!("{folder}/all.stencil"), text);
    }
    scratch.write("text", "no checkpoint\n");
    scratch
}

const RUN: &str = "stencilc run all.stencil --in A=random:1 --in K=random:2";
const TARGETS: [&str; 4] = [
    "--target reference",
    "--target sim",
    "--target sim --strategy block --tile 8,16 --pyramid-height 3",
    "--target sim --strategy stream --pyramid-height 2",
];

fn done(scratch: &Scratch, line: &str) {
    let outcome = scratch.shell(line);
    assert_eq!(outcome.code, Some(0), "{line}\n{}", outcome.stderr);
}

/// Reductions that begin with one number, and temp fields of one size, which are kept from step to
/// step, go on each with its own value.
#[test]
fn values_that_begin_alike_go_on_apart() {
    const TWO: &str = "param N\ngrid G = [0..N-1]\nfield A : i32 on G\n\
        temp field S : i32 on G\ntemp field T : i32 on G\n\
        reduce a : i32 = sum(b + a) on [0..0] initially 1\n\
        fn s -> S [1..N-2] = S[0] + A[0] + 1\nfn u -> T [1..N-2] = 2*T[0] + A[0] + 3\n\
        fn f -> A [1..N-2] = S[0] - T[0] + a\n\
        reduce b : i32 = sum(A[0]) on [0..N-1] initially 1\nsteps 5\n";
    let scratch = Scratch::new();
    scratch.write("two.stencil", TWO);
    let run = "stencilc run two.stencil --size N=9 --in A=random:1";
    done(&scratch, &format!("{run} --target reference --out A=whole.npy"));
    for target in ["reference", "sim", "cpu"] {
        let kept = format!("--target {target} --checkpoint {target} --checkpoint-every 1");
        done(&scratch, &format!("{run} {kept} --out A=parts.npy"));
        let files = scratch.contents();
        assert!(files["parts.npy"] == files["whole.npy"], "{target}");
    }
}

/// `t` goes on where the first ten steps ended.
#[test]
fn ten_steps_and_ten_more_are_twenty() {
    const CLOCK: &str = "param N\ngrid G = [0..N-1, 0..N-1]\nfield A : f32 on G\n\
        fn f -> A [1..N-2, 1..N-2] = A[0,-1] + f32(t) * A[1,0]\nsteps 20\n";
    for target in TARGETS {
        let scratch = Scratch::new();
        scratch.write("clock.stencil", CLOCK);
        let run = format!("stencilc run clock.stencil --fp-contract off {target} --size N=21");
        done(&scratch, &format!("{run} --in A=random:3 --out A=all.npy"));
        done(&scratch, &format!("{run} --in A=random:3 --steps 10 --out A=half.npy"));
        let rest = format!("{run} --in A=half.npy --steps 10 --out A=rest.npy");
        done(&scratch, &format!("{rest} --first-step 10"));
        let files = scratch.contents();
        assert!(files["all.npy"] == files["rest.npy"], "{target}");
        done(&scratch, &rest);
        assert!(scratch.contents()["rest.npy"] != files["all.npy"], "{target}: t counts from 0");
    }
}

#[test]
fn a_run_in_parts_is_the_same_run() {
    // A launch takes several steps only where no function reads a reduction.
    let several = ALL.replace(" + most", "").replace(" initially 2", "");
    let one = ALL.to_owned();
    let programs = TARGETS.map(|target| match target.contains("pyramid-height") {
        true => (target, &several),
        false => (target, &one),
    });
    for (target, program) in programs {
        let scratch = scratch();
        scratch.write("all.stencil", program);
        let run = format!("{RUN} {target} --fp-contract off --size N=33");
        done(&scratch, &format!("{run} --out A=one.npy --out most=most.npy"));
        let parts = "--checkpoint c --checkpoint-every 7";
        done(&scratch, &format!("{run} {parts} --out A=parts.npy --steps 40"));
        let found = checkpoint::read(&scratch.path().join("c"));
        assert_eq!(found.map(|found| found.step).ok(), Some(35), "{target}");
        // Neither sizes nor state fields are named again.
        let resumed = "stencilc run all.stencil --in K=random:2 --fp-contract off --resume c";
        done(&scratch, &format!("{resumed} {target} --out A=resumed.npy --out most=last.npy"));
        let files = scratch.contents();
        assert!(files["one.npy"] == files["parts.npy"], "{target}: in parts");
        assert!(files["one.npy"] == files["resumed.npy"], "{target}: resumed");
        assert!(files["most.npy"] == files["last.npy"], "{target}: the reduction");
    }
}

/// The number of the file, which changes with each checkpoint.
fn number(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().map(|found| found.ino())
}

/// Starts a run and kills it at a random moment after its next checkpoint; false where it ended
/// before.
fn killed(scratch: &Scratch, line: &str, random: u64) -> bool {
    let path = scratch.path().join("c");
    let before = number(&path);
    let mut words = line.split(' ');
    let tool = tool(words.next().unwrap_or_default());
    let mut command = Command::new(tool);
    command.args(words).current_dir(scratch.path()).stderr(Stdio::null());
    let mut run = command.spawn().unwrap_or_else(|error| panic!("{line}: {error}"));
    let start = Instant::now();
    while number(&path) == before && start.elapsed() < Duration::from_secs(60) {
        if run.try_wait().is_ok_and(|ended| ended.is_some()) {
            return false;
        }
        sleep(Duration::from_micros(500));
    }
    sleep(Duration::from_micros(random % 30_000));
    run.kill().unwrap_or_else(|error| panic!("{line}: {error}"));
    let ended = run.wait().unwrap_or_else(|error| panic!("{line}: {error}"));
    ended.signal().is_some()
}

/// A killed run leaves whole checkpoints alone, and 20 kills later the run ends as it would have.
#[test]
fn killed_runs_go_on() {
    for (target, n, steps) in [("reference", 101, 2000), ("sim --strategy naive", 24, 500)] {
        let scratch = scratch();
        let run = format!("{RUN} --target {target} --size N={n} --steps {steps}");
        done(&scratch, &format!("{run} --checkpoint c --checkpoint-every 5 --out A=whole.npy"));
        std::fs::remove_file(scratch.path().join("c")).unwrap_or_else(|error| panic!("{error}"));
        let parts = format!("{run} --checkpoint c --checkpoint-every 5 --out A=out.npy");
        let (mut step, mut kills, mut random) = (0, 0, 1_u64);
        for _ in 0..20 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let resume = if step > 0 { " --resume c" } else { "" };
            kills += usize::from(killed(&scratch, &format!("{parts}{resume}"), random >> 33));
            let found = checkpoint::read(&scratch.path().join("c"));
            let found = found.unwrap_or_else(|error| panic!("{target}: {error}"));
            assert!(found.step >= step && found.step % 5 == 0, "{target}");
            step = found.step;
        }
        assert!(kills >= 10, "{target}: {kills} kills up to step {step}");
        assert!(!scratch.contents().contains_key("out.npy") || kills < 20, "{target}");
        done(&scratch, &format!("{parts} --resume c"));
        let files = scratch.contents();
        assert!(files["whole.npy"] == files["out.npy"], "{target}");
    }
}

/// A limit on the size of files stands for a full disk.
#[test]
fn a_full_disk_keeps_the_last_checkpoint() {
    let scratch = scratch();
    let run = format!("{RUN} --target reference --size N=33 --checkpoint c --checkpoint-every 10");
    done(&scratch, &format!("{run} --steps 15 --out A=a.npy"));
    let before = scratch.contents();
    let outcome = scratch.shell(&format!("trap '' XFSZ; ulimit -f 0; exec {run} --resume c"));
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(scratch.contents() == before, "{:?}", outcome.new_files);
    snapshot("checkpoints__full_disk", &outcome.stderr);
}

#[test]
fn a_run_goes_on_in_its_checkpoint_by_another_name() {
    let scratch = scratch();
    let run = format!("{RUN} --target reference --size N=33 --checkpoint-every 10");
    done(&scratch, &format!("{run} --steps 15 --checkpoint c"));
    done(&scratch, &format!("{run} --steps 25 --checkpoint ./c --resume c"));
    assert!(checkpoint::read(&scratch.path().join("c")).is_ok_and(|found| found.step == 20));
}

/// The run ends in order and says how it goes on.
#[test]
fn an_interrupt_keeps_the_last_checkpoint() {
    let scratch = scratch();
    let run = format!("{RUN} --target reference --size N=301 --checkpoint c --checkpoint-every 5");
    let outcome = scratch.shell(&format!("timeout -s INT 0.7 {run} --steps 1000000"));
    assert!(outcome.stderr.contains("with --resume c"), "{}", outcome.stderr);
    assert_eq!(outcome.new_files, ["c"]);
    assert!(checkpoint::read(&scratch.path().join("c")).is_ok_and(|found| found.step >= 5));
}

#[test]
fn a_run_that_ends_early_ends_there_in_parts_too() {
    let scratch = scratch();
    let run = "stencilc run until.stencil --target sim --size N=9 --in A=random:1";
    let whole = scratch.shell(&format!("{run} --out A=whole.npy"));
    assert!(whole.stderr.contains("stopped after"), "{}", whole.stderr);
    let parts = scratch.shell(&format!("{run} --out A=p.npy --checkpoint c --checkpoint-every 8"));
    let stopped = |text: &str| {
        text.lines().filter(|line| line.starts_with("stopped")).map(str::to_owned).next()
    };
    assert_eq!(stopped(&whole.stderr), stopped(&parts.stderr));
    let resumed = scratch.shell(&format!("{run} --out A=r.npy --resume c"));
    assert_eq!(stopped(&whole.stderr), stopped(&resumed.stderr));
    let files = scratch.contents();
    assert!(files["whole.npy"] == files["p.npy"] && files["whole.npy"] == files["r.npy"]);
}

/// Checks that a command is refused, after a run that leaves a checkpoint of N=33 at step 20.
fn refused(case: &str, command: &str) {
    let scratch = scratch();
    let run = format!("{RUN} --target reference --size N=33 --checkpoint c --checkpoint-every 20");
    done(&scratch, &run);
    let whole = std::fs::read(scratch.path().join("c")).unwrap_or_else(|error| panic!("{error}"));
    scratch.write("short", &whole[..whole.len() - 9]);
    let before = scratch.contents();
    let outcome = scratch.shell(command);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{}", outcome.stderr);
    assert!(scratch.contents() == before, "{command}: {:?}", outcome.new_files);
    snapshot(&format!("checkpoints__{case}"), &format!("$ {command}\n{}", outcome.stderr));
}

macro_rules! refused {
    ($($case:ident: $command:expr;)*) => {
        $(#[test]
        fn $case() {
            refused(stringify!($case), &format!($command));
        })*
    };
}

refused! {
    of_another_program: "stencilc run until.stencil --target reference --resume c";
    of_another_text: "stencilc run later/all.stencil --target reference --in K=random:2 \
        --resume c";
    of_another_type: "stencilc run wide/all.stencil --target reference --in K=random:2 \
        --resume c";
    of_another_size: "{RUN} --target reference --size N=32 --resume c";
    of_another_scalar: "{RUN} --target reference --set c=0.5 --resume c";
    of_another_constant: "stencilc run all.stencil --target reference --in K=zeros --resume c";
    of_no_checkpoint: "{RUN} --target reference --resume text";
    of_a_damaged_file: "{RUN} --target reference --resume short";
    of_no_file: "{RUN} --target reference --resume missing";
    behind_the_end: "{RUN} --target reference --steps 10 --resume c";
    of_another_first_step: "{RUN} --target reference --first-step 3 --resume c";
    checkpoint_without_a_number: "{RUN} --target reference --size N=9 --checkpoint d";
    checkpoint_every_zero: "{RUN} --target reference --size N=9 --checkpoint d \
        --checkpoint-every 0";
    checkpoint_in_an_output: "{RUN} --target reference --size N=9 --checkpoint d \
        --checkpoint-every 3 --out A=./d";
    checkpoint_in_no_folder: "{RUN} --target reference --size N=9 --checkpoint no/d \
        --checkpoint-every 3";
    checkpoint_in_place_of_another_file: "{RUN} --target reference --size N=9 \
        --checkpoint text --checkpoint-every 3";
    pause_where_none_may_end: "stencilc run until.stencil --target reference --size N=9 \
        --in A=zeros --checkpoint d --checkpoint-every 6";
    first_step_below_zero: "{RUN} --target reference --size N=9 --first-step -1";
    first_step_too_large: "{RUN} --target reference --size N=9 --first-step 281474976710650";
}
