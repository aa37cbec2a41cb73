//! Runs out of core: results and messages of all programs.

use crate::devices::arguments;
use stencil_test_suite::{Scratch, files};

/// What a run says that must not have the whole grid at a time.
const REFUSED: [&str; 2] = ["can't run on a part of the grid", "which needs the whole grid"];

/// Runs all programs in as little memory as their windows take, and compares each with the
/// reference.
fn agree(target: &str) {
    let (mut agreed, mut cut) = (0, 0);
    for path in files("programs", "stencil") {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let scratch = Scratch::new();
        scratch.copy(&format!("programs/{name}.stencil"));
        let text = scratch.read(&format!("{name}.stencil"));
        let run = |memory: &str| {
            let words = format!(
                "run {name}.stencil --target {target} --device-memory {memory} --check \
                 --fp-contract=off {}",
                arguments(&text, target)
            );
            let outcome = scratch.run("stencilc", &words.split_whitespace().collect::<Vec<_>>());
            (outcome.code, outcome.stdout + &outcome.stderr)
        };
        let (code, said) = run("1");
        assert_eq!(code, Some(1), "{name}\n{said}");
        if REFUSED.iter().any(|why| said.contains(why)) {
            assert!(said.contains("leave --device-memory out"), "{name}\n{said}");
            continue;
        }
        let needed = said.split_once("takes ").and_then(|(_, rest)| rest.split(' ').next());
        let needed = needed.unwrap_or_else(|| panic!("{name}\n{said}"));
        let (code, said) = run(needed);
        assert_eq!(code, Some(0), "{name}\n{said}");
        assert!(said.contains("agree bit for bit") && !said.contains("differ"), "{name}\n{said}");
        agreed += 1;
        cut += usize::from(!said.contains("out of core: 1 windows"));
    }
    assert!(agreed > 55 && cut > 30, "{agreed} programs, {cut} in windows");
}

#[test]
fn programs_agree_in_windows_of_the_simulator() {
    agree("sim");
}

#[test]
fn programs_agree_in_windows_of_the_processor() {
    agree("cpu");
}

/// A run with some arguments in a folder of its own, which gives its files and what it says.
fn written(arguments: &str) -> (Vec<(String, Vec<u8>)>, String) {
    let scratch = Scratch::new();
    scratch.copy("programs/heat2d.stencil");
    let words = format!(
        "run heat2d.stencil --target cpu --threads 2 --size N=300 --size M=40 --tile 16,64 \
         --in A=random:1 --in K=random:2 --steps 21 {arguments}"
    );
    let outcome = scratch.run("stencilc", &words.split_whitespace().collect::<Vec<_>>());
    assert_eq!(outcome.code, Some(0), "{words}\n{}", outcome.stderr);
    let contents = scratch.contents().into_iter();
    (contents.filter(|(name, _)| name != "heat2d.stencil").collect(), outcome.stderr)
}

#[test]
fn files_are_those_in_core() {
    for files in [
        "--out A=a.npy",
        "--out A=a{step}.npy --snapshot-every 5",
        "--out A=a.npy --checkpoint c.checkpoint --checkpoint-every 8",
    ] {
        let (whole, _) = written(files);
        let (found, said) = written(&format!("{files} --device-memory 48KiB"));
        assert!(!whole.is_empty() && found == whole, "{files}");
        assert!(said.contains("out of core: "), "{said}");
    }
}

#[test]
fn a_timeline_has_copies_and_windows() {
    let (files, said) = written("--device-memory 48KiB --timeline t.svg --out A=a.npy");
    let (_, picture) = files.iter().find(|(name, _)| name == "t.svg").unwrap();
    let picture = String::from_utf8_lossy(picture);
    for line in ["to device", "compute", "to host"] {
        assert!(picture.contains(line), "{picture}");
    }
    assert!(said.contains("compute "), "{said}");
}

#[test]
fn runs_that_can_not_be_out_of_core_are_refused() {
    for (arguments, wanted) in [
        ("--target reference --device-memory 1MiB", "a run out of core is for --target cuda"),
        ("--target cpu --device-memory 1MB", "KiB, MiB, GiB or TiB"),
        ("--target cpu --device-memory 1MiB --devices 2", "cannot be used with"),
        ("--target cpu --timeline t.svg", "add --devices or --device-memory"),
        ("--target cpu --device-memory 2KiB", "is too small: the smallest window"),
    ] {
        let scratch = Scratch::new();
        scratch.copy("programs/heat2d.stencil");
        let words = format!(
            "run heat2d.stencil --size N=300 --size M=40 --in A=random:1 --in K=random:2 \
             --out A=a.npy {arguments}"
        );
        let outcome = scratch.run("stencilc", &words.split_whitespace().collect::<Vec<_>>());
        let (code, said) = (outcome.code, outcome.stderr);
        assert!(code == Some(1) || code == Some(2), "{words}\n{said}");
        assert!(said.contains(wanted) && outcome.new_files.is_empty(), "{words}\n{said}");
    }
}
