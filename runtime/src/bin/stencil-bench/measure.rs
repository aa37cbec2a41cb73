//! Runs one plan on the device, measures it and checks its result.

use crate::check::{Check, are_same, check, read_wanted};
use crate::heights::{self, HeightTime};
use crate::options::Options;
use serde::Serialize;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use stencil_runtime::array::Array;
use stencil_runtime::bind::{Bound, Request, bind};
use stencil_runtime::bounded_read::{self, MOST_CODE};
use stencil_runtime::cuda::{Cuda, GraphSettings, KernelFacts, Program};
use stencil_runtime::device::device_named;
use stencil_runtime::execute::heights::Chosen;
use stencil_runtime::execute::{Control, Target, check_inputs, download, launch_all, run, upload};
use stencil_runtime::input::{self, Source};
use stencil_runtime::number::Numeral;
use stencil_runtime::plan::{Plan, Role, Settings, ptx_beside};

/// The measurements of one plan.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// The plan's file.
    pub plan: PathBuf,
    /// The program's name.
    pub program: String,
    /// The architecture of the PTX.
    pub target: String,
    /// How the kernels were made.
    pub settings: Settings,
    /// All sizes, with the number of steps.
    pub sizes: BTreeMap<String, i64>,
    /// Scalars that were set.
    pub scalars: BTreeMap<String, Numeral>,
    /// Shape of the largest state field.
    pub shape: Vec<usize>,
    /// Type of its cells.
    pub element: &'static str,
    /// Whether the launches were sent as graphs.
    pub graph: bool,
    /// The most bands of a launch: 1 where all were whole.
    pub bands: usize,
    /// Milliseconds between runs.
    pub pause: u64,
    /// Launches of a run.
    pub launches: u64,
    /// Wall time until the code was loaded: what the driver makes of PTX, in seconds.
    pub load_seconds: f64,
    /// Wall time of the load and the first run together, in seconds, transfers excluded.
    pub first_seconds: f64,
    /// Device time of each measured run in seconds, transfers excluded.
    pub seconds: Vec<f64>,
    /// Grid points times steps over device time, in 10^9 a second.
    pub gcells: Spread,
    /// The limit of a kernel that reads and writes every state field and reads every const field
    /// once per step, at the measured copy bandwidth, in 10^9 points a second.
    pub copy_limit_gcells: f64,
    /// The median over that limit.
    pub of_copy_limit: f64,
    /// The median over the limit of fused multiply-adds, where their number per point is given and
    /// the device is described.
    pub of_fma_limit: Option<f64>,
    /// Facts of the kernels, as the driver reports them.
    pub kernels: Vec<KernelFacts>,
    /// The comparison with the reference, if there was one.
    pub check: Option<Check>,
    /// What the last run found out about its pyramid heights, if it chose one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Chosen>,
    /// The time of each pyramid height, where that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub heights: Vec<HeightTime>,
}

/// Median, lowest and highest of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Lowest.
    pub min: f64,
    /// Highest.
    pub max: f64,
}

/// A plan with its code.
#[derive(Clone, Debug)]
pub struct Loaded {
    path: PathBuf,
    ptx: PathBuf,
    plan: Plan,
    code: Vec<u8>,
}

impl Loaded {
    /// Reads a plan and its code: `ptx`, or the file beside the plan.
    ///
    /// # Errors
    /// When either can't be read or the plan is not valid.
    pub fn read(path: &Path, ptx: Option<&Path>) -> Result<Loaded, Box<dyn Error>> {
        let plan = Plan::load(path)?;
        let beside = ptx.is_none();
        let ptx = ptx.map_or_else(|| ptx_beside(path), Path::to_path_buf);
        let code = bounded_read::read(&ptx, MOST_CODE).map_err(|e| {
            let hint = if beside { "; name another file with --ptx" } else { "" };
            format!("can't read the PTX {}: {e}{hint}", ptx.display())
        })?;
        Ok(Loaded { path: path.to_path_buf(), ptx, plan, code })
    }

