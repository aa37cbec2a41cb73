//! Runs of four processes: results are the reference's bit for bit, and a process that fails or is
//! killed ends the others. Needs `mpirun`.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Held by the test that runs: processes that wait take a processor each.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command of four processes. Open MPI refuses more processes than processors, and root, unless
/// it is told.
fn mpirun(arguments: &str) -> Command {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-suite/programs");
    let mut command = Command::new("mpirun");
    command.args(["-n", "4", env!("CARGO_BIN_EXE_stencilc-mpi")]);
    command.args(arguments.split_whitespace()).current_dir(programs);
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
        command.env(name, "1");
    }
    command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    command.env("OMPI_MCA_mpi_yield_when_idle", "1");
    command.stdin(Stdio::null());
    command
}

fn text(output: &Output) -> String {
    let both = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&both).into_owned()
}

#[test]
fn results_are_those_of_the_reference() {
    let _alone = alone();
    let two = "--size N=101 --size M=90 --tile 16,32";
    let three = "--size N=40 --size M=30 --size L=33 --tile 8,16,33";
    for program in [
        format!("heat2d.stencil {two} --in A=random:1 --in K=random:2"),
        format!("heat2d.stencil {two} --in A=random:1 --in K=random:2 --devices 2x2"),
        format!("fdtd2d.stencil {two} --in Ex=random:1 --in Ey=random:2 --in Hz=random:3"),
        format!("wave3d.stencil {three} --in P=random:1 --in U=random:2 --in C=random:3"),
        format!("srad.stencil {two} --in J=random:1"),
        format!("torus3d.stencil {three} --in A=random:1"),
    ] {
        let words = format!("run {program} --target cpu --steps 9 --fp-contract=off --check");
        let output = mpirun(&words).output().unwrap();
        let said = text(&output);
        assert!(output.status.success(), "{words}\n{said}");
        assert!(said.contains("agree bit for bit") && !said.contains("differ"), "{words}\n{said}");
        assert!(said.contains(" devices of 1 thread"), "{words}\n{said}");
    }
}

/// Pauses write what one process writes, and a run goes on from a checkpoint to the same bits.
#[test]
fn pauses_write_the_bits_of_one_process() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let read = |name: &str| std::fs::read(place(name)).unwrap();
    let run = |words: &str| {
        let output = mpirun(words).output().unwrap();
        assert!(output.status.success(), "{words}\n{}", text(&output));
    };
    let words = "run heat2d.stencil --target cpu --size N=101 --size M=90 --tile 16,32 \
                 --pyramid-height 2 --fp-contract=off";
    let inputs = "--in A=random:1 --in K=random:2";
    run(&format!("{words} {inputs} --steps 12 --out A={}", place("whole.npy")));
    // Snapshots after 0, 5 and 10 steps, and a checkpoint after 8.
    run(&format!(
        "{words} {inputs} --steps 12 --snapshot-every 5 --checkpoint-every 8 --checkpoint {} \
         --out A={}",
        place("run.checkpoint"),
        place("a{step}.npy")
    ));
    assert_eq!(read("a12.npy"), read("whole.npy"));
    run(&format!("{words} {inputs} --steps 5 --out A={}", place("five.npy")));
    assert_eq!(read("a5.npy"), read("five.npy"));
    assert!(read("a0.npy") != read("a5.npy") && read("a5.npy") != read("a10.npy"));
    run(&format!(
        "{words} --resume {} --in K=random:2 --steps 12 --out A={}",
        place("run.checkpoint"),
        place("resumed.npy")
    ));
    assert_eq!(read("resumed.npy"), read("whole.npy"));
    let found = std::fs::read_dir(folder.path()).unwrap().count();
    // Three snapshots, four results and a checkpoint; no process left anything else.
    assert_eq!(found, 8);
}

#[test]
fn a_process_that_fails_ends_the_others() {
    let _alone = alone();
    let words = "run sor2d.stencil --target cpu --size N=50 --size M=50 --in A=random:1";
    let begin = Instant::now();
    let output = mpirun(words).output().unwrap();
    let said = text(&output);
    assert!(!output.status.success() && begin.elapsed() < Duration::from_secs(60), "{said}");
    assert!(said.contains("can't be shared out between devices"), "{said}");
    let output = mpirun(&format!("{words} --devices 3")).output().unwrap();
    let said = text(&output);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("--devices 3 are 3, and 4 processes were started"), "{said}");
}

#[test]
fn a_probe_gives_a_rate_that_a_run_takes() {
    let _alone = alone();
    let output = mpirun("probe").output().unwrap();
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    let rate = said.lines().last().unwrap_or_default();
    let numbers: Vec<u32> = rate.split(':').map(|number| number.parse().unwrap()).collect();
    assert!(matches!(numbers.as_slice(), [1..=u32::MAX, 1..=u32::MAX]), "{said}");
    let words = "run heat2d.stencil --target cpu --size N=101 --size M=90 --steps 3 \
                 --in A=random:1 --in K=random:2";
    let output = mpirun(words).env("STENCILC_LINK", rate).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
}

/// A run that would take hours.
#[test]
fn a_process_that_is_killed_ends_the_others() {
    let _alone = alone();
    let words = "run heat2d.stencil --target cpu --size N=300 --size M=300 --tile 32,300 \
                 --steps 2000000000 --in A=random:1 --in K=random:2";
    let mut command = mpirun(words);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let children = || -> Vec<u32> {
        let list = format!("/proc/{0}/task/{0}/children", child.id());
        let list = std::fs::read_to_string(list).unwrap_or_default();
        list.split_whitespace().filter_map(|number| number.parse().ok()).collect()
    };
    let begin = Instant::now();
    while children().len() < 4 && begin.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    // In the middle of the run: to compile takes less.
    std::thread::sleep(Duration::from_secs(3));
    let processes = children();
    assert_eq!(processes.len(), 4);
    let killed = Command::new("kill").args(["-9", &processes[2].to_string()]).status().unwrap();
    assert!(killed.success());
    let killed = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(killed.elapsed() < Duration::from_secs(10), "the others go on");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(!status.success());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said.matches("exited on signal 9 (Killed)").count(), 1, "{said}");
    assert!(!said.contains("error:") && !said.contains("panicked"), "{said}");
    while processes.iter().any(|one| runs(*one)) {
        assert!(killed.elapsed() < Duration::from_secs(10), "processes are left");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Whether a process runs: one that has ended may still have a number.
fn runs(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}
