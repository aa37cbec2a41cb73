//! `stencilc run`: compiles a program, runs it on data, checks it and writes its result.

use crate::cli::{RunArgs, unique};
use crate::compile::{print_ir, print_timing};
use crate::files::{self, is_same, is_standard};
use crate::message::say;
use crate::target::TargetName;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use stencil_compiler::{
    Array, Class, Control, DeviceList, Devices, Ended, Failure, Link, Outcome, Pause, Pauses, Plan,
    Progress, Request, Results as TakeResults, Session, Source, Target, Timeline, compare,
};
use stencil_runtime::array::Backing;
use stencil_runtime::checkpoint;
use stencil_runtime::execute::Values;
use stencil_runtime::input::Source as Input;
use stencil_runtime::number::Numeral;
use stencil_runtime::plan::Role;
use stencil_runtime::record::records;
use stencil_runtime::windows::DeviceMemory;

mod devices;
mod finite;
mod results;
mod start;

use devices::{check_counts, shared};
use finite::Watched;
use results::{Results, at_step};
use start::{Saved, start};

/// A program that is to be run on arrays.
struct Job<'a> {
    /// It knows the sizes of the run.
    session: Session,
    /// The same with the sizes that are fixed anyway.
    open: Session,
    source: Source,
    inputs: BTreeMap<String, Array>,
    /// Where the other arrays of a run out of core lie on the host.
    backing: Backing,
    request: Request,
    cancel: &'a Arc<AtomicBool>,
    /// Whether the IR is printed after each pass.
    print_ir: bool,
    /// Whether it is printed how long each pass took.
    print_timing: bool,
}

/// Does what the command line asks for.
pub(crate) fn execute(
    args: &RunArgs,
    cancel: &Arc<AtomicBool>,
    process: Option<(Devices, &mut dyn Link)>,
) -> Result<(), Failure> {
    let of_simulator = args.report || args.report_json.is_some() || args.seed.is_some();
    if args.target != TargetName::Sim && of_simulator {
        return Err(Failure::user(
            "--report, --report-json and --seed are for the simulator; add --target sim or leave \
             them out",
        ));
    }
    let pauses = args.checkpoint_every.is_some() || args.snapshot_every.is_some();
    let beside = devices::Asked {
        devices: args.common.devices.as_ref(),
        counts: args.report || args.report_json.is_some(),
        timeline: args.timeline.is_some(),
        pauses,
        out_of_core: args.device_memory.is_some(),
    };
    let (devices, link) = shared(&beside, process)?;
    let follows = link.as_ref().is_some_and(|link| link.device() > 0);
    check_counts(&beside, devices.is_some())?;
    let (sources, results) = (unique("--in", &args.inputs)?, unique("--out", &args.outputs)?);
    let read = check_places(args, &sources, &results)?;
    args.checkpoint.as_deref().map_or(Ok(()), checkpoint::check_place).map_err(Failure::user)?;
    let source = files::read(&args.common.file)?;
    let grid = devices.as_ref().map(|list| list.devices);
    let session = args.common.unmeasured()?.shared_by(grid);
    let session = session.in_windows(args.device_memory.is_some());
    let declared = session.declared(&source)?;
    let temps = temps(&declared, &results);
    let session = session.keeping(temps.clone());
    let declared = if temps.is_empty() { declared } else { session.declared(&source)? };
    let states = check_names(&declared, &results)?;
    let pictures = results::Asked {
        snapshots: args.snapshot_every.is_some(),
        colors: args.colors,
        range: args.range,
    };
    let mut files = Results::new(pictures, &declared, &results, read)?;
    let start = start(asked(args)?, &source, &declared, sources, &temps)?;
    // Kernels for these sizes alone are faster than kernels for all.
    let open = args.common.measured(session.clone(), &source)?;
    let session = args.common.measured(session.with_sizes(&source, &start.sizes), &source)?;
    let request = Request { choices: unique("--choose", &args.choose)?, ..start.request };
    let (target, why) = target(args, &session, &source)?;
    let (print_ir, print_timing) = (args.common.print_ir_after_all, args.common.timing);
    let (inputs, backing) = (start.inputs, start.backing);
    let job =
        Job { session, open, source, inputs, backing, request, cancel, print_ir, print_timing };
    let mut saved = Saved { path: args.checkpoint.as_deref(), run: start.run, written: None };
    let begin = job.request.first_step;
    let outcome = job.run(target, args, (devices, link), &mut files, &mut saved)?;
    if follows {
        return Ok(());
    }
    let mut told = why.map_or_else(String::new, |why| why + "\n");
    told += &summary(&outcome);
    told += &values(&declared, &outcome, begin);
    if args.report {
        told += &outcome.counted().unwrap_or_default();
    }
    if args.check {
        told += &job.checked(&outcome, args.tolerance)?;
    }
    // A run on the simulator is for its findings.
    if results.is_empty() && !states.is_empty() && !args.check && args.target != TargetName::Sim {
        let names: Vec<_> = states.iter().map(|name| format!("--out {name}=FILE.npy")).collect();
        told += &format!("the result was not kept; keep it with {}\n", names.join(" "));
    }
    told += &outcome.timeline.as_ref().map(Timeline::summary).unwrap_or_default();
    let json = args.report_json.as_deref().zip(outcome.counted_json()?);
    let picture = outcome.timeline.as_ref().map(Timeline::picture);
    let texts = [json, args.timeline.as_deref().zip(picture)].into_iter().flatten();
    files.last(begin + outcome.steps, &outcome.outputs, texts)?;
    say(told);
    Ok(())
}

