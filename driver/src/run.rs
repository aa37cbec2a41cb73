//! `stencilc run`: compiles a program, runs it on a target, and checks it against the oracle.

use crate::compile::{self, Compilation, Options};
use crate::message::Failure;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use stencil_frontend::oracle;
use stencil_frontend::program::{Affine, Program, Role};
use stencil_frontend::source::Source;
use stencil_runtime::array::{Array, Element};
use stencil_runtime::bind::{Bound, Request};
use stencil_runtime::cuda::{Cuda, GraphSettings};
use stencil_runtime::execute::{self, Control, Outcome};
use stencil_runtime::expr::Expr;
use stencil_runtime::input::{self, InputError, Source as Input};
use stencil_runtime::npy::{self, NpyError};
use stencil_runtime::number::Numeral;
use stencil_runtime::plan::{self, Plan};
use stencil_runtime::record::records;

/// What a program runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// CUDA where there is a device, else the reference
    Auto,
    /// The oracle: a plain interpreter of the program
    Reference,
    /// A simulated GPU: every thread executed and judged
    Sim,
    /// A CUDA device
    Cuda,
}

/// What to run and on what.
#[derive(Clone, Debug)]
pub struct Job {
    /// The target.
    pub target: Target,
    /// Steps; the program's own if none.
    pub steps: Option<i64>,
    /// Run-time sizes that no input tells.
    pub sizes: BTreeMap<String, i64>,
    /// Run-time scalars.
    pub scalars: BTreeMap<String, Numeral>,
    /// Where inputs come from.
    pub inputs: BTreeMap<String, Input>,
    /// Whether the simulator's counters are told.
    pub report: bool,
    /// Where the simulator's counters go as JSON.
    pub report_json: Option<PathBuf>,
    /// The seed that permutes the order in which the simulator runs blocks.
    pub seed: Option<u64>,
    /// Where outputs go.
    pub outputs: BTreeMap<String, PathBuf>,
    /// Whether the result is compared with the oracle's.
    pub check: bool,
    /// The largest error, relative to the largest value of the field, that passes the check; bit
    /// for bit where it is none and nothing was contracted.
    pub tolerance: Option<f64>,
}

/// Set by the signal that asks to end.
static CANCEL: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Asks a running program to end before its next launch or step; asked again, ends the process.
/// Either way no output is written.
pub fn cancel() {
    if CANCEL.swap(true, Ordering::Relaxed) {
        std::process::exit(130);
    }
}

