//! The strategy of docs/add-a-strategy.md: compiled, run on the simulator, compared with the
//! oracle, and declined where it has to be.

use std::collections::BTreeMap;
use std::path::Path;
use stencil_additions::launch_plan;
use stencil_additions::pipeline_text;
use stencil_additions::runner::Runner;
use stencil_additions::schedule::lowering::Settings;
use stencil_additions::schedule::predict;
use stencil_compiler::stages::{Compilation, context};
use stencil_compiler::{
    Arithmetic, Choice, Config, Control, Options, Request, Session, Source, Target,
};
use stencil_dialects::error::{Decline, Error, Fault};
use stencil_runtime::array::Array;
use stencil_runtime::bind::Bound;
use stencil_runtime::execute;
use stencil_runtime::input::{self, Source as Input};
use stencil_runtime::plan::Plan;
use stencil_simulator::Simulator;

/// A program of the test suite.
fn program(name: &str) -> Source {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    Source { name: name.to_owned(), text }
}

/// Each operation rounded by itself, every function as it stands.
fn options() -> Options {
    Options {
        config: Config { no_fuse: true, ..Config::default() },
        arithmetic: Arithmetic::default(),
        ..Options::default()
    }
}

/// Runs passes on a program's stencil level, then the kernels on the simulator.
fn simulate(source: &Source, passes: &str) -> Result<(Plan, BTreeMap<String, Array>), Error> {
    let (context, options) = (context(source).unwrap(), options());
    let mut compilation = Compilation::new(&context, source, &options, Control::default()).unwrap();
    let steps = pipeline_text::parse(passes)?;
    Runner::default().run(&context, &mut compilation.module, &steps)?;
    let plan = launch_plan::of(&context, &compilation.module)?;
    let request = request(&plan);
    let (bound, inputs) = prepare(&plan, &request);
    let mut simulator =
        Simulator::new(&compilation.module, stencil_simulator::Options::default()).unwrap();
    let mut control = execute::Control::default();
    let outcome = execute::run(&plan, &bound, &inputs, &mut simulator, &mut control)
        .unwrap_or_else(|error| panic!("{}: {error}", source.name));
    Ok((plan, outcome.outputs))
}

/// Small sizes, each another, and three steps.
fn request(plan: &Plan) -> Request {
    let sizes = plan.params.iter().cloned().zip((21..).step_by(3)).collect();
    Request { sizes, steps: Some(3), ..Request::default() }
}

/// Noise in every field.
fn prepare(plan: &Plan, request: &Request) -> (Bound, BTreeMap<String, Array>) {
    let noise = |place| Some(Input::Random(place as u64));
    input::prepare(plan, request.clone(), &BTreeMap::new(), noise)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The oracle's result.
fn expected(source: &Source) -> BTreeMap<String, Array> {
    let oracle = Session::new(options())
        .executable(source, Target::Reference, Control::default())
        .unwrap_or_else(|failure| panic!("{failure}"));
    let request = request(oracle.plan());
    let (_, inputs) = prepare(oracle.plan(), &request);
    let outcome = oracle.run(&inputs, request, Control::default());
    outcome.unwrap_or_else(|failure| panic!("{failure}")).outputs
}

#[test]
fn columns_equal_the_oracle() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs");
    let mut compared = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !name.ends_with(".stencil") {
            continue;
        }
        let source = program(&name);
        let result =
            simulate(&source, "tile-overlapped{strategy=column},lower-column,lower-reduce");
        let outputs = match result {
            Ok((_, outputs)) => outputs,
            Err(Error { fault: Fault::Declined(Decline::Rank | Decline::Sweep), .. }) => continue,
            Err(error) => panic!("{name}: {error}"),
        };
        assert_eq!(outputs, expected(&source), "{name}");
        compared += 1;
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn the_shape_is_asked_for_or_the_default() {
    let passes =
        |options: &str| format!("tile-overlapped{{strategy=column{options}}},lower-column");
    for (options, tile, per_thread) in [
        ("", [32, 64], [8, 1]),
        (" tile=12,32 per-thread=3", [12, 32], [3, 1]),
        (" tile=5,32 per-thread=1", [5, 32], [1, 1]),
    ] {
        let (plan, _) = simulate(&program("heat2d.stencil"), &passes(options)).unwrap();
        let settings = &plan.settings;
        assert_eq!(settings.strategy, "column");
        assert_eq!((&settings.tile[..], &settings.per_thread[..]), (&tile[..], &per_thread[..]));
    }
}

#[test]
fn what_columns_cannot_do_is_declined() {
    for (name, options, reason) in [
        ("jacobi1d3.stencil", "", Decline::Rank),
        ("heat2d.stencil", " pyramid-height=2", Decline::Height),
        ("heat2d.stencil", " region=fixed", Decline::Region),
        ("heat2d.stencil", " tile=32,64 per-thread=3", Decline::TileShape),
        ("heat2d.stencil", " tile=32,64 per-thread=8,2", Decline::TileShape),
        ("heat2d.stencil", " tile=64,64 per-thread=1", Decline::Threads),
    ] {
        let passes = format!("tile-overlapped{{strategy=column{options}}},lower-column");
        let error = simulate(&program(name), &passes).unwrap_err();
        assert_eq!(error.fault, Fault::Declined(reason), "{options}: {error}");
    }
}

#[test]
fn the_choice_looks_at_columns() {
    let (source, options) = (program("heat2d.stencil"), options());
    let context = context(&source).unwrap();
    let compilation = Compilation::new(&context, &source, &options, Control::default()).unwrap();
    let found = predict::candidates(
        &context,
        &compilation.module,
        &Choice { strategy: Some("column".to_owned()), ..Choice::default() },
        Settings::default(),
    )
    .unwrap();
    let mut tiles: Vec<_> = found.into_iter().map(|candidate| candidate.tile).collect();
    tiles.sort();
    assert_eq!(tiles, [[16, 64], [32, 64]]);
}