/// A file that can't be written is refused before a long run.
fn check_places(
    args: &RunArgs,
    sources: &BTreeMap<String, Input>,
    results: &BTreeMap<String, PathBuf>,
) -> Result<Vec<PathBuf>, Failure> {
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
    // A run may go on in the file from which it was resumed.
    let goes_on = |from: &PathBuf| args.checkpoint.as_ref().is_some_and(|to| is_same(from, to));
    read.extend(args.resume.clone().filter(|file| !goes_on(file)));
    let others = [
        ("--report-json", &args.report_json),
        ("--timeline", &args.timeline),
        ("--checkpoint", &args.checkpoint),
    ];
    let others = others.into_iter().filter_map(|(option, path)| Some((option, path.clone()?)));
    let others: Vec<_> = others.map(|(option, path)| (option.to_owned(), path)).collect();
    results::check_steps(results, &others, &read)?;
    let results = results.iter().map(|(field, path)| results::place(field, at_step(path, 0)));
    files::check_outputs(&results.chain(others).collect::<Vec<_>>(), &read)?;
    Ok(read)
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

/// What the command line asks of the begin of a run.
fn asked(args: &RunArgs) -> Result<start::Asked<'_>, Failure> {
    Ok(start::Asked {
        request: Request {
            sizes: unique("--size", &args.sizes)?,
            steps: args.steps,
            scalars: unique("--set", &args.scalars)?,
            ..Request::default()
        },
        first_step: args.first_step,
        resume: args.resume.as_deref(),
        saved: args.checkpoint.is_some(),
        host: args.device_memory.map(|_| start::host(&args.outputs, args.host_memory)),
    })
}

/// The temp fields among the results.
fn temps(declared: &Plan, results: &BTreeMap<String, PathBuf>) -> Vec<String> {
    let fields = records(&declared.fields);
    let temps = fields.iter().filter(|field| field.role() == Some(Role::Temp));
    let names = temps.map(|field| field.name.to_owned());
    names.filter(|name| results.contains_key(name)).collect()
}

/// The target, and why where none was named.
fn target(
    args: &RunArgs,
    session: &Session,
    source: &Source,
) -> Result<(Target, Option<String>), Failure> {
    let (target, why) = args.target.target(session, source, (args.seed, args.threads))?;
    if args.check && source.name.ends_with(".mlir") {
        // Not every module has a reference; that is told before a long run.
        session.executable(source, Target::Reference, Control::default())?;
    }
    if args.check && target == Target::Reference {
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        return Err(Failure::user(format!(
            "--check would compare the reference with itself{why}; add --target sim or leave \
             --check out"
        )));
    }
    Ok((target, why))
}

