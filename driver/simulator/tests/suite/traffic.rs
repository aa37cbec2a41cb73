//! The model of loads and stores against the simulator's count, on all programs and nests of the
//! test suite.

use crate::common::{Case, rank};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use stencil_compiler::predicted_run;
use stencil_compiler::stages::{self, Compilation};
use stencil_compiler::traffic::{self, Effort};
use stencil_compiler::{Choice, Control as Hooks, Options as CompileOptions, RecordLayout, Source};
use stencil_runtime::bind::Request;
use stencil_runtime::execute::{self, Control};
use stencil_runtime::input::{self, Source as Input};
use stencil_runtime::number::{Number, Numeral};
use stencil_runtime::plan::{Plan, ScalarDecl};
use stencil_simulator::{Options, Simulator, Traffic};

/// The largest difference that is allowed, as a part of the count.
const ALLOWED: f64 = 0.05;

/// Programs of which the model gives an upper bound, as docs/simulator.md says.
const BOUNDED: [&str; 1] = ["statistics3d"];

/// A program under a schedule: bytes by the model and by the simulator, of loads and of stores.
struct Row {
    what: String,
    kernels: Vec<(String, [u64; 2], [u64; 2])>,
    /// The part of the sectors that accesses need, by the model and by the simulator.
    coalesced: [f64; 2],
}

impl Row {
    fn pairs(&self) -> impl Iterator<Item = (u64, u64)> {
        let pairs = |(_, model, counted): &(String, [u64; 2], [u64; 2])| {
            [(model[0], counted[0]), (model[1], counted[1])]
        };
        self.kernels.iter().flat_map(pairs)
    }

    /// The largest difference of a kernel's loads or stores, as a part of the count.
    fn difference(&self) -> f64 {
        let part =
            |(model, counted): (u64, u64)| model.abs_diff(counted) as f64 / counted.max(1) as f64;
        self.pairs().map(part).fold(0.0, f64::max)
    }

    fn is_right(&self) -> bool {
        match BOUNDED.iter().any(|name| self.what.starts_with(name)) {
            true => self.pairs().all(|(model, counted)| model >= counted),
            false => self.difference() <= ALLOWED,
        }
    }
}

/// The files of a folder of the test suite with an ending, by name.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-suite").join(folder);
    let paths = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let ends = |path: &PathBuf| path.extension().is_some_and(|found| found == ending);
    let mut found: Vec<_> = paths.filter(ends).collect();
    found.sort();
    assert!(found.len() > 10, "{folder:?}");
    found
}

/// Runs a source, with cells per dimension for a plan. None where its schedule is declined.
fn row(
    what: &str,
    source: &Source,
    options: &CompileOptions,
    size: &dyn Fn(&Plan) -> i64,
    steps: Option<i64>,
) -> Option<Row> {
    let context = stages::context(source).unwrap();
    let compiled = Compilation::new(&context, source, options, Hooks::default());
    let mut compilation = compiled.unwrap_or_else(|failure| panic!("{what}: {failure}"));
    if let Err(failure) = compilation.to_gpu() {
        assert!(failure.to_string().contains("declined"), "{what}: {failure}");
        return None;
    }
    let (module, plan) = (&compilation.module, compilation.plan().unwrap());
    // Sizes that differ find swapped dimensions.
    let size = size(&plan);
    // Arrays without named extents have room for what a nest reads beside its points.
    let room = |name: &String| if name.contains('_') { 6 * size } else { 0 };
    let sizes = plan.params.iter().zip(0..);
    let sizes = sizes.map(|(name, place)| (name.clone(), size + 3 * place + room(name)));
    let scalar = |open: &ScalarDecl| {
        let number = if open.element.is_float() { Number::F32(0.5) } else { Number::I32(5) };
        (open.name.clone(), Numeral::from(number))
    };
    let open = plan.scalars.iter().filter(|scalar| scalar.default.is_none());
    let request = Request {
        sizes: sizes.collect(),
        steps,
        scalars: open.map(scalar).collect(),
        ..Request::default()
    };
    let noise = |place: usize| Some(Input::Random(place as u64 + 7));
    let (bound, inputs) = input::prepare(&plan, request, &BTreeMap::new(), noise)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let model =
        traffic::of(module, &plan, &bound, Effort::Whole).unwrap_or_else(|error| panic!("{error}"));
    let device = options.target().unwrap().device;
    let (mix, _) = predicted_run::of(module, &plan, &bound, &[], device).unwrap();
    let mut simulator = match Simulator::new(module, Options::default()) {
        Ok(simulator) => simulator,
        Err(error) => {
            assert!(error.to_string().contains("more than 65535 operations"), "{what}: {error}");
            return None;
        }
    };
    execute::run(&plan, &bound, &inputs, &mut simulator, &mut Control::default())
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let report = simulator.report();
    assert_eq!(model.kernels.len(), report.kernels.len(), "{what}");
    let kernels = model.kernels.iter().map(|kernel| {
        let counted = report.kernels.iter().find(|counted| counted.name == kernel.name).unwrap();
        let counted = [&counted.total.global_read, &counted.total.global_write];
        let counted = counted.map(|traffic| traffic.bytes);
        assert!(!kernel.is_estimate, "{what}: {}", kernel.name);
        (kernel.name.clone(), [kernel.loaded, kernel.stored], counted)
    });
    let accesses = report.kernels.iter().flat_map(|kernel| {
        let total = &kernel.total;
        [&total.global_read, &total.global_write]
    });
    let sum = |(ideal, moved), one: &Traffic| (ideal + one.ideal, moved + one.moved);
    let (ideal, moved) = accesses.fold((0, 0), sum);
    let coalesced = [mix.coalesced, ideal as f64 / moved.max(1) as f64];
    Some(Row { what: what.to_owned(), kernels: kernels.collect(), coalesced })
}