    /// The files that were read.
    pub fn files(&self) -> [&Path; 2] {
        [&self.path, &self.ptx]
    }
}

/// Inputs that several plans of one call share, and the reference's results on them.
#[derive(Debug, Default)]
pub struct Shared {
    inputs: Option<BTreeMap<String, Array>>,
    wanted: Option<(Request, BTreeMap<String, Array>)>,
}

/// A plan with all that a run needs but the device and the data.
#[derive(Clone, Debug)]
pub struct Job<'l> {
    loaded: &'l Loaded,
    request: Request,
    bound: Bound,
}

impl<'l> Job<'l> {
    /// Binds the sizes and makes the data ready, unless the plan before had the same.
    ///
    /// # Errors
    /// When sizes, scalars or inputs are missing or wrong.
    pub fn prepare(
        loaded: &'l Loaded,
        options: &Options,
        shared: &mut Shared,
    ) -> Result<Job<'l>, Box<dyn Error>> {
        let request = Request {
            sizes: options.define.iter().cloned().collect(),
            steps: options.steps,
            first_step: 0,
            scalars: options.set.iter().cloned().collect(),
            shapes: BTreeMap::new(),
            choices: options.choose.iter().cloned().collect(),
        };
        if let Some(inputs) = &shared.inputs
            && let Ok(bound) =
                bind(&loaded.plan, &Request { shapes: shapes(inputs), ..request.clone() })
            && check_inputs(&loaded.plan, &bound, inputs).is_ok()
        {
            return Ok(Job { loaded, request, bound });
        }
        let sources: BTreeMap<String, Source> = options.inputs.iter().cloned().collect();
        let noise = |place| Some(Source::Random(place as u64 + 1));
        let (bound, inputs) = input::prepare(&loaded.plan, request.clone(), &sources, noise)?;
        check_inputs(&loaded.plan, &bound, &inputs)?;
        *shared = Shared { inputs: Some(inputs), wanted: None };
        Ok(Job { loaded, request, bound })
    }
}

/// Runs, measures and checks a plan. `bandwidth` is the device's measured copy bandwidth in bytes
/// per second, reads and writes counted together.
///
/// # Errors
/// Whatever keeps the plan from running.
pub fn measure(
    cuda: &Cuda,
    bandwidth: f64,
    job: Job<'_>,
    shared: &mut Shared,
    reference: Option<&Loaded>,
    options: &Options,
) -> Result<Measurement, Box<dyn Error>> {
    let Job { loaded: Loaded { path, plan, code, .. }, request, bound } = job;
    let inputs = shared.inputs.take().unwrap_or_default();
    let start = Instant::now();
    let mut program = cuda.load(plan, code)?;
    let load_seconds = start.elapsed().as_secs_f64();
    if options.graph {
        program.use_graphs(GraphSettings { chunk: options.chunk, cut_all: options.cut_all })?;
    }
    program.allocate(&bound).map_err(|e| e as Box<dyn Error>)?;
    upload(plan, &bound, &inputs, &mut program)?;
    program.save()?;
    let checked = match options.check_steps {
        Some(steps) => {
            bind(plan, &Request { steps: Some(steps), shapes: shapes(&inputs), ..request.clone() })?
        }
        None => bound.clone(),
    };
    let start = Instant::now();
    let launched = launch_all(plan, &checked, &inputs, &mut program, &mut Control::default())?;
    let first_seconds = load_seconds + start.elapsed().as_secs_f64();
    let is_checked = reference.is_some() || !options.expect.is_empty();
    let outputs = if is_checked {
        download(plan, &checked, &inputs, &launched.current, false, &mut program)?
    } else {
        BTreeMap::new()
    };
    let compared = (is_checked && checked.steps == bound.steps).then_some(&outputs);
    let timed = time(plan, &bound, &inputs, &mut program, compared, options)?;
    let heights = if options.every_height {
        heights::every(plan, &bound, |bound| {
            let timed = time(plan, bound, &inputs, &mut program, None, options)?;
            Ok(timed.seconds)
        })?
    } else {
        Vec::new()
    };
    let (kernels, bands) = (program.kernels(), program.most_bands());
    drop(program);

    let mut check = match reference {
        Some(reference) => {
            let request = Request { steps: Some(checked.steps), ..request };
            let wanted = match shared.wanted.take() {
                Some((of, wanted)) if of == request => wanted,
                _ => run_reference(cuda, reference, request.clone(), &checked, &inputs)?,
            };
            let against = reference.path.display().to_string();
            let found = check(against, options.tolerance, &outputs, &wanted)?;
            shared.wanted = Some((request, wanted));
            Some(found)
        }
        None if options.expect.is_empty() => None,
        None => {
            let wanted = read_wanted(&plan.fields, &options.expect)?;
            Some(check("files".to_string(), options.tolerance, &outputs, &wanted)?)
        }
    };
    if let Some(check) = &mut check {
        check.repeats = timed.repeats;
        check.passed &= timed.repeats != Some(false);
    }
    shared.inputs = Some(inputs);
    let facts = Facts { load_seconds, first_seconds, kernels, bands, check, heights };
    Ok(measurement(path, plan, bound, timed, facts, cuda, bandwidth, options))
}