/// Runs a job; returns what to tell the user.
pub fn run(source: &Source, options: &Options, job: &Job) -> Result<String, Failure> {
    if source.name.ends_with(".mlir") {
        return Err(Failure::user(
            "run takes a .stencil program; compile MLIR by --emit=ptx,plan and run it by \
             stencil-bench",
        ));
    }
    let program = compile::check(source, &options.defines)?;
    // What can't be written should be said before a long run, and before another output is there.
    for path in job.outputs.values().chain(&job.report_json) {
        npy::check_place(path).map_err(Failure::user)?;
    }
    let states = program.fields.values().filter(|field| field.role == Role::State);
    let mut states: Vec<_> = states.map(|field| field.declared_name()).collect();
    states.dedup();
    if let Some(name) = job.outputs.keys().find(|name| !states.contains(&name.as_str())) {
        return Err(Failure::user(format!(
            "{} has no output `{name}`; it has {}",
            program.name,
            states.join(", ")
        )));
    }
    let declared = declarations(&program)?;
    let request = Request {
        sizes: job.sizes.clone(),
        steps: job.steps,
        scalars: job.scalars.clone(),
        ..Request::default()
    };
    let (bound, inputs) = input::prepare(&declared, request, &job.inputs, |_| None)
        .map_err(|error| unprepared(&error))?;
    let target = match job.target {
        Target::Auto if Cuda::open(0).is_ok() => Target::Cuda,
        Target::Auto => Target::Reference,
        named => named,
    };
    if job.check && target == Target::Reference {
        let why = if job.target == Target::Auto { ", as there is no CUDA device" } else { "" };
        return Err(Failure::user(format!(
            "--check would compare the reference with itself{why}; add --target sim or leave \
             --check out"
        )));
    }
    let mut report = String::new();
    let outputs = match target {
        Target::Cuda => {
            let (outcome, device) = on_cuda(source, options, &bound, &inputs)?;
            if let Some(elapsed) = outcome.launched.elapsed {
                report += &format!(
                    "{device}: {} launches, {}\n",
                    outcome.launched.count,
                    rate(&bound, elapsed)
                );
            }
            outcome.outputs
        }
        Target::Sim => {
            let (outcome, counters) = on_simulator(source, options, job, &bound, &inputs)?;
            report += &format!(
                "simulator: {} launches of {} steps, no fault found\n",
                outcome.launched.count, bound.steps
            );
            if job.report {
                report += &counters.to_string();
            }
            if let Some(path) = &job.report_json {
                crate::files::write(Some(path), &(counters.json() + "\n"))?;
            }
            outcome.outputs
        }
        Target::Auto | Target::Reference => {
            let start = Instant::now();
            let outputs = on_oracle(&program, &bound, &inputs)?;
            report += &format!("reference: {}\n", rate(&bound, start.elapsed()));
            outputs
        }
    };
    if job.check {
        report +=
            &compare(&on_oracle(&program, &bound, &inputs)?, &outputs, options, job.tolerance)?;
    }
    // The simulator is run for what it finds.
    if job.outputs.is_empty() && !job.check && target != Target::Sim {
        let names: Vec<_> = states.iter().map(|name| format!("--out {name}=FILE.npy")).collect();
        report += &format!("the result was not kept; keep it with {}\n", names.join(" "));
    }
    for record in records(&declared.fields) {
        let Some(path) = job.outputs.get(record.name) else { continue };
        let leaves: Option<Vec<&Array>> =
            record.leaves.iter().map(|(_, leaf)| outputs.get(&leaf.name)).collect();
        let leaves =
            leaves.ok_or_else(|| Failure::user(format!("there is no output `{}`", record.name)))?;
        record.write(path, &leaves).map_err(Failure::user)?;
    }
    Ok(report)
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

fn rate(bound: &Bound, elapsed: Duration) -> String {
    let cells: f64 =
        bound.shapes.iter().map(|shape| shape.iter().product::<usize>()).max().unwrap_or(0) as f64;
    let seconds = elapsed.as_secs_f64();
    let steps = bound.steps as f64;
    format!(
        "{} steps in {:.3} ms, {:.3} GCells/s",
        bound.steps,
        seconds * 1e3,
        cells * steps / seconds.max(1e-12) / 1e9
    )
}

/// A plan of declarations alone: enough to bind sizes and to read inputs for any target.
fn declarations(program: &Program) -> Result<Plan, Failure> {
    let internal = |error: &dyn std::fmt::Display| Failure {
        code: 2,
        text: format!("error: internal fault: {error}\n"),
    };
    let expression = |affine: &Affine| {
        affine.show(&program.params).parse::<Expr>().map_err(|error| internal(&error))
    };
    let extents = |region: &stencil_frontend::program::Region| -> Result<Vec<Expr>, Failure> {
        region
            .lower
            .iter()
            .zip(&region.upper)
            .map(|(lower, upper)| {
                let cells = upper.minus(lower).and_then(|cells| cells.shifted(1));
                expression(
                    &cells.ok_or_else(|| internal(&"a checked grid whose extents overflow"))?,
                )
            })
            .collect()
    };
    let mut plan = Plan {
        format: plan::FORMAT,
        program: program.name.clone(),
        target: plan::Target::default(),
        params: program
            .params
            .values()
            .filter(|param| param.value.is_none())
            .map(|param| param.name.clone())
            .collect(),
        constants: program
            .params
            .values()
            .filter_map(|param| Some((param.name.clone(), param.value?)))
            .collect(),
        scalars: program
            .scalars
            .values()
            .map(|scalar| plan::ScalarDecl {
                name: scalar.name.clone(),
                element: scalar.element,
                default: scalar.default.clone(),
            })
            .collect(),
        fields: Vec::new(),
        buffers: Vec::new(),
        steps: expression(&program.steps)?,
        checks: Vec::new(),
        index_width: 64,
        kernels: Vec::new(),
        schedule: Vec::new(),
        settings: plan::Settings::default(),
    };
    for field in program.fields.values() {
        plan.fields.push(plan::FieldDecl {
            name: field.name.clone(),
            element: field.element,
            member: field.member.clone(),
            role: match field.role {
                Role::State => plan::Role::State,
                Role::Const => plan::Role::Const,
                Role::Temp => plan::Role::Temp,
            },
            extents: extents(&program.grids[field.grid].region)?,
            value: Vec::new(),
        });
    }
    Ok(plan)
}

fn bar(what: &'static str, total: u64) -> ProgressBar {
    // Short runs show nothing; a bar that appears and vanishes only disturbs.
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(5));
    let style = ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len} steps, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_prefix(what);
    bar
}