/// Called at each pause of a run.
type Call<'a> = &'a mut dyn FnMut(&Pause<'_>) -> Result<(), Failure>;

/// What is asked of a run besides its outcome.
#[derive(Default)]
struct Hooks<'a> {
    /// Whether the reference ends at the first NaN or infinity.
    finite: bool,
    /// Whether the simulator's loads and stores are predicted too.
    traffic: bool,
    /// Where it pauses, and what it does there.
    at: Option<(Vec<NonZeroU64>, Call<'a>)>,
    /// The devices that share the run.
    devices: Option<DeviceList>,
    /// The memory of the device for a run out of core.
    device_memory: Option<DeviceMemory>,
    /// Whether the times of devices are noted.
    timeline: bool,
    /// The connection to them, where each has a process of its own.
    link: Option<&'a mut dyn Link>,
    /// Takes the values. With it, the outcome has only the reductions.
    results: Option<TakeResults<'a>>,
}

impl Job<'_> {
    /// The run, with its snapshots and checkpoints.
    fn run(
        &self,
        target: Target,
        args: &RunArgs,
        (devices, link): (Option<DeviceList>, Option<&mut dyn Link>),
        files: &mut Results<'_>,
        saved: &mut Saved<'_>,
    ) -> Result<Outcome, Failure> {
        let follows = link.as_ref().is_some_and(|link| link.device() > 0);
        if args.snapshot_every.is_some() && args.resume.is_none() && !follows {
            files.snapshot(self.request.first_step, &self.inputs)?;
        }
        let every = [args.checkpoint_every, args.snapshot_every];
        let every: Vec<_> = every.into_iter().flatten().collect();
        let request = self.request.clone();
        let (timeline, device_memory) = (args.timeline.is_some(), args.device_memory);
        // Nobody but the files needs the values then.
        let only_files = every.is_empty() && !args.check && !args.check_finite;
        let on_device = matches!(target, Target::Cpu { .. } | Target::Cuda(_));
        if only_files && on_device && files.are_cells() {
            let begin = request.first_step;
            let mut write = |values: &mut Values<'_>| files.write_parts(begin, values);
            let results = Some(&mut write as TakeResults<'_>);
            let link = link.map(|link| link as &mut dyn Link);
            let hooks =
                Hooks { devices, device_memory, timeline, link, results, ..Hooks::default() };
            return self.run_on(target, &self.inputs, request, hooks);
        }
        start::check_whole(&self.backing)?;
        let finite = args.check_finite && target == Target::Reference;
        let mut watched = Watched::new(args.check_finite && !finite);
        let mut call = |pause: &Pause<'_>| {
            watched.look(self, pause.step, pause.values)?;
            let due = |every: Option<NonZeroU64>| {
                every.is_some_and(|every| pause.step.unsigned_abs() % every == 0)
            };
            if due(args.snapshot_every) && !pause.last {
                files.snapshot(pause.step, pause.values)?;
            }
            if due(args.checkpoint_every) { saved.save(pause) } else { Ok(()) }
        };
        let at = (!every.is_empty()).then_some((every, &mut call as Call<'_>));
        let traffic = args.report || args.report_json.is_some();
        let link = link.map(|link| link as &mut dyn Link);
        let hooks = Hooks {
            finite,
            traffic,
            at,
            devices,
            device_memory,
            timeline,
            link,
            ..Hooks::default()
        };
        let ran = self.run_on(target, &self.inputs, request, hooks);
        let outcome = ran.map_err(|failure| saved.note(failure))?;
        let last = self.request.first_step + outcome.steps;
        watched.look(self, last, &outcome.outputs)?;
        Ok(outcome)
    }

    /// How the result compares with the reference's.
    fn checked(&self, outcome: &Outcome, tolerance: Option<f64>) -> Result<String, Failure> {
        // The reference has no schedule.
        let request = Request { choices: BTreeMap::new(), ..self.request.clone() };
        let hooks = Hooks::default();
        let reference = self.run_on(Target::Reference, &self.inputs, request, hooks)?;
        let arithmetic = self.session.options().arithmetic;
        let fields = compare(&reference.outputs, &outcome.outputs, arithmetic, tolerance)?;
        Ok(fields.iter().map(|field| format!("{field}\n")).collect())
    }

    fn run_on(
        &self,
        target: Target,
        inputs: &BTreeMap<String, Array>,
        request: Request,
        mut hooks: Hooks<'_>,
    ) -> Result<Outcome, Failure> {
        let what = match target {
            Target::Reference => "reference",
            Target::Simulator { .. } => "simulator",
            Target::Cpu { .. } => "processor",
            Target::Cuda(_) => "cuda",
        };
        let mut bar: Option<ProgressBar> = None;
        let mut show = |progress: Progress<'_>| match progress {
            Progress::Pass { .. } if self.print_ir => print_ir(progress),
            Progress::Pass { .. } | Progress::Candidates { .. } => {}
            Progress::Steps { done, of } => {
                bar.get_or_insert_with(|| new_bar(what, "steps", of)).set_position(done);
            }
        };
        let mut control = Control {
            progress: Some(&mut show),
            cancel: Arc::clone(self.cancel),
            finite: hooks.finite,
            traffic: hooks.traffic,
            devices: hooks.devices,
            device_memory: hooks.device_memory,
            backing: self.backing.clone(),
            timeline: hooks.timeline,
            link: hooks.link.as_mut().map(|link| &mut **link as &mut dyn Link),
            results: hooks.results.as_mut().map(|hook| &mut **hook as TakeResults<'_>),
            pauses: hooks.at.map(|(every, call)| Pauses { every, call: &mut *call }),
            ..Control::default()
        };
        let compile = |session: &Session, control: &mut Control| {
            session.executable(&self.source, target, control.reborrow())
        };
        // What is left of the program for these sizes may not suit a schedule or a limit that the
        // whole program suits.
        let executable = match compile(&self.session, &mut control) {
            Err(failure) if failure.class == Class::Input => compile(&self.open, &mut control)?,
            compiled => compiled?,
        };
        if self.print_timing {
            print_timing(executable.timing());
        }
        let outcome = executable.run(inputs, request, control);
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        outcome
    }
}

pub(crate) fn new_bar(what: &'static str, of: &'static str, total: u64) -> ProgressBar {
    // Short runs show nothing; a bar that appears and vanishes only disturbs.
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(5));
    let style = ProgressStyle::with_template(&format!(
        "{{prefix}} {{wide_bar}} {{pos}}/{{len}} {of}, {{per_sec}}, {{eta}} left"
    ));
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_prefix(what);
    bar
}

/// A run in a line; nothing where nothing was measured.
fn summary(outcome: &Outcome) -> String {
    let Outcome { launches, steps, cells, .. } = outcome;
    let of_windows = outcome.windows.map(|shape| {
        format!("out of core: {} windows in {} passes\n", shape.windows, shape.passes)
    });
    let of_windows = of_windows.unwrap_or_default();
    if outcome.counters.is_some() {
        let told = format!("simulator: {launches} launches of {steps} steps, no fault found\n");
        return told + &of_windows;
    }
    let Some(elapsed) = outcome.elapsed else { return String::new() };
    let seconds = elapsed.as_secs_f64();
    let rate = *cells as f64 * *steps as f64 / seconds.max(1e-12) / 1e9;
    let what = match &outcome.device {
        Some(device) => format!("{device}: {launches} launches, "),
        None => "reference: ".to_owned(),
    };
    let told = format!("{what}{steps} steps in {:.3} ms, {rate:.3} GCells/s\n", seconds * 1e3);
    told + &of_windows
}

/// How the run ended, where it may end early, and the values of its reductions.
fn values(declared: &Plan, outcome: &Outcome, begin: i64) -> String {
    let mut told = String::new();
    if let Some(Ended { condition, met }) = &outcome.ended {
        let steps = begin + outcome.steps;
        told += &match met {
            true => format!("stopped after {steps} steps: {condition}\n"),
            false if begin == 0 => {
                format!("took all {steps} steps; this never held: {condition}\n")
            }
            false => format!(
                "took all {} steps, up to step {steps}; this never held: {condition}\n",
                outcome.steps
            ),
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
