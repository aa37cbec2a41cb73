//! The modules of `conformance/`, by hand: those of `good` compile, and those of `bad` are refused
//! with the message of their first line.

use stencil_test_suite::{Scratch, files};

#[test]
fn modules_conform() {
    let (good, bad) = (files("conformance/good", "mlir"), files("conformance/bad", "mlir"));
    assert!(good.len() + bad.len() >= 40, "{} and {}", good.len(), bad.len());
    let mut failed = Vec::new();
    for (path, sound) in good.iter().map(|path| (path, true)).chain(bad.iter().map(|p| (p, false)))
    {
        let scratch = Scratch::new();
        let text = std::fs::read_to_string(path).unwrap();
        scratch.write("module.mlir", &text);
        let pipeline = "--pass-pipeline=builtin.module(stencil-verify)";
        let verified = scratch.run("stencil-opt", &["module.mlir", pipeline]);
        let first = text.lines().next().unwrap_or_default();
        let as_stated = match first.strip_prefix("// error: ") {
            None => {
                let arguments = ["module.mlir", "--emit=ptx,plan", "-o", "out"];
                let compiled = scratch.run("stencilc", &arguments);
                sound && (verified.code, compiled.code) == (Some(0), Some(0))
            }
            Some(message) => {
                let stated = verified.stderr.starts_with(&format!("error: {message}"));
                !sound && !message.is_empty() && verified.code == Some(1) && stated
            }
        };
        if !as_stated {
            failed.push(format!("{}: {}", path.display(), verified.stderr));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