fn on_oracle(
    program: &Program,
    bound: &Bound,
    inputs: &BTreeMap<String, Array>,
) -> Result<BTreeMap<String, Array>, Failure> {
    let sizes = program
        .params
        .iter()
        .filter_map(|(id, param)| Some((id, *bound.sizes.get(&param.name)?)))
        .collect();
    let scalars =
        bound.scalars.iter().map(|(name, value)| (name.clone(), Numeral::from(*value))).collect();
    let steps =
        u64::try_from(bound.steps).map_err(|_| Failure::user("the number of steps is negative"))?;
    let mut fields = inputs.clone();
    let bar = bar("reference", steps);
    let done = oracle::run(program, &sizes, &scalars, steps, &mut fields, &mut |done, _| {
        bar.set_position(done);
        if CANCEL.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    bar.finish_and_clear();
    done.map_err(Failure::user)?;
    fields.retain(|name, _| {
        program.fields.values().any(|field| field.name == *name && field.role == Role::State)
    });
    Ok(fields)
}

fn on_simulator(
    source: &Source,
    options: &Options,
    job: &Job,
    bound: &Bound,
    inputs: &BTreeMap<String, Array>,
) -> Result<(Outcome, stencil_simulator::Report), Failure> {
    let context =
        stencil_dialects::context().map_err(|error| Failure::in_source(&error, source))?;
    let mut compilation = Compilation::new(&context, source, options)?;
    stencil_simulator::mark_applies(&context, &compilation.module);
    compilation.to_gpu()?;
    let plan = compilation.plan()?;
    let bound = rebind(&plan, bound)?;
    let bar = bar("simulator", u64::try_from(bound.steps).unwrap_or(0));
    let simulator_options = stencil_simulator::Options {
        settings: stencil_simulator::Settings {
            seed: job.seed,
            ..stencil_simulator::Settings::default()
        },
        cancel: Some(Arc::clone(&CANCEL)),
        ..stencil_simulator::Options::default()
    };
    let mut simulator = stencil_simulator::Simulator::new(&compilation.module, simulator_options)
        .map_err(|error| Failure::in_source(&error, source))?;
    let mut progress =
        |progress: execute::Progress| bar.set_position(u64::try_from(progress.steps).unwrap_or(0));
    let mut control =
        Control { progress: Some(&mut progress), cancel: Some(&CANCEL), snapshot: None };
    let outcome = execute::run(&plan, &bound, inputs, &mut simulator, &mut control);
    bar.finish_and_clear();
    let outcome = outcome.map_err(|error| match stencil_simulator::simulation_error(&error) {
        Some(fault) => Failure {
            code: 2,
            text: format!("error: the simulator found a fault in compiled code\n{fault}\n"),
        },
        None => Failure::user(error),
    })?;
    Ok((outcome, simulator.report()))
}

fn on_cuda(
    source: &Source,
    options: &Options,
    bound: &Bound,
    inputs: &BTreeMap<String, Array>,
) -> Result<(Outcome, String), Failure> {
    let cuda = Cuda::open(0).map_err(Failure::user)?;
    let context =
        stencil_dialects::context().map_err(|error| Failure::in_source(&error, source))?;
    let mut compilation = Compilation::new(&context, source, options)?;
    compilation.to_gpu()?;
    let plan = compilation.plan()?;
    compilation.to_nvvm()?;
    let code = compilation.code()?;
    let bound = rebind(&plan, bound)?;
    let mut loaded = cuda.load(&plan, code.ptx.as_bytes()).map_err(Failure::user)?;
    loaded.use_graphs(GraphSettings::default()).map_err(Failure::user)?;
    let bar = bar("cuda", u64::try_from(bound.steps).unwrap_or(0));
    let mut progress =
        |progress: execute::Progress| bar.set_position(u64::try_from(progress.steps).unwrap_or(0));
    let mut control =
        Control { progress: Some(&mut progress), cancel: Some(&CANCEL), snapshot: None };
    let outcome = execute::run(&plan, &bound, inputs, &mut loaded, &mut control);
    bar.finish_and_clear();
    Ok((outcome.map_err(Failure::user)?, cuda.facts().name.clone()))
}

/// The same sizes for the compiled plan, whose buffers and checks are known.
fn rebind(plan: &Plan, bound: &Bound) -> Result<Bound, Failure> {
    let sizes = bound
        .sizes
        .iter()
        .filter(|(name, _)| plan.params.contains(name))
        .map(|(name, size)| (name.clone(), *size))
        .collect();
    let scalars =
        bound.scalars.iter().map(|(name, value)| (name.clone(), Numeral::from(*value))).collect();
    let request = Request { sizes, steps: Some(bound.steps), scalars, ..Request::default() };
    stencil_runtime::bind::bind(plan, &request).map_err(Failure::user)
}

/// Compares with the oracle's result: bit for bit, or within a tolerance.
fn compare(
    wanted: &BTreeMap<String, Array>,
    found: &BTreeMap<String, Array>,
    options: &Options,
    tolerance: Option<f64>,
) -> Result<String, Failure> {
    let mut report = String::new();
    let arithmetic = options.arithmetic;
    for (name, wanted) in wanted {
        let Some(found) = found.get(name) else {
            return Err(Failure::user(format!("there is no output `{name}`")));
        };
        let comparison = stencil_runtime::compare::compare(found, wanted).map_err(Failure::user)?;
        let default = match wanted.element() {
            Element::F16 => 1e-2,
            Element::F32 => 1e-4,
            Element::F64 => 1e-10,
            _ => 0.0,
        };
        let limit = tolerance.unwrap_or(if arithmetic.contract || arithmetic.fast_math {
            default
        } else {
            0.0
        });
        let largest = (0..wanted.len())
            .filter_map(|index| wanted.get(index))
            .map(f64::abs)
            .fold(0.0, f64::max);
        let error = if comparison.exact() {
            0.0
        } else {
            comparison.max_absolute / largest.max(f64::MIN_POSITIVE)
        };
        let line = format!("check {name}: {comparison}; error {error:.2e} of the largest value\n");
        // A NaN error must not pass.
        if error <= limit {
            report += &line;
        } else {
            return Err(Failure::user(format!(
                "{name} differs from the reference by more than {limit:e}: {comparison}"
            )));
        }
    }
    Ok(report)
}
