//! Runs one plan on the device, measures it and checks its result.

use crate::options::Options;
use serde::Serialize;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use stencil_runtime::array::Array;
use stencil_runtime::bind::{Bound, Request, bind};
use stencil_runtime::compare::{Comparison, compare};
use stencil_runtime::cuda::{Cuda, GraphSettings, KernelFacts};
use stencil_runtime::device::device_named;
use stencil_runtime::execute::{Control, Target, check_inputs, download, launch_all, run, upload};
use stencil_runtime::input::{self, Source};
use stencil_runtime::npy;
use stencil_runtime::number::Numeral;
use stencil_runtime::plan::{FieldDecl, Plan, Role, Settings, ptx_beside};
use stencil_runtime::record::records;

/// What was measured of one plan.
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
    /// What a kernel could reach that reads and writes every state field and reads every const
    /// field once a step, at the measured copy bandwidth, in 10^9 points a second.
    pub copy_limit_gcells: f64,
    /// The median over that limit.
    pub of_copy_limit: f64,
    /// The median over the limit of fused multiply-adds, where their number a point is
    /// given and the device is described.
    pub of_fma_limit: Option<f64>,
    /// What the driver made of the kernels.
    pub kernels: Vec<KernelFacts>,
    /// The comparison with the reference, if there was one.
    pub check: Option<Check>,
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

/// A comparison with a reference.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What it was compared with.
    pub against: String,
    /// The largest error allowed, relative to the field's largest value.
    pub tolerance: f64,
    /// Whether the last measured run gave the bits of the checked one; none where it took other
    /// steps.
    pub repeats: Option<bool>,
    /// Whether every field is within the tolerance, and the last run gave the same.
    pub passed: bool,
    /// What was found in each field.
    pub fields: BTreeMap<String, Comparison>,
}

/// A plan with its code.
#[derive(Clone, Debug)]
pub struct Loaded {
    path: PathBuf,
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
        let code = std::fs::read(&ptx).map_err(|e| {
            let hint = if beside { "; name another file with --ptx" } else { "" };
            format!("can't read the PTX {}: {e}{hint}", ptx.display())
        })?;
        Ok(Loaded { path: path.to_path_buf(), plan, code })
    }
}

/// What several plans of one call share: data, and what is wanted of it.
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
            scalars: options.set.iter().cloned().collect(),
            shapes: BTreeMap::new(),
            ..Request::default()
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
    let Job { loaded: Loaded { path, plan, code }, request, bound } = job;
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
        download(plan, &checked, &inputs, &launched.current, &mut program)?
    } else {
        BTreeMap::new()
    };
    let mut repeats = None;
    let mut seconds = Vec::new();
    let mut launches = 0;
    for turn in 0..options.warmup + options.repeat {
        program.restore()?;
        std::thread::sleep(Duration::from_millis(options.pause));
        let launched = launch_all(plan, &bound, &inputs, &mut program, &mut Control::default())?;
        launches = launched.count;
        if turn >= options.warmup {
            seconds.extend(launched.elapsed.map(|time| time.as_secs_f64()));
        }
        let is_last = turn + 1 == options.warmup + options.repeat;
        if is_last && is_checked && checked.steps == bound.steps {
            let last = download(plan, &bound, &inputs, &launched.current, &mut program)?;
            repeats = Some(are_same(&last, &outputs));
        }
    }
    let (kernels, bands) = (program.kernels(), program.most_bands());
    drop(program);

    let mut check = match reference {
        Some(reference) => {
            let request = Request { steps: Some(checked.steps), ..request };
            let wanted = match shared.wanted.take() {
                Some((of, wanted)) if of == request => wanted,
                _ => run_reference(cuda, reference, request.clone(), &checked, &inputs)?,
            };
            let found =
                check(reference.path.display().to_string(), options.tolerance, &outputs, &wanted)?;
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
        check.repeats = repeats;
        check.passed &= repeats != Some(false);
    }
    shared.inputs = Some(inputs);

    let (points, bytes) = traffic(plan, &bound);
    let work = points as f64 * bound.steps as f64 * 1e-9;
    let rates: Vec<f64> =
        seconds.iter().map(|time| if *time > 0.0 { work / time } else { 0.0 }).collect();
    let gcells = spread(&rates);
    let copy_limit_gcells = points as f64 * bandwidth / bytes.max(1) as f64 * 1e-9;
    let (shape, element) = largest_state(plan, &bound);
    let of_fma_limit = options.fma_per_point.and_then(|fma| {
        let device = device_named(&cuda.facts().name)?;
        let bytes = if element == "f64" { 8 } else { 4 };
        Some(gcells.median * 1e9 * fma / device.fma(bytes))
    });
    Ok(Measurement {
        plan: path.clone(),
        program: plan.program.clone(),
        target: plan.target.arch.clone(),
        settings: plan.settings.clone(),
        sizes: bound.sizes,
        scalars: options.set.iter().cloned().collect(),
        shape,
        element,
        graph: options.graph,
        bands,
        pause: options.pause,
        launches,
        load_seconds,
        first_seconds,
        seconds,
        gcells,
        copy_limit_gcells,
        of_copy_limit: gcells.median / copy_limit_gcells,
        of_fma_limit,
        kernels,
        check,
    })
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
    let Loaded { path, plan, code } = reference;
    let shapes = shapes(inputs);
    // A size that only one of the two plans has at run time is told by the shapes.
    let sizes = request.sizes.into_iter().filter(|(name, _)| plan.params.contains(name)).collect();
    let request = Request { sizes, shapes, steps: Some(bound.steps), ..request };
    let bound = bind(plan, &request).map_err(|e| format!("reference {}: {e}", path.display()))?;
    let mut program = cuda.load(plan, code)?;
    let outcome = run(plan, &bound, inputs, &mut program, &mut Control::default())
        .map_err(|e| format!("reference {}: {e}", path.display()))?;
    Ok(outcome.outputs)
}

