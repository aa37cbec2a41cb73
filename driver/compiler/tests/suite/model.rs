//! The model of `choose-schedule` against rates that were measured on an H200.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use stencil_compiler::{Arithmetic, Candidate, Choice, Config, Failure, Options, Session, Source};
use stencil_runtime::model::Work;

pub fn suite() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-suite")
}

/// A measured schedule and what the model says of it, in GCells/s.
#[derive(Debug)]
struct Row {
    settings: String,
    stream: bool,
    measured: f64,
    predicted: f64,
}

pub fn integers(extents: &str) -> Vec<i64> {
    extents.split('x').map(|extent| extent.parse().unwrap()).collect()
}

/// Lines of a record, each by the names of its columns; lines of facts begin with `#`.
pub fn record(file: &str) -> Vec<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(suite().join("bench/results").join(file)).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t'));
    let columns: Vec<&str> = lines.next().unwrap().collect();
    let named = |cells| columns.iter().map(|&name| name.to_owned()).zip(cells).collect();
    lines.map(|cells| named(cells.map(str::to_owned))).collect()
}

pub fn options(
    sizes: impl IntoIterator<Item = (String, i64)>,
    choice: Choice,
    fast_math: bool,
) -> Options {
    Options {
        defines: sizes.into_iter().collect(),
        config: Config { choice, ..Config::default() },
        arithmetic: Arithmetic { contract: true, fast_math },
        ..Options::default()
    }
}

fn candidates(program: &str, options: Options) -> Vec<Candidate> {
    let text =
        std::fs::read_to_string(suite().join(format!("programs/{program}.stencil"))).unwrap();
    let source = Source { name: format!("{program}.stencil"), text };
    candidates_of(&source, options).unwrap_or_else(|failure| panic!("{program}: {failure}"))
}

/// The candidates of a program within the choice of its options.
pub fn candidates_of(source: &Source, options: Options) -> Result<Vec<Candidate>, Failure> {
    Session::new(options).candidates(source)
}

