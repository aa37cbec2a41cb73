//! A program as Python has it: it compiles a version for each set of sizes, and runs.

use crate::call::{Arguments, Fields, Manner};
use crate::copies::Targets;
use crate::errors::{self, argument};
use crate::fields::{Declared, Names};
use crate::kinds::numpy_type;
use crate::memory;
use crate::values::reductions;
use crate::versions::{Origin, Sizes, Texts, Version};
use crate::watch::Watch;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use stencil_compiler::{Level, Options, Parts, Plan, Session, Source, Target};
use stencil_runtime::bind::{Request, bind};
use stencil_runtime::cell::Layout;
use stencil_runtime::cuda::Cuda;
use stencil_runtime::host::{Code, Done, Hooks, Program, Sending};
use stencil_runtime::number::Numeral;
use stencil_runtime::plan::{FieldDecl, Role};
use stencilc::cli::{Described, embedded};

/// Kinds of calls that are kept.
const MOST_CALLS: usize = 256;

/// Versions that are kept. Another one is compiled again, or comes from the cache.
const MOST_VERSIONS: usize = 64;

/// Versions that keep threads of the processor, or memory of a device, between calls.
const MOST_RECENT: usize = 8;

/// A program. Versions for other sizes are compiled when they are needed.
#[pyclass(frozen, module = "stencilc._stencilc")]
pub struct Native {
    /// None where a plan was loaded.
    origin: Option<Origin>,
    /// What the program declares.
    declared: Plan,
    names: Names,
    /// The values that a run hands from part to part, made when first needed.
    parts: OnceLock<Parts>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last used comes last.
    versions: VecDeque<Arc<Version>>,
    /// Calls that differ in no more than addresses, by their keys.
    calls: HashMap<Vec<u64>, Arc<Known>>,
    /// The sizes of the last call.
    last: Sizes,
    texts: Option<(Sizes, Texts)>,
}

/// What is known of a call before it is made again.
struct Known {
    version: Arc<Version>,
    request: Request,
    /// The place of each field of the version's plan in the declared one.
    order: Vec<usize>,
}

#[pymethods]
impl Native {
    /// Checks a program; `options` are those of the command line.
    #[new]
    fn new(
        py: Python<'_>,
        name: String,
        text: String,
        options: Vec<String>,
        cache: Option<PathBuf>,
    ) -> PyResult<Self> {
        let source = Source::new(&name, &text);
        // Whoever opens the device next finds it open.
        let may_use = |target: &str| options.iter().any(|option| option == target);
        if may_use("--target=auto") || may_use("--target=cuda") {
            py.detach(first_device);
        }
        let failed = |failure| errors::compile(py, &failure);
        let read = embedded(&name, &options).and_then(|read| read.session(&source));
        let Described { mut session, target, placement } = read.map_err(failed)?;
        if let Target::Cuda(device) = target {
            session = for_device(session, device);
        }
        let declared = session.declared(&source).map_err(failed)?;
        let states = declared.fields.iter().filter(|field| field.role == Role::State);
        let ranks = states.map(|field| field.extents.len());
        // Tiles of affine loops are not those of their arrays.
        let ranks: Vec<usize> = ranks.filter(|_| !name.ends_with(".mlir")).collect();
        session.check_options(target, &ranks).map_err(failed)?;
        let mut names = Names::of(&declared);
        names.store_in_blocks(session.options().config.layout.block());
        let conditions = session.conditions(&source);
        for field in names.fields.iter_mut().filter(|field| conditions.contains(&field.name)) {
            field.layout = Layout::Bool;
        }
        let origin = Some(Origin { source, session, target, placement, cache });
        let parts = OnceLock::new();
        Ok(Self { origin, declared, names, parts, state: Mutex::default() })
    }

    /// A program of a plan and its code.
    #[staticmethod]
    fn load(py: Python<'_>, plan: &str, code: Vec<u8>, name: &str) -> PyResult<Self> {
        let plan = Plan::from_json(plan, name).map_err(|e| argument(py, e.to_string()))?;
        py.detach(first_device);
        let (names, declared) = (Names::of(&plan), plan.clone());
        let program = Program::new(plan, Code::Cuda(code));
        let version = Arc::new(Version { sizes: Sizes::new(), program });
        let versions = VecDeque::from([version]);
        let state = Mutex::new(State { versions, ..State::default() });
        Ok(Self { origin: None, declared, names, parts: OnceLock::new(), state })
    }

