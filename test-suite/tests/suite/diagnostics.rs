//! The diagnostics of every faulty program in `diagnostics/`.

use crate::snapshot;
use std::panic::{AssertUnwindSafe, catch_unwind};
use stencil_frontend::diagnostics::{Look, render};
use stencil_frontend::source::Source;
use stencil_test_suite::{Scratch, files};

#[test]
fn faulty_programs() {
    let mut failed = Vec::new();
    let programs = files("diagnostics", "stencil");
    assert!(programs.len() >= 25, "{}", programs.len());
    for path in programs {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let checks = || {
            let scratch = Scratch::new();
            scratch.copy(&format!("diagnostics/{name}.stencil"));
            let file = format!("{name}.stencil");
            let (program, errors) =
                stencil_frontend::load(&Source::new(&file, scratch.read(&file)), &[]);
            assert!(program.is_none(), "{file} is accepted");
            let text = render(&errors, &Source::new(&file, scratch.read(&file)), Look::Plain);
            // The tools say the same, and write nothing.
            for arguments in [
                &[file.as_str(), "-o", "out.ptx"][..],
                &["run", &file, "--target", "reference", "--in", "A=zeros"],
            ] {
                let outcome = scratch.run("stencilc", arguments);
                assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(1), text.as_str()));
                assert_eq!((outcome.stdout.as_str(), outcome.new_files.as_slice()), ("", &[][..]));
            }
            snapshot(&format!("diagnostics__{name}"), &text);
        };
        if catch_unwind(AssertUnwindSafe(checks)).is_err() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}
