//! The build script of `test-suite/build-script` compiles the programs of its crate.

use std::process::Command;
use stencil_runtime::bind::{Request, bind};
use stencil_runtime::plan::{Plan, ptx_beside};
use stencil_test_suite::{Scratch, root, tool};

#[test]
fn a_crate_compiles_its_programs_when_it_is_built() {
    let scratch = Scratch::new();
    let folder = root().join("build-script");
    let script = scratch.path().join("script");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut compile = Command::new(rustc);
    compile.args(["--edition=2024", "-C", "debuginfo=0", "-o"]).arg(&script);
    assert!(compile.arg(folder.join("build.rs")).status().unwrap().success());
    let built = |stencilc: &str| {
        let mut run = Command::new(&script);
        let out = scratch.path().to_path_buf();
        run.current_dir(&folder).env("OUT_DIR", &out).env("STENCILC", stencilc);
        let output = run.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let said = built("/nowhere/stencilc");
    assert!(said.contains("cargo::warning=/nowhere/stencilc"), "{said}");
    assert_eq!(std::fs::read_to_string(scratch.path().join("heat.ptx")).unwrap(), "");
    let said = built(&tool("stencilc").display().to_string());
    assert!(said.contains("rerun-if-changed=src/heat.stencil") && !said.contains("warning"));
    let file = scratch.path().join("heat.plan.json");
    let plan = Plan::load(&file).unwrap();
    let request = Request { sizes: [("N".to_owned(), 100)].into(), ..Request::default() };
    assert_eq!(bind(&plan, &request).unwrap().shapes, [[100]]);
    let ptx = std::fs::read_to_string(ptx_beside(&file)).unwrap();
    assert!(ptx.contains(&format!(".entry {}", plan.kernels[0].name)));
}