/// The arrays of the files that are wanted, one for each leaf of a struct or vec.
fn read_wanted(
    fields: &[FieldDecl],
    files: &[(String, PathBuf)],
) -> Result<BTreeMap<String, Array>, Box<dyn Error>> {
    let records = records(fields);
    let mut wanted = BTreeMap::new();
    for (field, path) in files {
        match records.iter().find(|record| record.name == field) {
            Some(record) => {
                let leaves = record.leaves.iter().map(|(_, leaf)| leaf.name.clone());
                wanted.extend(leaves.zip(record.read(path)?));
            }
            // `check` says which outputs there are.
            None => drop(wanted.insert(field.clone(), npy::read(path)?)),
        }
    }
    Ok(wanted)
}

fn check(
    against: String,
    tolerance: f64,
    outputs: &BTreeMap<String, Array>,
    wanted: &BTreeMap<String, Array>,
) -> Result<Check, Box<dyn Error>> {
    let mut fields = BTreeMap::new();
    for (name, wanted) in wanted {
        let Some(output) = outputs.get(name) else {
            let known: Vec<&str> = outputs.keys().map(String::as_str).collect();
            return Err(
                format!("the program has no output `{name}`; it has {}", known.join(", ")).into()
            );
        };
        fields.insert(
            name.clone(),
            compare(output, wanted).map_err(|e| format!("output `{name}`: {e}"))?,
        );
    }
    let within =
        |found: &Comparison| found.exact() || (tolerance > 0.0 && found.error() <= tolerance);
    Ok(Check { against, tolerance, repeats: None, passed: fields.values().all(within), fields })
}

/// Whether two results have the same bits.
fn are_same(one: &BTreeMap<String, Array>, other: &BTreeMap<String, Array>) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|((_, one), (_, other))| one.bytes() == other.bytes())
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
            Role::Temp => {}
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
    use stencil_runtime::array::{Data, Element};
    use stencil_runtime::plan::Member;

    #[test]
    fn spreads() {
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(spread(&[4.0, 1.0]), Spread { median: 2.5, min: 1.0, max: 4.0 });
        assert_eq!(spread(&[]), Spread { median: 0.0, min: 0.0, max: 0.0 });
    }

    #[test]
    fn wanted_vecs_come_as_their_leaves() {
        let leaf = |lane: usize| FieldDecl {
            name: format!("V.{lane}"),
            element: Element::F32,
            member: Some(Member { field: "V".to_owned(), offset: 4 * lane, size: 8 }),
            role: Role::State,
            extents: vec!["N".parse().unwrap()],
            value: Vec::new(),
        };
        let fields = [leaf(0), leaf(1)];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.npy");
        npy::write(&path, &Array::new(vec![2, 2], Data::F32(vec![1.0, 2.0, 3.0, 4.0])).unwrap())
            .unwrap();
        let wanted = read_wanted(&fields, &[("V".to_owned(), path.clone())]).unwrap();
        assert_eq!(wanted["V.0"], Array::new(vec![2], Data::F32(vec![1.0, 3.0])).unwrap());
        assert_eq!(wanted["V.1"], Array::new(vec![2], Data::F32(vec![2.0, 4.0])).unwrap());
        assert!(read_wanted(&fields, &[("W".to_owned(), path)]).unwrap().contains_key("W"));
    }

    #[test]
    fn checks_want_the_same_bits_unless_told_otherwise() {
        let array = |x| {
            BTreeMap::from([("A".to_string(), Array::new(vec![1], Data::F64(vec![x])).unwrap())])
        };
        let passed =
            |tolerance, x| check("r".into(), tolerance, &array(x), &array(1.0)).unwrap().passed;
        assert!(passed(0.0, 1.0));
        assert!(!passed(0.0, 1.0 + f64::EPSILON));
        assert!(passed(1e-12, 1.0 + f64::EPSILON));
        assert!(!passed(1e-12, 1.1));
        assert!(!passed(1e-12, f64::NAN));
        let error = check("r".into(), 0.0, &BTreeMap::new(), &array(1.0)).unwrap_err();
        assert_eq!(error.to_string(), "the program has no output `A`; it has ");
    }
}
