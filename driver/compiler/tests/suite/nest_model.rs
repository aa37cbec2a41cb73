//! The predicted time of functions of affine loops against times that were measured on an H200.

use std::collections::BTreeMap;
use std::fmt::Write;
use stencil_compiler::stages::{self, Compilation};
use stencil_compiler::toolchain::KernelResources;
use stencil_compiler::{Arithmetic, Control, Options, Source, predicted_run};
use stencil_dialects::tiled::NestTile;
use stencil_runtime::bind::{Request, bind};
use stencil_runtime::number::Numeral;

use crate::model::{record, suite};

/// A measured run and what the model says of it, in seconds.
struct Row {
    what: String,
    measured: f64,
    predicted: f64,
    bottleneck: &'static str,
}

impl Row {
    /// The predicted rate over the measured one.
    fn factor(&self) -> f64 {
        self.measured / self.predicted
    }
}

/// Sizes of the measured runs: the column `size` for most params.
fn sizes(program: &str, size: i64) -> BTreeMap<String, i64> {
    let named: &[(&str, i64)] = match program {
        "mv" | "tmv" => &[("N", size), ("M", size)],
        "mvt" => &[("N", size)],
        "mm-f32" => &[("N", size), ("M", size), ("K", size)],
        "conv2d" => &[
            ("N", size),
            ("M", size),
            ("O_0", size),
            ("O_1", size),
            ("A_0", size + 2),
            ("A_1", size + 2),
        ],
        "mri-q" | "mri-fhd" => &[("N", size), ("K", 2048)],
        "cp" => &[("N", size), ("M", size), ("K", 2048)],
        "adi" => &[("N", size), ("T", 4)],
        "fdtd2d" => &[("N", size), ("M", size), ("T", 16)],
        other => panic!("no sizes of {other}"),
    };
    named.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect()
}

/// The tile of `threads=16,16 per-thread=8,8 time=8`.
fn tile(text: &str) -> NestTile {
    let value = |name: &str| {
        let word = text.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        word.map(|list| list.split(',').map(|one| one.parse().unwrap()).collect::<Vec<i64>>())
    };
    NestTile {
        threads: value("threads").unwrap(),
        copiers: value("copiers").map_or(1, |one| one[0]),
        per_thread: value("per-thread").unwrap(),
        blocked: false,
        time: value("time").unwrap()[0],
    }
}

/// The row of a line of a record; none for versions that the compiler has no option for.
fn row(line: &BTreeMap<String, String>) -> Option<Row> {
    let (program, version) = (line["program"].as_str(), line["version"].as_str());
    let mut options = Options::default();
    let fast_math = version.ends_with("fast math")
        || line["figure"] == "passes" && ["mri-q", "mri-fhd", "cp"].contains(&program);
    options.arithmetic = Arithmetic { contract: true, fast_math };
    match version.trim_end_matches(", fast math") {
        "default" | "nest" => {}
        "--no-nest-tiles" | "direct global" => options.config.no_nest_tiles = true,
        "--transpose-arrays" => options.config.transpose_arrays = true,
        text if text.starts_with("threads=") => options.config.nest_tile = Some(tile(text)),
        _ => return None,
    }
    let text = std::fs::read_to_string(suite().join(format!("nests/{program}.mlir"))).unwrap();
    let source = Source::new(format!("{program}.mlir"), text);
    let context = stages::context(&source).unwrap();
    let mut compilation =
        Compilation::new(&context, &source, &options, Control::default()).unwrap();
    compilation.to_gpu().unwrap();
    let plan = compilation.plan().unwrap();
    let scalars = plan.scalars.iter().map(|one| (one.name.clone(), Numeral::from(0.5))).collect();
    let sizes = sizes(program, line["size"].parse().unwrap());
    let request = Request { sizes, scalars, ..Request::default() };
    let bound = bind(&plan, &request).unwrap_or_else(|error| panic!("{program}: {error}"));
    let number = |column: &str| line[column].parse().unwrap();
    let known = |kernel: &stencil_runtime::plan::Kernel| KernelResources {
        name: kernel.name.clone(),
        registers: number("registers"),
        // Records have the stores alone.
        spills: 2 * number("spilled"),
        shared: 0,
    };
    let known: Vec<_> = plan.kernels.iter().map(known).collect();
    let device = options.target().unwrap().device;
    let found = predicted_run::of(&compilation.module, &plan, &bound, &known, device).unwrap();
    let run = found.1.unwrap_or_else(|| panic!("{program} {version}: it does not fit"));
    let terms = run.prediction.terms().into_iter();
    Some(Row {
        what: format!("{program} | {} | {version}", line["size"]),
        measured: line["ms"].parse::<f64>().unwrap() * 1e-3,
        predicted: run.prediction.seconds,
        bottleneck: terms.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0,
    })
}

