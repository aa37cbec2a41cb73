//! What a run begins with: arrays from files, noise or zeros, or a checkpoint to go on from. And
//! the checkpoints that it writes.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use stencil_compiler::{Array, Class, Failure, Pause, Plan, Request, Source};
use stencil_runtime::array::Backing;
use stencil_runtime::bind::Bound;
use stencil_runtime::bounded_read::Awaited;
use stencil_runtime::checkpoint::{self, Checkpoint, Hash, Run};
use stencil_runtime::input::{self, InputError, Ready, Source as Input};
use stencil_runtime::memory::HostMemory;
use stencil_runtime::npy::NpyError;
use stencil_runtime::number::Numeral;
use stencil_runtime::plan::Role;
use stencil_runtime::record::records;
use stencil_runtime::windows::DeviceMemory;

/// What the command line asks for.
pub struct Asked<'a> {
    /// Sizes, scalars and steps.
    pub request: Request,
    /// The number of the first step.
    pub first_step: Option<i64>,
    /// The checkpoint to go on from.
    pub resume: Option<&'a Path>,
    /// Whether checkpoints are written.
    pub saved: bool,
    /// The host's memory of a run out of core.
    pub host: Option<HostMemory>,
}

/// What a run begins with.
pub struct Start {
    /// Sizes, scalars, and the steps that are left.
    pub request: Request,
    /// All run-time sizes.
    pub sizes: BTreeMap<String, i64>,
    /// The arrays.
    pub inputs: BTreeMap<String, Array>,
    /// Where other arrays of the run lie on the host.
    pub backing: Backing,
    /// What a checkpoint tells of the run; none where no checkpoint is written or read.
    pub run: Option<Run>,
}

/// Makes the inputs ready: `temps` are zeros. With --resume, state fields come from the checkpoint.
pub fn start(
    asked: Asked<'_>,
    source: &Source,
    declared: &Plan,
    mut sources: BTreeMap<String, Input>,
    temps: &[String],
) -> Result<Start, Failure> {
    let _awaited = Awaited::begin();
    let mut request = asked.request;
    request.first_step = asked.first_step.unwrap_or(0);
    let from = asked.resume.map(|path| Ok((path, checkpoint::read(path)?)));
    let from =
        from.transpose().map_err(|error: checkpoint::CheckpointError| Failure::user(error))?;
    if let Some((path, checkpoint)) = &from {
        begin_at(asked.first_step, path, checkpoint, declared, &mut request)?;
        let state = |name: &String| {
            let fields = records(&declared.fields);
            fields.iter().any(|field| field.name == *name && field.role() == Some(Role::State))
        };
        sources.retain(|name, _| !state(name));
    }
    let zeros = |place: usize| {
        let field = declared.fields.get(place)?;
        let is_temp = temps.iter().any(|temp| temp == field.declared_name());
        let stored = from.is_some() && field.role == Role::State;
        (stored || is_temp).then_some(Input::Zeros)
    };
    let host = asked.host.as_ref();
    let ready = input::prepare_on(declared, request.clone(), (&sources, zeros), host);
    let Ready { bound, arrays: mut inputs, backing } = ready.map_err(|error| unprepared(&error))?;
    let open = |name: &String| Some((name.clone(), *bound.sizes.get(name)?));
    let sizes = declared.params.iter().filter_map(open).collect();
    let wanted = asked.saved || from.is_some();
    let run = wanted.then(|| identity(source, declared, &bound, &inputs));
    if let (Some((path, checkpoint)), Some(run)) = (from, &run) {
        checkpoint.check(path, run).map_err(Failure::user)?;
        for (field, shape) in declared.fields.iter().zip(&bound.shapes) {
            if field.role.is_output() || checkpoint.values.contains_key(&field.name) {
                let checked = checkpoint.check_field(path, &field.name, field.element, shape);
                checked.map_err(Failure::user)?;
            }
        }
        let left = bound.first_step + bound.steps - checkpoint.step;
        if left < 0 {
            return Err(Failure::user(format!(
                "the checkpoint {} is of step {}, and the run ends after step {}; give more \
                 --steps",
                path.display(),
                checkpoint.step,
                bound.first_step + bound.steps
            )));
        }
        (request.first_step, request.steps) = (checkpoint.step, Some(left));
        inputs.extend(checkpoint.values);
    }
    Ok(Start { request, sizes, inputs, backing, run })
}

