//! The model of `choose-schedule` against rates that were measured on an H200.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use stencil_dialects::tiled::Choice;
use stencil_frontend::source::Source;
use stencil_passes::pipeline::Config;
use stencil_passes::schedule::predict::Candidate;
use stencil_passes::target::Arithmetic;
use stencilc::compile::{self, Options};

fn suite() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-suite")
}

/// A measured schedule and what the model says of it, in GCells/s.
#[derive(Debug)]
struct Row {
    settings: String,
    stream: bool,
    measured: f64,
    predicted: f64,
}

fn integers(value: &Value) -> Vec<i64> {
    value.as_array().into_iter().flatten().filter_map(Value::as_i64).collect()
}

fn options(
    sizes: impl IntoIterator<Item = (String, i64)>,
    choice: Choice,
    fast_math: bool,
) -> Options {
    Options {
        defines: sizes.into_iter().collect(),
        config: Config { choice, ..Config::default() },
        arithmetic: Arithmetic { contract: true, fast_math },
        arch: "sm_90".to_owned(),
        libdevice: None,
        passes: None,
        print_ir_after_all: false,
    }
}

fn candidates(program: &str, options: &Options) -> Vec<Candidate> {
    let text =
        std::fs::read_to_string(suite().join(format!("programs/{program}.stencil"))).unwrap();
    let source = Source { name: format!("{program}.stencil"), text };
    compile::candidates(&source, options)
        .unwrap_or_else(|failure| panic!("{program}: {}", failure.text))
}

/// All measured schedules, by what was computed.
fn measured() -> BTreeMap<String, Vec<Row>> {
    let mut found: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for file in ["2026-11-20-h200-block.json", "2026-11-20-h200-stream.json"] {
        let text = std::fs::read_to_string(suite().join("bench/results").join(file)).unwrap();
        let record: Value = serde_json::from_str(&text).unwrap();
        for row in record["rows"].as_array().unwrap() {
            let (program, settings) = (row["program"].as_str().unwrap(), &row["settings"]);
            let fast_math = settings["fast_math"].as_bool().unwrap();
            // Its values decay to denormals within 240 steps, and a denormal takes a division many
            // times as long: the rate is one of the data.
            if program.starts_with("j2d") && !fast_math {
                continue;
            }
            let sizes =
                row["sizes"].as_object().unwrap().iter().filter(|(name, _)| *name != "steps");
            let choice = Choice {
                strategy: settings["strategy"].as_str().map(str::to_owned),
                tile: Some(integers(&settings["tile"])),
                pyramid_height: settings["pyramid_height"].as_i64(),
                per_thread: Some(integers(&settings["per_thread"])),
                ..Choice::default()
            };
            let options = options(
                sizes.map(|(name, size)| (name.clone(), size.as_i64().unwrap())),
                choice,
                fast_math,
            );
            let candidates = candidates(program, &options);
            found
                .entry(format!("{program} {} {fast_math} {file}", row["element"]))
                .or_default()
                .push(Row {
                    settings: settings.to_string(),
                    stream: settings["strategy"] == "stream",
                    measured: row["gcells"]["median"].as_f64().unwrap(),
                    predicted: candidates[0].gcells(),
                });
        }
    }
    found
}

#[test]
fn predictions_are_near_the_measured_rates() {
    let all = measured();
    let rows: Vec<(&String, &Row)> =
        all.iter().flat_map(|(what, rows)| rows.iter().map(move |row| (what, row))).collect();
    assert!(rows.len() > 60, "{}", rows.len());
    let mut factors = Vec::new();
    for (what, row) in rows {
        let factor = row.predicted / row.measured;
        assert!((0.5..2.0).contains(&factor), "{what}: {row:?}, a factor of {factor:.2}");
        if row.stream {
            assert!(
                (0.7..1.5).contains(&factor),
                "{what}: {}, a factor of {factor:.2}",
                row.settings
            );
        }
        factors.push(factor.max(1.0 / factor));
    }
    factors.sort_by(f64::total_cmp);
    let median = factors[factors.len() / 2];
    assert!(median < 1.2, "half of the predictions are off by more than {median:.2}");
}

#[test]
fn the_best_by_the_model_is_near_the_best_measured() {
    let mut choices = 0;
    for (what, rows) in measured() {
        let by =
            |rate: fn(&Row) -> f64| rows.iter().max_by(|a, b| rate(a).total_cmp(&rate(b))).unwrap();
        let (chosen, best) = (by(|row| row.predicted), by(|row| row.measured));
        choices += usize::from(rows.len() > 1);
        assert!(
            chosen.measured >= 0.85 * best.measured,
            "{what}: chosen {chosen:?}, best {best:?}"
        );
    }
    assert!(choices >= 20, "{choices}");
}

/// Divisions by scalars are products with their reciprocals, and a product goes into each of the
/// sums that use it: docs/inner-loops.md counts nine in the machine code of `hotspot2d` under
/// `block` and `stream` too.
#[test]
fn products_that_sums_take_in_are_not_counted() {
    let choice = Choice { strategy: Some("naive".to_owned()), ..Choice::default() };
    let sizes = ["N", "M"].map(|name| (name.to_owned(), 1 << 14));
    let found = candidates("hotspot2d", &options(sizes, choice, true));
    let kernel = &found[0].kernels[0];
    assert_eq!(kernel.single, 9.0 * f64::from(kernel.threads));
}
