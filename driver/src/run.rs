//! `stencilc run`: compiles a program, runs it on data, checks it and writes its result.

use crate::cli::{RunArgs, TargetName, unique};
use crate::compile::{print_ir, print_timing};
use crate::files::{self, Outputs, is_standard};
use crate::message::say;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use stencil_compiler::{
    Array, Control, Ended, Failure, Outcome, Plan, Progress, Request, Session, Source, Target,
    compare,
};
use stencil_runtime::input::{self, InputError, Source as Input};
use stencil_runtime::npy::NpyError;
use stencil_runtime::number::Numeral;
use stencil_runtime::plan::Role;
use stencil_runtime::record::records;

/// A program that is to be run on arrays.
struct Job<'a> {
    session: Session,
    source: Source,
    inputs: BTreeMap<String, Array>,
    request: Request,
    cancel: &'a Arc<AtomicBool>,
    /// Whether the IR is printed after each pass.
    print_ir: bool,
    /// Whether it is printed how long each pass took.
    print_timing: bool,
}

/// Does what the command line asks for.
pub(crate) fn execute(args: &RunArgs, cancel: &Arc<AtomicBool>) -> Result<(), Failure> {
    let of_simulator = args.report || args.report_json.is_some() || args.seed.is_some();
    if args.target != TargetName::Sim && of_simulator {
        return Err(Failure::user(
            "--report, --report-json and --seed are for the simulator; add --target sim or leave \
             them out",
        ));
    }
    let sources = unique("--in", &args.inputs)?;
    let results = unique("--out", &args.outputs)?;
    check_places(args, &sources, &results)?;
    let source = files::read(&args.common.file)?;
    let session = args.common.session(&source)?;
    let declared = session.declared(&source)?;
    let states = check_names(&declared, &results)?;
    let request = Request {
        sizes: unique("--size", &args.sizes)?,
        steps: args.steps,
        scalars: unique("--set", &args.scalars)?,
        ..Request::default()
    };
    let (_, inputs) = input::prepare(&declared, request.clone(), &sources, |_| None)
        .map_err(|error| unprepared(&error))?;
    // The declarations have no schedule to choose from.
    let request = Request { choices: unique("--choose", &args.choose)?, ..request };
    let target = target(args)?;
    let (print_ir, print_timing) = (args.common.print_ir_after_all, args.common.timing);
    let job = Job { session, source, inputs, request, cancel, print_ir, print_timing };
    let outcome = job.run(target)?;
    let mut told = summary(&outcome);
    told += &values(&declared, &outcome);
    if let Some(counters) = outcome.counters.as_ref().filter(|_| args.report) {
        told += &counters.to_string();
    }
    if args.check {
        // The reference has no schedule.
        let request = Request { choices: BTreeMap::new(), ..job.request.clone() };
        let reference = job.run_as(Target::Reference, request)?;
        let arithmetic = job.session.options().arithmetic;
        for field in compare(&reference.outputs, &outcome.outputs, arithmetic, args.tolerance)? {
            told += &format!("{field}\n");
        }
    }
    // A run on the simulator is for its findings.
    if results.is_empty() && !states.is_empty() && !args.check && args.target != TargetName::Sim {
        let names: Vec<_> = states.iter().map(|name| format!("--out {name}=FILE.npy")).collect();
        told += &format!("the result was not kept; keep it with {}\n", names.join(" "));
    }
    write(args, &declared, &results, &outcome)?;
    say(told);
    Ok(())
}

/// A file that can't be written is refused before a long run.
fn check_places(
    args: &RunArgs,
    sources: &BTreeMap<String, Input>,
    results: &BTreeMap<String, PathBuf>,
) -> Result<(), Failure> {
    if let Some((name, _)) = results.iter().find(|(_, path)| is_standard(path)) {
        return Err(Failure::user(format!(
            "the cells of `{name}` can't go to standard output; name a file: --out {name}=FILE.npy"
        )));
    }
    let mut read = args.common.files();
    read.extend(sources.values().filter_map(|source| match source {
        Input::File(path) => Some(path.clone()),
        Input::Random(_) | Input::Zeros => None,
    }));
    let written: Vec<PathBuf> = results.values().chain(&args.report_json).cloned().collect();
    files::check_outputs(&written, &read)
}

/// The names of the state fields; each result must be one of these, or a reduction.
fn check_names<'p>(
    declared: &'p Plan,
    results: &BTreeMap<String, PathBuf>,
) -> Result<Vec<&'p str>, Failure> {
    let fields = records(&declared.fields);
    let outputs = fields.iter().filter(|field| field.role().is_some_and(Role::is_output));
    let outputs: Vec<&str> = outputs.map(|field| field.name).collect();
    if let Some(name) = results.keys().find(|name| !outputs.contains(&name.as_str())) {
        return Err(Failure::user(format!(
            "{} has no output `{name}`; it has {}",
            declared.program,
            outputs.join(", ")
        )));
    }
    let states = fields.iter().filter(|field| field.role() == Some(Role::State));
    Ok(states.map(|field| field.name).collect())
}