/// The host's memory of a run out of core. Larger arrays lie in the folder of an output.
pub fn host(outputs: &[(String, PathBuf)], memory: Option<DeviceMemory>) -> HostMemory {
    let folder = outputs.first().and_then(|(_, path)| path.parent());
    let here = |path: &Path| if path.as_os_str().is_empty() { ".".into() } else { path.to_owned() };
    let folder = folder.map_or_else(std::env::temp_dir, here);
    HostMemory { bytes: memory.map(|memory| memory.0), folder }
}

/// Refuses what needs whole values where memory is too small for them.
pub fn check_whole(backing: &Backing) -> Result<(), Failure> {
    match backing {
        Backing::Memory => Ok(()),
        Backing::Files(_) => Err(Failure::user(
            "the host's memory is too small for the values of the run, which --target sim, \
             --check, --check-finite, pictures, snapshots and checkpoints need whole; leave them \
             out, or raise --host-memory",
        )),
    }
}

/// Takes over from a checkpoint what the command line leaves open.
fn begin_at(
    first_step: Option<i64>,
    path: &Path,
    checkpoint: &Checkpoint,
    declared: &Plan,
    request: &mut Request,
) -> Result<(), Failure> {
    let run = &checkpoint.run;
    if run.program != declared.program {
        let own = Run { program: declared.program.clone(), ..run.clone() };
        checkpoint.check(path, &own).map_err(Failure::user)?;
    }
    if let Some(step) = first_step.filter(|step| *step != run.first_step) {
        return Err(Failure::user(format!(
            "the run of the checkpoint {} began at step {}, not at {step}; leave --first-step out",
            path.display(),
            run.first_step
        )));
    }
    request.first_step = run.first_step;
    for name in &declared.params {
        if let Some(size) = run.sizes.get(name) {
            request.sizes.entry(name.clone()).or_insert(*size);
        }
    }
    Ok(())
}

/// What must be the same for a run to go on.
fn identity(
    source: &Source,
    declared: &Plan,
    bound: &Bound,
    inputs: &BTreeMap<String, Array>,
) -> Run {
    let sizes = bound.sizes.iter().filter(|(name, _)| *name != "steps");
    let text = |(name, value): (&String, &_)| (name.clone(), Numeral::from(*value).to_string());
    let constants = declared.fields.iter().filter(|field| field.role == Role::Const);
    let constants = constants.filter_map(|field| {
        let array = inputs.get(&field.name)?;
        Some((field.name.clone(), (array.kind(), Hash::of(array.bytes()))))
    });
    Run {
        program: declared.program.clone(),
        text: Hash::of(source.text.as_bytes()),
        sizes: sizes.map(|(name, size)| (name.clone(), *size)).collect(),
        scalars: bound.scalars.iter().map(text).collect(),
        constants: constants.collect(),
        first_step: bound.first_step,
    }
}

/// The checkpoint that a run writes.
pub struct Saved<'a> {
    /// Its file.
    pub path: Option<&'a Path>,
    /// What the run is.
    pub run: Option<Run>,
    /// The step of the last one.
    pub written: Option<i64>,
}

impl Saved<'_> {
    /// Writes a checkpoint at a pause. After the last step there is nothing to go on with.
    pub fn save(&mut self, pause: &Pause<'_>) -> Result<(), Failure> {
        if let (Some(path), Some(run), false) = (self.path, &self.run, pause.last) {
            checkpoint::write(path, run, pause.step, pause.values).map_err(Failure::user)?;
            self.written = Some(pause.step);
        }
        Ok(())
    }

    /// A failure with a word on how the run can go on.
    pub fn note(&self, failure: Failure) -> Failure {
        match (self.path, self.written, failure.class) {
            (
                Some(path),
                Some(step),
                Class::Cancelled | Class::Input | Class::Device | Class::Memory,
            ) => failure
                .note(format!("the run goes on from step {step} with --resume {}", path.display())),
            _ => failure,
        }
    }
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