    /// Runs the program; returns outputs by name, and (steps, launches, seconds, met, copies,
    /// copied bytes).
    #[allow(clippy::too_many_arguments, reason = "the arguments of a call in Python")]
    fn run<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyDict>,
        steps: Option<i64>,
        first_step: i64,
        in_place: bool,
        out: Option<Bound<'py, PyDict>>,
        stream: Option<Bound<'py, PyAny>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyTuple>)> {
        let manner = Manner { in_place, out: Targets::new(out.as_ref()) };
        let when = (steps, first_step);
        let arguments = Arguments::read(&self.names, &self.declared, values, when, &manner)?;
        let device = arguments.device(py)?;
        let mut queue = (device.unwrap_or(0), None);
        let mut sends = false;
        if let Some(device) = device {
            let (handle, ordered) = arguments.stream(py, device, stream.as_ref())?;
            queue.1 = Some(handle);
            sends = ordered && arguments.dense_on_device();
        }
        let place = device.map_or(0, |device| 1 + i64::from(device).cast_unsigned());
        let key = arguments.key((place, queue.1.unwrap_or(0) as u64));
        let known = self.known(py, &arguments, &key)?;
        let program = &known.version.program;
        let fields = Fields { plan: &program.plan, parts: &arguments.parts, order: &known.order };
        // A call that is sent has contiguous arrays, and only the first such call is bound.
        let bound = if sends { None } else { Some(fields.run(&known.request, queue)) };
        let mut bound = bound.transpose().map_err(|error| errors::run(py, error))?;
        arguments.prepare()?;
        let mut watch = Watch::new(progress);
        let done = py.detach(|| {
            let cancel = Arc::clone(&watch.cancel);
            let mut report = |done, of| watch.steps(done, of);
            if sends {
                let lent: Vec<_> = fields.cells().map(|(_, cells)| memory::lent(cells)).collect();
                let stream = memory::stream(queue.1.unwrap_or(0));
                let sending = Sending { device: queue.0, stream, key: &key, fields: &lent };
                let hooks = Hooks { cancel: Arc::clone(&cancel), progress: Some(&mut report) };
                let sent = program.send(&sending, || fields.run(&known.request, queue), hooks)?;
                if let Some(done) = sent {
                    return Ok(done);
                }
            }
            let mut run = match bound.take() {
                Some(run) => run,
                None => fields.run(&known.request, queue)?,
            };
            run.execute(program, Hooks { cancel, progress: Some(&mut report) })
        });
        self.used(py, &known.version);
        let done = watch.ended(py, done)?;
        let outputs = PyDict::new(py);
        for (name, array) in arguments.outputs {
            outputs.set_item(name, array)?;
        }
        reductions(&outputs, &self.names, &program.plan, &done.ran.outputs)?;
        let Done { ran, copies } = done;
        let told = (ran.steps, ran.launches, ran.seconds, ran.met, copies.count, copies.bytes);
        Ok((outputs, told.into_pyobject(py)?))
    }

    /// The text of a level, for these sizes or those of the last call.
    fn level(&self, py: Python<'_>, level: &str, sizes: Option<Sizes>) -> PyResult<String> {
        let level: Level = level.parse().map_err(|_| {
            let known = Level::ALL.map(|level| level.name()).join(", ");
            argument(py, format!("there is no level `{level}`; there are {known}"))
        })?;
        let sizes = self.sizes(sizes);
        if matches!(level, Level::Plan | Level::Ptx) {
            let texts = self.texts(py, &sizes)?;
            return Ok(if level == Level::Plan { texts.plan } else { texts.ptx });
        }
        let origin = self.origin(py)?;
        let mut session = origin.sized(&sizes);
        if matches!(origin.target, Target::Cpu { .. }) && level != Level::Nvvm {
            session = session.for_this_processor();
        }
        let compiled = origin.compile(py, &session, &[level]);
        let compiled = compiled.map_err(|failed| failed.raised(py))?;
        Ok(compiled.text(level).unwrap_or_default().to_owned())
    }

    /// The report, as text or as JSON, for these sizes or those of the last call.
    fn report(&self, py: Python<'_>, json: bool, sizes: Option<Sizes>) -> PyResult<String> {
        let origin = self.origin(py)?;
        let session = origin.sized(&self.sizes(sizes));
        let compiled = origin.compile(py, &session, &[Level::Gpu, Level::Plan, Level::Ptx]);
        let compiled = compiled.map_err(|failed| failed.raised(py))?;
        let report = py.detach(|| session.report(&origin.source, &compiled));
        let report = report.map_err(|failure| errors::compile(py, &failure))?;
        Ok(if json { report.to_json() } else { report.to_string() })
    }

    /// The program's name.
    #[getter]
    fn name(&self) -> &str {
        &self.declared.program
    }

    /// The program's text; none where a plan was loaded.
    #[getter]
    fn text(&self) -> Option<&str> {
        self.origin.as_ref().map(|origin| &*origin.source.text)
    }

    /// What the program runs on.
    #[getter]
    fn target(&self) -> &'static str {
        match self.origin.as_ref().map(|origin| origin.target) {
            Some(Target::Reference) => "reference",
            Some(Target::Simulator { .. }) => "sim",
            Some(Target::Cpu { .. }) => "cpu",
            Some(Target::Cuda(_)) | None => "cuda",
        }
    }

    /// Names of run-time sizes.
    #[getter]
    fn params(&self) -> Vec<String> {
        self.declared.params.clone()
    }

    /// Names of scalars, with their defaults as text.
    #[getter]
    fn scalars(&self) -> Vec<(String, Option<String>)> {
        let scalars = self.declared.scalars.iter();
        let default = |numeral: &Numeral| numeral.to_string();
        scalars.map(|one| (one.name.clone(), one.default.as_ref().map(default))).collect()
    }

    /// Declared fields: name, role, what `numpy.dtype` takes, dimensions.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let fields = self.names.fields.iter().map(|field| {
            let Declared { name, role, layout, rank, .. } = field;
            let role = match role {
                Role::State => "state",
                Role::Const => "const",
                Role::Temp => "temp",
                Role::Reduction => "reduction",
            };
            Ok((name.clone(), role, numpy_type(py, layout)?, *rank))
        });
        PyList::new(py, fields.collect::<PyResult<Vec<_>>>()?)
    }

    /// Checks that a run may begin after some steps, and be cut after each so many.
    fn check_parts(&self, py: Python<'_>, first_step: i64, every: Option<i64>) -> PyResult<()> {
        let parts = match (self.parts.get(), &self.origin) {
            (Some(parts), _) => parts,
            (None, None) => self.parts.get_or_init(|| Parts::of_plan(&self.declared)),
            (None, Some(Origin { source, session, .. })) => {
                let found = py.detach(|| session.parts(source, &self.declared));
                let found = found.map_err(|failure| errors::compile(py, &failure))?;
                self.parts.get_or_init(|| found)
            }
        };
        parts.check(first_step, every).map_err(|text| argument(py, text))
    }
}

