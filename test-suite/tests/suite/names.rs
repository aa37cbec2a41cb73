//! Names of the user's never break a compile: the programs of `names/` have declarations and file
//! names like those that the compiler gives, words of PTX and of C, and letters that PTX lacks.
//! Each compiles to PTX by every strategy of its rank, and agrees on the simulator with the
//! reference bit for bit.

use crate::compiles::ptxas;
use stencil_runtime::plan::Plan;
use stencil_test_suite::{Outcome, Scratch, files};

/// The words behind a keyword at the head of a line: the declared names.
fn declared<'t>(text: &'t str, keyword: &str) -> Vec<&'t str> {
    let rest = text.lines().filter_map(|line| line.strip_prefix(keyword));
    rest.filter_map(|rest| rest.split_whitespace().next()).collect()
}

fn succeeds(outcome: &Outcome, what: &str) {
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{what}");
}

#[test]
fn no_name_breaks_a_compile() {
    let programs = files("names", "stencil");
    assert_eq!(programs.len(), 12);
    for path in programs {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let scratch = Scratch::new();
        scratch.copy(&format!("names/{file}"));
        let text = scratch.read(&file);
        let strategies = match declared(&text, "param ").len() {
            1 => ["naive", "block", "warp"],
            _ => ["naive", "block", "stream"],
        };
        for strategy in strategies {
            let what = format!("{file}, {strategy}");
            compiles(&scratch, &file, strategy, &what);
            agrees(&scratch, &file, &text, strategy, &what);
        }
    }
}

/// The PTX has the kernels that the plan names, and ptxas takes it.
fn compiles(scratch: &Scratch, file: &str, strategy: &str, what: &str) {
    let both = [file, "--strategy", strategy, "--emit=ptx,plan", "-o", "out"];
    succeeds(&scratch.run("stencilc", &both), what);
    let plan = scratch.read("out.plan.json");
    let plan = Plan::from_json(&plan, "plan").unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut planned: Vec<_> = plan.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    let text = scratch.read("out.ptx");
    let heads = text.lines().filter_map(|line| line.strip_prefix(".visible .entry "));
    let mut entries: Vec<_> = heads.map(|head| head.trim_end_matches('(')).collect();
    planned.sort_unstable();
    entries.sort_unstable();
    assert_eq!(entries, planned, "{what}");
    let output = ptxas()
        .args(["-arch=sm_90", "-o", "out.cubin", "out.ptx"])
        .current_dir(scratch.path())
        .output()
        .expect("ptxas, which `cargo xtask setup` installs");
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A run on the simulator gives what the reference gives.
fn agrees(scratch: &Scratch, file: &str, text: &str, strategy: &str, what: &str) {
    let state = declared(text, "field ");
    let inputs = state.iter().copied().chain(declared(text, "const field "));
    let given = [
        declared(text, "param ").iter().map(|size| format!("--size={size}=24")).collect(),
        inputs.map(|field| format!("--in={field}=random:1")).collect(),
        state.iter().map(|field| format!("--out={field}={field}.npy")).collect::<Vec<_>>(),
    ]
    .concat();
    let mut arguments = vec![
        "run",
        file,
        "--strategy",
        strategy,
        "--target",
        "sim",
        "--check",
        "--fp-contract=off",
    ];
    arguments.extend(given.iter().map(String::as_str));
    let outcome = scratch.run("stencilc", &arguments);
    assert_eq!(outcome.code, Some(0), "{what}: {}", outcome.stderr);
    let checks: Vec<_> = outcome.stderr.lines().filter(|line| line.starts_with("check ")).collect();
    assert!(checks.len() >= state.len(), "{what}: {}", outcome.stderr);
    for check in checks {
        assert!(check.contains("agree bit for bit"), "{what}: {check}");
    }
}

#[test]
fn a_kernel_has_the_name_of_its_program_where_that_is_free() {
    let scratch = Scratch::new();
    for (file, kernels) in [
        ("heat.stencil", ["heat_4", "heat_2", "heat_1"].as_slice()),
        ("w.stencil", &["w_8_2", "w_4_2", "w_2_2", "w_1_2"]),
        ("2d-heat v1.stencil", &["k_2d_heat_v1_4", "k_2d_heat_v1_2_2", "k_2d_heat_v1_1_2"]),
    ] {
        scratch.copy(&format!("names/{file}"));
        let height = if file == "w.stencil" { "8" } else { "4" };
        let arguments = [file, "--strategy", "block", "--pyramid-height", height, "--emit=plan"];
        let outcome = scratch.run("stencilc", &arguments);
        succeeds(&outcome, file);
        let plan = Plan::from_json(&outcome.stdout, "plan")
            .unwrap_or_else(|error| panic!("{file}: {error}"));
        let names: Vec<_> = plan.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(names, kernels, "{file}");
    }
}
