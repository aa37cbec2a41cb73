//! Runs out of core whose fields are larger than the memory of the host: results, memory and
//! messages.

use std::process::{Command, Stdio};
use std::time::Duration;
use stencil_test_suite::{Scratch, tool};

/// A run of `heat2d`, of 160 MiB a field of state.
const RUN: &str = "run heat2d.stencil --target cpu --threads 2 --tile 64,512 --pyramid-height 4 \
                   --steps 9 --device-memory 24MiB --out A=out.npy";

/// The largest anonymous memory of a process in KiB, looked at until it ends.
fn peak(command: &mut Command) -> u64 {
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let found = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        most = most.max(found.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success(), "{command:?}");
    most
}

#[test]
fn fields_larger_than_memory_lie_in_files() {
    let scratch = Scratch::new();
    scratch.copy("programs/heat2d.stencil");
    let run = |arguments: &str| {
        let mut command = Command::new(tool("stencilc"));
        command.args(arguments.split_whitespace()).current_dir(scratch.path());
        peak(&mut command)
    };
    let begin = "run heat2d.stencil --target cpu --threads 2 --steps 0 --size N=10240 \
                 --size M=4096 --in A=random:1 --in K=random:2 --out A=in.npy";
    run(begin);
    let inputs = "--in A=in.npy --in K=random:2";
    let whole = run(&format!("{RUN} {inputs}"));
    let wanted = std::fs::read(scratch.path().join("out.npy")).unwrap();
    let found = run(&format!("{RUN} {inputs} --host-memory 40MiB"));
    assert!(std::fs::read(scratch.path().join("out.npy")).unwrap() == wanted);
    // An input and the array between passes are 320 MiB; a compile takes some memory anyway.
    assert!(whole > 320 << 10 && found < 160 << 10, "{whole} KiB in memory, {found} KiB in files");
    let contents = scratch.contents();
    let names: Vec<_> = contents.keys().map(String::as_str).collect();
    assert_eq!(names, ["heat2d.stencil", "in.npy", "out.npy"]);
}

#[test]
fn values_that_must_be_whole_are_refused() {
    for (arguments, wanted) in [
        ("--device-memory 48KiB --host-memory 8KiB --check", "too small for the values of the run"),
        ("--host-memory 8KiB", "--device-memory"),
        ("--device-memory 48KiB --host-memory 8KB", "KiB, MiB, GiB or TiB"),
    ] {
        let scratch = Scratch::new();
        scratch.copy("programs/heat2d.stencil");
        let words = format!(
            "run heat2d.stencil --target cpu --size N=300 --size M=40 --tile 16,64 --steps 3 \
             --in A=random:1 --in K=random:2 --out A=a.npy {arguments}"
        );
        let outcome = scratch.run("stencilc", &words.split_whitespace().collect::<Vec<_>>());
        let (code, said) = (outcome.code, outcome.stderr);
        assert!(code == Some(1) || code == Some(2), "{words}\n{said}");
        assert!(said.contains(wanted) && outcome.new_files.is_empty(), "{words}\n{said}");
    }
}