fn target(args: &RunArgs) -> Result<Target, Failure> {
    let target = match args.target {
        TargetName::Auto => Target::available(),
        TargetName::Reference => Target::Reference,
        TargetName::Sim => Target::Simulator { seed: args.seed },
        TargetName::Cuda => Target::Cuda(0),
    };
    if args.check && target == Target::Reference {
        let is_auto = args.target == TargetName::Auto;
        let why = if is_auto { ", as there is no CUDA device" } else { "" };
        return Err(Failure::user(format!(
            "--check would compare the reference with itself{why}; add --target sim or leave \
             --check out"
        )));
    }
    Ok(target)
}

impl Job<'_> {
    fn run(&self, target: Target) -> Result<Outcome, Failure> {
        self.run_as(target, self.request.clone())
    }

    fn run_as(&self, target: Target, request: Request) -> Result<Outcome, Failure> {
        let what = match target {
            Target::Reference => "reference",
            Target::Simulator { .. } => "simulator",
            Target::Cuda(_) => "cuda",
        };
        let mut bar: Option<ProgressBar> = None;
        let mut show = |progress: Progress<'_>| match progress {
            Progress::Pass { .. } if self.print_ir => print_ir(progress),
            Progress::Pass { .. } => {}
            Progress::Steps { done, of } => {
                bar.get_or_insert_with(|| new_bar(what, of)).set_position(done);
            }
        };
        let mut control = Control {
            progress: Some(&mut show),
            cancel: Arc::clone(self.cancel),
            ..Control::default()
        };
        let executable = self.session.executable(&self.source, target, control.reborrow())?;
        if self.print_timing {
            print_timing(executable.timing());
        }
        let outcome = executable.run(&self.inputs, request, control);
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        outcome
    }
}

fn new_bar(what: &'static str, total: u64) -> ProgressBar {
    // Short runs show nothing; a bar that appears and vanishes only disturbs.
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(5));
    let style = ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len} steps, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_prefix(what);
    bar
}

/// A run in a line; nothing where nothing was measured.
fn summary(outcome: &Outcome) -> String {
    let Outcome { launches, steps, cells, .. } = outcome;
    if outcome.counters.is_some() {
        return format!("simulator: {launches} launches of {steps} steps, no fault found\n");
    }
    let Some(elapsed) = outcome.elapsed else { return String::new() };
    let seconds = elapsed.as_secs_f64();
    let rate = *cells as f64 * *steps as f64 / seconds.max(1e-12) / 1e9;
    let what = match &outcome.device {
        Some(device) => format!("{device}: {launches} launches, "),
        None => "reference: ".to_owned(),
    };
    format!("{what}{steps} steps in {:.3} ms, {rate:.3} GCells/s\n", seconds * 1e3)
}

/// How the run ended, where it may end early, and the values of its reductions.
fn values(declared: &Plan, outcome: &Outcome) -> String {
    let mut told = String::new();
    if let Some(Ended { condition, met }) = &outcome.ended {
        let steps = outcome.steps;
        told += &match met {
            true => format!("stopped after {steps} steps: {condition}\n"),
            false => format!("took all {steps} steps; this never held: {condition}\n"),
        };
    }
    let reductions = declared.fields.iter().filter(|field| field.role == Role::Reduction);
    for field in reductions {
        let value = outcome.outputs.get(&field.name).and_then(|array| array.number(0));
        if let Some(value) = value {
            told += &format!("{} = {}\n", field.name, Numeral::from(value));
        }
    }
    told
}

/// Why inputs could not be made ready; a file that is not there may be meant as another kind of
/// data.
fn unprepared(error: &InputError) -> Failure {
    match error {
        InputError::Npy(NpyError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => {
            Failure::user(format!("{error}; an input is an .npy file, random:SEED or zeros"))
        }
        _ => Failure::user(error),
    }
}

fn write(
    args: &RunArgs,
    declared: &Plan,
    results: &BTreeMap<String, PathBuf>,
    outcome: &Outcome,
) -> Result<(), Failure> {
    let records = records(&declared.fields);
    let mut outputs = Outputs::default();
    for field in &records {
        let Some(path) = results.get(field.name) else { continue };
        let leaves = field.leaves.iter().map(|(_, leaf)| outcome.outputs.get(&leaf.name));
        let leaves: Option<Vec<&Array>> = leaves.collect();
        let missing = || Failure::user(format!("there is no output `{}`", field.name));
        outputs.add_cells(path, field, leaves.ok_or_else(missing)?);
    }
    if let (Some(path), Some(counters)) = (&args.report_json, &outcome.counters) {
        outputs.add_text(path, &(counters.json() + "\n"));
    }
    outputs.write()
}