/// All measured schedules, by what was computed.
fn measured() -> BTreeMap<String, Vec<Row>> {
    let mut found: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for file in ["2026-11-20-h200-block.tsv", "2026-11-20-h200-stream.tsv"] {
        for line in record(file) {
            let program = &line["program"];
            let fast_math = line["fast_math"] == "yes";
            // These kernels had divisions, which have become products since (decision 052).
            if ["j2d", "jacobi"].iter().any(|name| program.starts_with(name)) && !fast_math {
                continue;
            }
            let sizes =
                ["N", "M", "L"].map(str::to_owned).into_iter().zip(integers(&line["cells"]));
            let choice = Choice {
                strategy: Some(line["strategy"].clone()),
                tile: Some(integers(&line["tile"])),
                pyramid_height: Some(line["height"].parse().unwrap()),
                per_thread: Some(integers(&line["per_thread"])),
                ..Choice::default()
            };
            let candidates = candidates(program, options(sizes, choice, fast_math));
            found
                .entry(format!("{program} {} {fast_math} {file}", line["type"]))
                .or_default()
                .push(Row {
                    settings: format!("{} {} {}", line["strategy"], line["tile"], line["height"]),
                    stream: line["strategy"] == "stream",
                    measured: line["gcells"].parse().unwrap(),
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
    assert!(rows.len() > 50, "{}", rows.len());
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
    assert!(choices >= 13, "{choices}");
}

/// Divisions by scalars are products with their reciprocals, and a product goes into each of the
/// sums that use it: docs/inner-loops.md counts nine in the machine code of `hotspot2d` under
/// `block` and `stream` too.
#[test]
fn products_that_sums_take_in_are_not_counted() {
    let choice = Choice { strategy: Some("naive".to_owned()), ..Choice::default() };
    let sizes = ["N", "M"].map(|name| (name.to_owned(), 1 << 14));
    let found = candidates("hotspot2d", options(sizes, choice, true));
    let kernel = &found[0].kernels[0];
    assert_eq!(kernel.single, 9.0 * f64::from(kernel.threads));
}

/// The work of the main kernel of a program's text under a schedule.
fn work(text: &str, strategy: &str, steps: i64) -> Work {
    let choice = Choice {
        strategy: Some(strategy.to_owned()),
        pyramid_height: Some(steps),
        ..Choice::default()
    };
    let sizes = ["N", "M"].map(|name| (name.to_owned(), 1 << 14));
    let source = Source { name: "test.stencil".to_owned(), text: text.to_owned() };
    candidates_of(&source, options(sizes, choice, false)).unwrap()[0].kernels[0].clone()
}

/// Two fields: `A` is updated everywhere, and `B` is read by the pieces that stand last.
fn program_of(last: &str) -> String {
    format!(
        "param N\nparam M\ngrid G = [0..N-1, 0..M-1]\nfield A : f32 on G\n\
         const field B : f32 on G\nfn f -> A {{\n{last}}}\nsteps 8\n"
    )
}

#[test]
fn a_field_is_loaded_where_pieces_need_it() {
    let inner = "  [1..N-2, 2..M-2] = A[0, 1] + A[1, 0]\n";
    let rim = program_of(&format!("{inner}  [1..N-2, 1] = B[0, 0]\n"));
    let all = program_of("  [1..N-2, 1..M-2] = A[0, 1] + A[1, 0] + B[0, 0]\n");
    for strategy in ["naive", "stream", "block", "patch"] {
        let [rim, all] = [&rim, &all].map(|text| work(text, strategy, 1));
        let cell = |work: &Work| work.own / (f64::from(1 << 28) / work.blocks);
        // A column is one in 16,384; the tiles with it are more, and tiles reach beyond the grid.
        assert!((7.9..8.6).contains(&cell(&rim)), "{strategy}: {}", cell(&rim));
        assert!((11.9..12.9).contains(&cell(&all)), "{strategy}: {}", cell(&all));
    }
    // Cells outside of all pieces keep what they have: half of the grid is loaded for that.
    let half = program_of("  [0..N-1, 0..M/2] = B[0, 0]\n");
    let half = work(&half, "naive", 1);
    let cell = half.own / (f64::from(1 << 28) / half.blocks);
    assert!((7.9..8.3).contains(&cell), "{cell}");
}

#[test]
fn steps_that_compute_the_same_count_once() {
    let alike = program_of("  [1..N-2, 1..M-2] = 0.5 * B[0, 1] + B[1, 0]\n");
    let after = program_of("  [1..N-2, 1..M-2] = 0.5 * A[0, 1] + B[1, 0]\n");
    let each = |text: &str, steps| {
        let work = work(text, "stream", steps);
        work.single / work.own
    };
    assert!(each(&alike, 4) < 1.3 * each(&alike, 1), "{}", each(&alike, 4) / each(&alike, 1));
    assert!(each(&after, 4) > 3.0 * each(&after, 1), "{}", each(&after, 4) / each(&after, 1));
}

/// The predicted rate of a program's wavefront over so many rows and columns, in GCells/s.
fn wave(program: &str, size: i64, choice: Choice) -> f64 {
    let text =
        std::fs::read_to_string(suite().join(format!("programs/{program}.stencil"))).unwrap();
    let source = Source { name: format!("{program}.stencil"), text };
    let sizes = ["N", "M"].map(|name| (name.to_owned(), size));
    let sweeps = Session::new(options(sizes, choice, false)).waves(&source);
    sweeps.unwrap_or_else(|failure| panic!("{program}: {failure}"))[0].gcells().unwrap()
}

#[test]
fn predicted_waves_are_near_the_measured_rates() {
    let mut rows = Vec::new();
    for line in record("2026-11-22-h200-wavefronts.tsv") {
        let choice = Choice {
            strategy: Some("wavefront".to_owned()),
            tile: Some(integers(&line["tile"])),
            ..Choice::default()
        };
        let predicted = wave(&line["program"], 32768, choice);
        let measured: f64 = line["gcells"].parse().unwrap();
        rows.push((format!("{} {}", line["program"], line["tile"]), predicted / measured, 1.2));
    }
    let today = |line: &BTreeMap<String, String>| {
        line["stage"] == "3" && line["variant"] == "-" && line["rows"] == line["columns"]
    };
    for line in record("2026-11-23-h200-rims.tsv").iter().filter(|line| today(line)) {
        let [each, strips, width] = integers(&line["shape"])[..] else { panic!("{line:?}") };
        let choice = Choice {
            strategy: Some("strip".to_owned()),
            tile: Some(vec![32 * each * strips, width]),
            per_thread: Some(vec![each, 1]),
            ..Choice::default()
        };
        let size = line["rows"].parse().unwrap();
        let predicted = wave(&line["program"], size, choice);
        let measured: f64 = line["GCells/s"].parse().unwrap();
        // The model does not know what pieces cost that take points in turn.
        let most = if line["program"] == "sor2d" { 2.2 } else { 1.6 };
        rows.push((format!("{} {}", line["program"], line["shape"]), predicted / measured, most));
    }
    assert!(rows.len() > 22, "{}", rows.len());
    let mut far = Vec::new();
    for (what, factor, most) in rows {
        println!("{what}: {factor:.2}");
        if !(1.0 / most..most).contains(&factor) {
            far.push(format!("{what}: {factor:.2}"));
        }
    }
    assert!(far.is_empty(), "{far:?}");
}
