//! The diagnostics of every faulty program in `diagnostics/`.

use crate::snapshot;
use std::panic::{AssertUnwindSafe, catch_unwind};
use stencil_frontend::diagnostics::{Look, render};
use stencil_frontend::source::Source;
use stencil_test_suite::{Scratch, files};

#[test]
fn faulty_programs() {
    all_refused("diagnostics", "stencil", "A");
}

#[test]
fn faulty_programs_of_sl() {
    all_refused("sl-diagnostics", "sl", "data");
}

/// Every program of a folder is refused, by the front end and by the tools alike. The input of a
/// run has this name.
fn all_refused(folder: &str, extension: &str, input: &str) {
    let mut failed = Vec::new();
    let programs = files(folder, extension);
    assert!(programs.len() >= 60, "{}", programs.len());
    for path in programs {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let checks = || {
            let scratch = Scratch::new();
            let file = format!("{name}.{extension}");
            scratch.copy(&format!("{folder}/{file}"));
            let (program, errors) =
                stencil_frontend::load(&Source::new(&file, scratch.read(&file)), &[]);
            assert!(program.is_none(), "{file} is accepted");
            let text = render(&errors, &Source::new(&file, scratch.read(&file)), Look::Plain);
            // The tools say the same, and write nothing.
            let input = format!("{input}=zeros");
            for arguments in [
                &[file.as_str(), "-o", "out.ptx"][..],
                &["run", &file, "--target", "reference", "--in", &input],
            ] {
                let outcome = scratch.run("stencilc", arguments);
                assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(1), text.as_str()));
                assert_eq!((outcome.stdout.as_str(), outcome.new_files.as_slice()), ("", &[][..]));
            }
            snapshot(&format!("{folder}__{name}"), &text);
        };
        if catch_unwind(AssertUnwindSafe(checks)).is_err() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}