/// The results of the measured runs.
struct Timed {
    /// Device time of each in seconds.
    seconds: Vec<f64>,
    /// Launches of one.
    launches: u64,
    /// Whether the last one gave the expected outputs, where there are some.
    repeats: Option<bool>,
    /// What the last one found out about its pyramid heights.
    chosen: Option<Chosen>,
}

/// Runs from the saved buffers, first those that warm up.
fn time(
    plan: &Plan,
    bound: &Bound,
    inputs: &BTreeMap<String, Array>,
    program: &mut Program,
    wanted: Option<&BTreeMap<String, Array>>,
    options: &Options,
) -> Result<Timed, Box<dyn Error>> {
    let mut timed = Timed { seconds: Vec::new(), launches: 0, repeats: None, chosen: None };
    for turn in 0..options.warmup + options.repeat {
        program.restore()?;
        std::thread::sleep(Duration::from_millis(options.pause));
        let launched = launch_all(plan, bound, inputs, program, &mut Control::default())?;
        timed.launches = launched.count;
        timed.chosen.clone_from(&launched.height);
        if turn >= options.warmup {
            timed.seconds.extend(launched.elapsed.map(|time| time.as_secs_f64()));
        }
        if turn + 1 == options.warmup + options.repeat
            && let Some(wanted) = wanted
        {
            let last = download(plan, bound, inputs, &launched.current, false, program)?;
            timed.repeats = Some(are_same(&last, wanted));
        }
    }
    Ok(timed)
}

/// Other facts that are known after the runs.
struct Facts {
    load_seconds: f64,
    first_seconds: f64,
    kernels: Vec<KernelFacts>,
    bands: usize,
    check: Option<Check>,
    heights: Vec<HeightTime>,
}

#[allow(clippy::too_many_arguments)] // It puts together what all of them tell.
fn measurement(
    path: &Path,
    plan: &Plan,
    bound: Bound,
    timed: Timed,
    facts: Facts,
    cuda: &Cuda,
    bandwidth: f64,
    options: &Options,
) -> Measurement {
    let (points, bytes) = traffic(plan, &bound);
    let work = points as f64 * bound.steps as f64 * 1e-9;
    let rates: Vec<f64> =
        timed.seconds.iter().map(|time| if *time > 0.0 { work / time } else { 0.0 }).collect();
    let gcells = spread(&rates);
    let copy_limit_gcells = points as f64 * bandwidth / bytes.max(1) as f64 * 1e-9;
    let (shape, element) = largest_state(plan, &bound);
    let of_fma_limit = options.fma_per_point.and_then(|fma| {
        let device = device_named(&cuda.facts().name)?;
        let bytes = if element == "f64" { 8 } else { 4 };
        Some(gcells.median * 1e9 * fma / device.fma(bytes))
    });
    Measurement {
        plan: path.to_path_buf(),
        program: plan.program.clone(),
        target: plan.target.arch.clone(),
        settings: plan.settings.clone(),
        sizes: bound.sizes,
        scalars: options.set.iter().cloned().collect(),
        shape,
        element,
        graph: options.graph,
        bands: facts.bands,
        pause: options.pause,
        launches: timed.launches,
        load_seconds: facts.load_seconds,
        first_seconds: facts.first_seconds,
        seconds: timed.seconds,
        gcells,
        copy_limit_gcells,
        of_copy_limit: gcells.median / copy_limit_gcells,
        of_fma_limit,
        kernels: facts.kernels,
        check: facts.check,
        chosen: timed.chosen,
        heights: facts.heights,
    }
}

