//! Launch plans of whole programs, as the runtime gets them.

use crate::snapshot;
use serde_json::Value;
use std::path::Path;
use stencil_runtime::plan::Plan;
use stencil_test_suite::Scratch;

fn plan(program: &str, arguments: &[&str]) -> String {
    let scratch = Scratch::new();
    let file = format!("{program}.stencil");
    scratch.copy(&format!("programs/{file}"));
    let outcome = scratch.run("stencilc", &[&[file.as_str(), "--emit=plan"], arguments].concat());
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    // The runtime reads it, and writes it alike.
    let read = Plan::from_json(&outcome.stdout, "plan").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(read.to_json().unwrap_or_else(|error| panic!("{error}")) + "\n", outcome.stdout);
    fits_the_schema(&outcome.stdout, program);
    outcome.stdout
}

/// A file of the project, as text.
fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}"))
}

fn schema() -> jsonschema::Validator {
    let schema = json(&file("docs/plan.schema.json"));
    jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("{error}"))
}

fn fits_the_schema(plan: &str, of: &str) {
    let (schema, plan) = (schema(), json(plan));
    let errors: Vec<_> = schema
        .iter_errors(&plan)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{of}: {errors:?}");
}

#[test]
fn plans_by_hand_fit_the_schema() {
    for plan in [
        "runtime/tests/data/heat.plan.json",
        "runtime/tests/data/smear.plan.json",
        "runtime/tests/data/smear_records.plan.json",
        "runtime/tests/data/smear_shared.plan.json",
        "driver/simulator/tests/data/wave.plan.json",
    ] {
        fits_the_schema(&file(plan), plan);
    }
}

#[test]
fn the_schema_refuses_what_the_runtime_refuses() {
    let (schema, plan) = (schema(), file("runtime/tests/data/heat.plan.json"));
    for (from, to) in [
        ("\"program\"", "\"title\""),
        ("\"kernel\": \"two\"", "\"kernel\": 2"),
        ("\"read\": \"A\"", "\"reads\": \"A\""),
        ("\"repeat\"", "\"repeats\""),
        ("\"kind\": \"field\"", "\"kind\": \"room\""),
        ("\"start\": \"zeros\"", "\"start\": \"ones\""),
        ("\"steps\": 2", "\"steps\": -2"),
        ("[16, 1, 1]", "[16, 1]"),
    ] {
        assert!(plan.contains(from), "{from}");
        let wrong = plan.replacen(from, to, 1);
        assert!(!schema.is_valid(&json(&wrong)), "{to}");
        assert!(Plan::from_json(&wrong, "wrong").is_err(), "{to}");
    }
}

#[test]
fn a_value_that_is_handed_on() {
    let arguments = ["--strategy", "naive", "--fp-contract=off"];
    snapshot("plan__wave2d_naive", &plan("wave2d", &arguments));
}

#[test]
fn plans_of_all_programs_fit_the_schema() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{error}"));
    let mut count = 0;
    for entry in entries {
        let name = entry.unwrap_or_else(|error| panic!("{error}")).file_name();
        if let Some(program) = name.to_string_lossy().strip_suffix(".stencil") {
            let scratch = Scratch::new();
            scratch.copy(&format!("programs/{program}.stencil"));
            let strategy = if scratch.sweeps(program) { "wavefront" } else { "naive" };
            plan(program, &["--strategy", strategy]);
            count += 1;
        }
    }
    assert!(count > 50, "{count} programs");
}

#[test]
fn heat_by_blocks() {
    snapshot(
        "plan__heat2d_block",
        &plan(
            "heat2d",
            &[
                "--strategy",
                "block",
                "--tile",
                "32,64",
                "--pyramid-height",
                "4",
                "--per-thread",
                "4",
            ],
        ),
    );
}

#[test]
fn heat_naive_with_sizes_fixed() {
    snapshot(
        "plan__heat2d_naive",
        &plan(
            "heat2d",
            &["--strategy", "naive", "-D", "N=344", "-D", "M=403", "--fp-contract=off"],
        ),
    );
}

#[test]
fn three_functions_a_step() {
    snapshot(
        "plan__fdtd2d_block",
        &plan(
            "fdtd2d",
            &[
                "--strategy",
                "block",
                "--pyramid-height",
                "3",
                "--tile",
                "16,64",
                "--per-thread",
                "4",
            ],
        ),
    );
    snapshot("plan__fdtd2d_naive", &plan("fdtd2d", &["--strategy", "naive"]));
}