impl Native {
    fn origin(&self, py: Python<'_>) -> PyResult<&Origin> {
        self.origin.as_ref().ok_or_else(|| {
            argument(py, "the program was loaded from a plan, and has no source to compile")
        })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the version that was used last. Versions that are not among the last few keep no
    /// threads and no memory of a device. The oldest one goes, if there are too many.
    fn used(&self, py: Python<'_>, version: &Arc<Version>) {
        let mut state = self.state();
        let State { versions, calls, .. } = &mut *state;
        if versions.back().is_some_and(|last| Arc::ptr_eq(last, version)) {
            return;
        }
        versions.retain(|one| !Arc::ptr_eq(one, version));
        versions.push_back(Arc::clone(version));
        let unused = versions.len().checked_sub(MOST_RECENT + 1);
        let unused = unused.and_then(|place| versions.get(place).cloned());
        let oldest = if versions.len() > MOST_VERSIONS { versions.pop_front() } else { None };
        if let Some(oldest) = &oldest {
            calls.retain(|_, known| !Arc::ptr_eq(&known.version, oldest));
        }
        drop(state);
        // Work of the device is waited for.
        py.detach(|| {
            if let Some(unused) = unused {
                unused.program.release();
            }
            drop(oldest);
        });
    }

    /// These sizes, or those of the last call.
    fn sizes(&self, sizes: Option<Sizes>) -> Sizes {
        sizes.unwrap_or_else(|| self.state().last.clone())
    }

    fn texts(&self, py: Python<'_>, sizes: &Sizes) -> PyResult<Texts> {
        if let Some((of, texts)) = &self.state().texts
            && of == sizes
        {
            return Ok(texts.clone());
        }
        let texts = self.origin(py)?.texts(py, sizes)?;
        self.state().texts = Some((sizes.clone(), texts.clone()));
        Ok(texts)
    }

    /// The version and the request of a call.
    fn known(
        &self,
        py: Python<'_>,
        arguments: &Arguments<'_>,
        key: &[u64],
    ) -> PyResult<Arc<Known>> {
        if let Some(known) = self.state().calls.get(key) {
            return Ok(Arc::clone(known));
        }
        let request = arguments.request(&self.declared);
        let bound = bind(&self.declared, &request);
        let bound = bound.map_err(|error| argument(py, errors::bind(&error)))?;
        let sizes = bound.sizes.into_iter().filter(|(name, _)| self.declared.params.contains(name));
        let sizes: Sizes = sizes.collect();
        let version = self.version(py, &sizes)?;
        let declared = &self.declared.fields;
        let place = |field: &FieldDecl| {
            declared.iter().position(|one| one.name == field.name).unwrap_or(usize::MAX)
        };
        let order = version.program.plan.fields.iter().map(place).collect();
        let mut request = request;
        request.sizes = sizes.clone();
        let known = Arc::new(Known { version, request, order });
        let mut state = self.state();
        if state.calls.len() >= MOST_CALLS {
            state.calls.clear();
        }
        state.last = sizes;
        state.calls.insert(key.to_vec(), Arc::clone(&known));
        Ok(known)
    }

    /// The version for some sizes; a reference has one for all.
    fn version(&self, py: Python<'_>, sizes: &Sizes) -> PyResult<Arc<Version>> {
        let of = match &self.origin {
            Some(origin) if origin.target != Target::Reference => sizes.clone(),
            _ => Sizes::new(),
        };
        if let Some(found) = self.state().versions.iter().find(|version| version.sizes == of) {
            return Ok(Arc::clone(found));
        }
        let version = Arc::new(self.origin(py)?.version(py, &of)?);
        self.used(py, &version);
        Ok(version)
    }
}

/// Checks options of the command line before there is a program.
#[pyfunction]
pub fn check_options(py: Python<'_>, options: Vec<String>) -> PyResult<()> {
    let checked = embedded("program.stencil", &options).and_then(|read| read.check());
    checked.map_err(|failure| errors::compile(py, &failure))
}

/// Whether the language itself uses a name.
#[pyfunction]
pub fn is_reserved(name: &str) -> bool {
    stencil_compiler::is_reserved(name)
}

/// The first device, which stays open: to open one takes a tenth of a second and more.
fn first_device() -> &'static Option<Cuda> {
    static FIRST: OnceLock<Option<Cuda>> = OnceLock::new();
    FIRST.get_or_init(|| Cuda::open(0).ok())
}

/// The session for the device at hand, where the options name none: as the device that is
/// described, or by its architecture.
fn for_device(session: Session, device: i32) -> Session {
    let options = session.options();
    if options.device.is_some() || options.arch.is_some() {
        return session;
    }
    let opened = if device == 0 { first_device().clone() } else { Cuda::open(device).ok() };
    let Some(cuda) = opened else { return session };
    let facts = cuda.facts();
    let named = Options { device: Some(facts.name.clone()), ..options.clone() };
    let like = Options { arch: Some(facts.architecture.clone()), ..options.clone() };
    let fits = [named, like].into_iter().find(|options| options.target().is_ok());
    fits.map_or(session, Session::new)
}