fn shapes(inputs: &BTreeMap<String, Array>) -> BTreeMap<String, Vec<usize>> {
    inputs.iter().map(|(name, array)| (name.clone(), array.shape().to_vec())).collect()
}

/// Runs the reference plan once on the same data; its sizes come from the shapes of the data.
fn run_reference(
    cuda: &Cuda,
    reference: &Loaded,
    request: Request,
    bound: &Bound,
    inputs: &BTreeMap<String, Array>,
) -> Result<BTreeMap<String, Array>, Box<dyn Error>> {
    let Loaded { path, plan, code, .. } = reference;
    let shapes = shapes(inputs);
    // A size that only one of the two plans has at run time is told by the shapes.
    let sizes = request.sizes.into_iter().filter(|(name, _)| plan.params.contains(name)).collect();
    // The reference may have other choices, or none.
    let choices = BTreeMap::new();
    let request = Request { sizes, shapes, steps: Some(bound.steps), choices, ..request };
    let bound = bind(plan, &request).map_err(|e| format!("reference {}: {e}", path.display()))?;
    let mut program = cuda.load(plan, code)?;
    let outcome = run(plan, &bound, inputs, &mut program, &mut Control::default())
        .map_err(|e| format!("reference {}: {e}", path.display()))?;
    Ok(outcome.outputs)
}

/// The grid's points, and the bytes that one pass over all fields moves: state fields are read and
/// written, const fields read.
fn traffic(plan: &Plan, bound: &Bound) -> (u64, u64) {
    let mut points = 0;
    let mut bytes = 0;
    for (field, shape) in plan.fields.iter().zip(&bound.shapes) {
        let cells = shape.iter().product::<usize>() as u64;
        let size = field.element.size() as u64;
        match field.role {
            Role::State => {
                points = points.max(cells);
                bytes += 2 * cells * size;
            }
            Role::Const => bytes += cells * size,
            Role::Temp | Role::Reduction => {}
        }
    }
    (points, bytes)
}

fn largest_state(plan: &Plan, bound: &Bound) -> (Vec<usize>, &'static str) {
    let fields =
        plan.fields.iter().zip(&bound.shapes).filter(|(field, _)| field.role == Role::State);
    let largest = fields.max_by_key(|(_, shape)| shape.iter().product::<usize>());
    largest.map_or((Vec::new(), ""), |(field, shape)| (shape.clone(), field.element.name()))
}

/// Median (of an even number the mean of the middle two), lowest and highest.
fn spread(values: &[f64]) -> Spread {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle).copied().unwrap_or(0.0);
    let lower = if sorted.len().is_multiple_of(2) {
        sorted.get(middle.wrapping_sub(1)).copied().unwrap_or(upper)
    } else {
        upper
    };
    Spread {
        median: (lower + upper) / 2.0,
        min: sorted.first().copied().unwrap_or(0.0),
        max: sorted.last().copied().unwrap_or(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads() {
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(spread(&[4.0, 1.0]), Spread { median: 2.5, min: 1.0, max: 4.0 });
        assert_eq!(spread(&[]), Spread { median: 0.0, min: 0.0, max: 0.0 });
    }
}