/// Cells per dimension under which a tile has neighbours on both sides; fewer where the simulator
/// would take long. The other schedules have small tiles.
fn cells(plan: &Plan, rank: usize) -> i64 {
    let most = [3000, 160, 25][rank - 1];
    let tile = plan.settings.tile.iter().max().copied().unwrap_or(1);
    (tile * 5 / 2 + 3).clamp(most / 3, most)
}

/// A program under its default schedule and under all others that take it.
fn program(path: &Path) -> Vec<Row> {
    let name = path.file_stem().unwrap().to_str().unwrap();
    let naive = Case::naive(name);
    let rank = rank(&naive);
    let (tile, size): (&[i64], _) = match rank {
        1 => (&[64], 300),
        2 => (&[8, 32], 70),
        _ => (&[4, 6, 8], 16),
    };
    let cases = [
        naive.clone(),
        Case::block(name, tile, 2),
        Case::block(name, tile, 1),
        // In three dimensions the default is a stream of several steps, and takes long to compile.
        Case::stream(name, tile, if rank == 3 { 1 } else { 2 }),
        Case::stream(name, tile, 1),
        Case::plane(name, tile, 2),
        Case::warp(name, 2, 4),
        Case::wavefront(name, tile),
        Case::strip(name, &[64, 8]),
    ];
    let (mut rows, mut taken) = (Vec::new(), Vec::new());
    for case in cases {
        // One step per launch only where two are declined. Three steps leave a remainder of one.
        // To save time, planes are compared in three dimensions alone.
        if taken.contains(&case.strategy) || case.strategy == "plane" && rank < 3 {
            continue;
        }
        let what = format!("{name} {}", case.strategy);
        if let Some(row) = row(&what, &case.source(), &case.options(), &|_| size, Some(3)) {
            taken.push(case.strategy);
            rows.push(row);
        }
    }
    let mut options = naive.options();
    options.config.choice = Choice::default();
    let size = |plan: &Plan| cells(plan, rank);
    rows.extend(row(&format!("{name} default"), &naive.source(), &options, &size, Some(3)));
    rows
}

/// A nest with tiles and without.
fn nest(path: &Path) -> Vec<Row> {
    let text = std::fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    let source = Source::new(name, text.as_str());
    // Its five nested loops take long.
    let size = if name == "sad.mlir" { 20 } else { 70 };
    let with = |tiles: bool| {
        let mut options = CompileOptions::default();
        options.config.no_nest_tiles = !tiles;
        row(&format!("{name}, tiles {tiles}"), &source, &options, &|_| size, None)
    };
    [with(true), with(false)].into_iter().flatten().collect()
}

/// The rows of some files, on the processors of the machine.
fn rows(files: Vec<PathBuf>, of: impl Fn(&Path) -> Vec<Row> + Sync) -> Vec<Row> {
    let (open, done) = (Mutex::new(files), Mutex::new(Vec::new()));
    let next = || open.lock().unwrap().pop();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, |count| count.get()) {
            scope.spawn(|| {
                while let Some(path) = next() {
                    let rows = of(&path);
                    done.lock().unwrap().extend(rows);
                }
            });
        }
    });
    let mut rows = done.into_inner().unwrap();
    rows.sort_by(|a, b| a.what.cmp(&b.what));
    rows
}

/// Fails with a table where the model is off by more than is allowed.
fn check(rows: &[Row], fewest: usize) {
    assert!(rows.len() >= fewest, "{} rows", rows.len());
    let mut table = String::new();
    for row in rows.iter().filter(|row| !row.is_right()) {
        writeln!(table, "{}: {:.1} %", row.what, row.difference() * 100.0).unwrap();
        for (kernel, [loaded, stored], [read, written]) in &row.kernels {
            writeln!(
                table,
                "  {kernel:<30} loads {loaded:>12} of {read:>12}, stores {stored:>12} of \
                 {written:>12}"
            )
            .unwrap();
        }
    }
    assert!(table.is_empty(), "bytes by the model, of bytes by the simulator:\n{table}");
}

#[test]
fn programs_move_what_the_model_predicts() {
    check(&rows(files("programs", "stencil"), program), 340);
}

#[test]
fn arrays_of_structs_move_what_the_model_predicts() {
    let mut rows = Vec::new();
    for layout in [RecordLayout::AosDirect, RecordLayout::AosRelaid, RecordLayout::AosBlocks] {
        let name = "d2q9";
        let case = Case::naive(name);
        let mut options = case.options();
        options.config.layout = layout;
        rows.extend(row(&format!("{name} {layout:?}"), &case.source(), &options, &|_| 72, Some(3)));
    }
    check(&rows, 3);
}

#[test]
fn nests_move_what_the_model_predicts() {
    let rows = rows(files("nests", "mlir"), nest);
    check(&rows, 56);
    let off: Vec<_> = rows
        .iter()
        .filter(|row| (row.coalesced[0] - row.coalesced[1]).abs() > ALLOWED)
        .map(|row| format!("{}: {:.3} of {:.3}", row.what, row.coalesced[0], row.coalesced[1]))
        .collect();
    assert!(off.is_empty(), "coalesced by the model, by the simulator:\n{}", off.join("\n"));
}