/// The rows of a figure in a record, every so many, whose registers are known.
fn rows(file: &str, figure: &str, every: usize) -> Vec<Row> {
    let is_one =
        |line: &BTreeMap<String, String>| line["figure"] == figure && !line["registers"].is_empty();
    let lines = record(file).into_iter().filter(is_one);
    lines.step_by(every).filter_map(|line| row(&line)).collect()
}

/// The middle one of some factors, each at least 1.
fn median(rows: &[&Row]) -> f64 {
    let mut factors: Vec<f64> =
        rows.iter().map(|row| row.factor().max(1.0 / row.factor())).collect();
    factors.sort_by(f64::total_cmp);
    factors[factors.len() / 2]
}

/// The table of docs/performance.md, in milliseconds.
#[test]
fn predicted_times_of_nests_are_those_of_the_table() {
    let rows = rows("2026-11-27-h200-nest-passes.tsv", "passes", 1);
    let mut table = String::new();
    for row in &rows {
        writeln!(
            table,
            "| {} | {:.3} | {:.3} | {:.2} | {} |",
            row.what,
            row.measured * 1e3,
            row.predicted * 1e3,
            row.factor(),
            row.bottleneck
        )
        .unwrap();
    }
    let document = suite().join("../docs/performance.md");
    let text = std::fs::read_to_string(document).unwrap();
    assert!(rows.len() > 20 && text.contains(&table), "the document lacks\n{table}");
    for row in &rows {
        assert!((0.3..2.2).contains(&row.factor()), "{}: {:.2}", row.what, row.factor());
    }
    // Fast functions cost less than the model says.
    let others: Vec<&Row> = rows.iter().filter(|row| !row.what.starts_with("mri")).collect();
    assert!(median(&others) < 1.3, "{}", median(&others));
}

#[test]
fn predicted_times_tell_good_tiles_from_bad_ones() {
    let file = "2026-11-26-h200-nest-tables.tsv";
    let (tiles, fdtd) = (rows(file, "figure 7", 3), rows(file, "figure 9", 1));
    let (tiles, fdtd): (Vec<&Row>, Vec<&Row>) = (tiles.iter().collect(), fdtd.iter().collect());
    let mut list: Vec<&&Row> = tiles.iter().collect();
    list.sort_by(|a, b| a.predicted.total_cmp(&b.predicted));
    let lines = list.iter().map(|row| {
        let Row { what, measured, predicted, bottleneck } = row;
        format!("{what}: {:.3} {:.3} {bottleneck}\n", measured * 1e3, predicted * 1e3)
    });
    let lines: String = lines.collect();
    assert!(tiles.len() > 25 && median(&tiles) < 1.3, "{}\n{lines}", median(&tiles));
    assert!(fdtd.len() == 4 && median(&fdtd) < 1.2, "{}", median(&fdtd));
    // The best tile is among the four that the model predicts to be fastest.
    let least = |times: &mut dyn Iterator<Item = f64>| times.fold(f64::INFINITY, f64::min);
    let best = least(&mut tiles.iter().map(|row| row.measured));
    let first = least(&mut list.iter().take(4).map(|row| row.measured));
    assert!(first <= 1.05 * best, "{first} {best}\n{lines}");
    // Tiles that spill take five times as long and more: so they do by the model.
    for row in tiles.iter().filter(|row| row.measured > 5.0 * best) {
        assert!(row.predicted > 2.0 * best, "{}\n{lines}", row.what);
    }
}
