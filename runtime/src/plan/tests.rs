//! Plans that are read and written, and contradictions.

use super::*;

/// A program of two fields: `A` is double and updated by `two` (two steps a launch) and `one`,
/// `K` is only read.
pub(crate) const HEAT: &str = r#"{
    "format": 1, "program": "heat", "target": "sm_90", "params": ["N", "M"], "constants": {"Q": 5},
    "scalars": [{"name": "alpha", "element": "f32", "default": 0.1}],
    "fields": [
        {"name": "A", "element": "f32", "role": "state", "extents": ["N", "2 * M + 1"], "buffers": 2},
        {"name": "K", "element": "f32", "role": "const", "extents": ["N"], "buffers": 1},
        {"name": "W", "element": "f64", "role": "temp", "extents": ["Q"], "buffers": 1}],
    "steps": "10",
    "checks": [{"value": "N - 3", "unless_negative": ["M - 1"], "message": "the grid must have 3 rows"}],
    "index_width": 32,
    "kernels": [
        {"name": "two", "grid": ["N ceildiv 16", "1", "1"], "block": [16, 1, 1], "static_shared": 0,
         "dynamic_shared": 0, "steps": 2,
         "arguments": [{"read": "A"}, {"read": "K"}, {"write": "A"}, {"param": "N"}, {"scalar": "alpha"}, "step"]},
        {"name": "one", "grid": ["N", "1", "1"], "block": [16, 1, 1], "static_shared": 0,
         "dynamic_shared": 0, "steps": 1, "arguments": [{"read": "A"}, {"write": "A"}, {"read_write": "W"}]}],
    "schedule": [
        {"count": "steps floordiv 2", "kernels": ["two"]},
        {"count": "steps mod 2", "kernels": ["one"]}],
    "settings": {"strategy": "block", "tile": [16], "pyramid_height": 2, "per_thread": [1],
                 "contract": false, "fast_math": false}
}"#;

pub(crate) fn heat() -> Plan {
    Plan::from_json(HEAT, "heat").unwrap()
}

/// The same, and the first kernel may be cut.
pub(crate) fn banded() -> Plan {
    let mut plan = heat();
    plan.kernels[0].arguments.push(Argument::Row);
    plan.kernels[0].bands = Some(Bands { rows: "N ceildiv 16".parse().unwrap(), reach: 1 });
    plan.validate().unwrap();
    plan
}

fn error(from: &str, to: &str) -> String {
    assert!(HEAT.contains(from), "{from}");
    Plan::from_json(&HEAT.replacen(from, to, 1), "heat.plan.json").unwrap_err().to_string()
}

#[test]
fn plans_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("heat.plan.json");
    heat().save(&path).unwrap();
    assert_eq!(Plan::load(&path).unwrap(), heat());
    let text = heat().to_json().unwrap();
    assert!(text.contains("\"count\": \"steps floordiv 2\"") && text.ends_with("}\n"), "{text}");
}

#[test]
fn other_formats_are_refused_before_all_else() {
    assert_eq!(
        error("\"format\": 1, \"program\"", "\"format\": 2, \"title\""),
        "heat.plan.json is a plan of format 2, this program reads format 1; compile the \
         program again"
    );
    let text = error("\"program\"", "\"title\"");
    assert!(text.contains("unknown field `title`") && text.contains("line 2"), "{text}");
    let text = error("N ceildiv 16", "N / 16");
    assert!(text.contains("`N / 16` is no size expression"), "{text}");
}

#[test]
fn contradictions_are_found() {
    for (from, to, wanted) in [
        (
            "[\"two\"]",
            "[\"three\"]",
            "the schedule launches the kernel `three`, which is not declared",
        ),
        ("\"step\"]", "\"row\"]", "kernel `two` has the argument Row, which is not declared"),
        (
            "\"step\"]",
            "\"step\"], \"bands\": {\"rows\": \"N\", \"reach\": 1}",
            "kernel `two` has bands, and no argument for its first row",
        ),
        (
            "{\"read\": \"K\"}",
            "{\"read\": \"L\"}",
            "kernel `two` has the argument Read(\"L\"), which is not declared",
        ),
        (
            "{\"param\": \"N\"}",
            "{\"param\": \"K\"}",
            "kernel `two` has the argument Param(\"K\"), which is not declared",
        ),
        (
            "{\"read\": \"K\"}",
            "{\"write\": \"K\"}",
            "kernel `two` writes field `K`, which has only one buffer",
        ),
        (
            "{\"read\": \"A\"}",
            "{\"read_write\": \"A\"}",
            "kernel `two` writes field `A` through two arguments",
        ),
        ("[\"N\", \"M\"]", "[\"N\", \"M\", \"A\"]", "`A` is declared twice"),
        ("\"one\", \"grid\"", "\"two\", \"grid\"", "kernel `two` is declared twice"),
        (
            "\"block\": [16",
            "\"block\": [2000",
            "kernel `two` has blocks of [2000, 1, 1] threads; 1 to 1024 are possible",
        ),
        (
            "\"block\": [16",
            "\"block\": [0",
            "kernel `two` has blocks of [0, 1, 1] threads; 1 to 1024 are possible",
        ),
        ("\"index_width\": 32", "\"index_width\": 16", "an index has 16 bits, not 32 or 64"),
        (
            "[\"Q\"]",
            "[\"steps\"]",
            "an extent of field `W`, `steps`, uses the size `steps`, which is not declared \
             there",
        ),
        ("N - 3", "L - 3", "a check, `L - 3`, uses the size `L`, which is not declared there"),
        ("\"buffers\": 2", "\"buffers\": 3", "field `A` has 3 buffers; 1 to 2 are possible"),
        ("\"buffers\": 2", "\"buffers\": 0", "field `A` has 0 buffers; 1 to 2 are possible"),
        (
            "[\"Q\"], \"buffers\": 1",
            "[\"Q\"], \"buffers\": 0",
            "kernel `one` takes field `W`, which has no buffer",
        ),
    ] {
        let wanted = format!("the plan of heat is not valid: {wanted}; compile the program again");
        assert_eq!(error(from, to), wanted);
    }
}

#[test]
fn the_ptx_lies_beside() {
    assert_eq!(ptx_beside(Path::new("out/heat.plan.json")), Path::new("out/heat.ptx"));
    assert_eq!(ptx_beside(Path::new("heat")), Path::new("heat.ptx"));
}
