//! Executes a bound plan on any target: the order of launches, which memory a buffer stands for,
//! upload and download. A target ([`Target`]) only allocates, copies and launches.

pub mod heights;
mod lent;
mod segment;
mod slots;
mod target;
#[cfg(test)]
mod tests;
mod transfer;

use crate::array::{Array, ArrayError, Backing, Element, shape_text};
use crate::bind::{Bound, BufferId};
use crate::launch::{Iterations, LaunchError};
use crate::plan::{Plan, Role};
use crate::watch::Stuck;
use heights::Chosen;
pub use lent::{homeward, lendable};
pub use segment::{Segment, launch_segment};
pub use slots::{Layout, Slots, Strips, Times};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
pub use target::{Joined, Shown, Target};
use thiserror::Error;
pub use transfer::{Values, download, read_value, upload};

/// The error of a target; its text names the call and the device.
pub type TargetError = Box<dyn std::error::Error + Send + Sync>;

/// Why a run failed.
#[derive(Debug, Error)]
pub enum ExecuteError {
    /// An input has no data.
    #[error("field `{0}` has no data; give it with --in {0}=FILE.npy, random:SEED or zeros")]
    MissingInput(String),
    /// Data for what is no input.
    #[error("{program} has no input `{name}`; it has {known}")]
    UnknownInput {
        /// The program.
        program: String,
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Data of another type or shape than the field's.
    #[error("the data of field `{field}` is {found} where {wanted} is wanted")]
    Input {
        /// The field.
        field: String,
        /// Type and shape found.
        found: String,
        /// Type and shape of the field.
        wanted: String,
    },
    /// A launch is impossible.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// An array can't be made.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The plan is for more devices than the target has.
    #[error(
        "{program} runs on {wanted} devices, the target has {found}; compile it for fewer devices, \
         or run it on another target"
    )]
    Devices {
        /// The program.
        program: String,
        /// Devices of the plan.
        wanted: u64,
        /// Devices of the target.
        found: u32,
    },
    /// A wait of a block did not end.
    #[error("{0}")]
    Stuck(Stuck),
    /// The target failed.
    #[error(transparent)]
    Target(TargetError),
    /// The values could not be taken.
    #[error(transparent)]
    Results(TargetError),
    /// The run was cancelled.
    #[error("cancelled before step {0}")]
    Cancelled(i64),
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunProgress {
    /// Launches handed to the target.
    pub launches: u64,
    /// Steps that they take together.
    pub steps: i64,
    /// Steps of the run.
    pub of: i64,
}

/// Takes the values of a run.
pub type Results<'a> = &'a mut dyn FnMut(&mut Values<'_>) -> Result<(), TargetError>;

/// Hooks into a run.
#[derive(Default)]
pub struct Control<'a> {
    /// Called after each launch.
    pub progress: Option<&'a mut dyn FnMut(RunProgress)>,
    /// When set to true, the run ends before the next launch.
    pub cancel: Option<&'a AtomicBool>,
    /// Called with each snapshot; without it there are none.
    pub snapshot: Option<&'a mut dyn FnMut(Taken)>,
    /// Called after the last step with what reads the values; the outcome then has only the
    /// reductions.
    pub results: Option<Results<'a>>,
    /// Whether the outcome has the temp fields too, so that another run can go on from it.
    pub temps: bool,
    /// Where the arrays of a run out of core lie on the host.
    pub backing: Backing,
}

/// A field's value at a `snapshot` of the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// The field's place in [`Plan::fields`].
    pub field: usize,
    /// Steps taken before.
    pub step: i64,
    /// The value.
    pub value: Array,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The state fields and reductions after the last step, and temp fields where they are asked
    /// for; the reductions alone where [`Control::results`] took the values. A temp field that no
    /// kernel keeps from step to step may be missing.
    pub outputs: BTreeMap<String, Array>,
    /// Launches, steps and time.
    pub launched: Launched,
}

/// The result of [`launch_all`].
#[derive(Clone, Debug, PartialEq)]
pub struct Launched {
    /// The number of launches.
    pub count: u64,
    /// How long they took on the device, if the target measures time.
    pub elapsed: Option<Duration>,
    /// Steps that were taken; fewer than asked for where an `until` of the plan ended early.
    pub steps: i64,
    /// The turns of each `until` of the plan, in the order of the file.
    pub iterations: Vec<Iterations>,
    /// The memory of each buffer after the last launch, in the plan's order.
    pub current: Vec<BufferId>,
    /// The pyramid height, where the run chose it.
    pub height: Option<Chosen>,
}

/// The data of the inputs, by field.
pub type Inputs = BTreeMap<String, Array>;

/// The data of an input, in an array or in memory of the caller.
pub trait Input {
    /// Type of a cell.
    fn element(&self) -> Element;

    /// Cells per dimension, slowest first.
    fn shape(&self) -> &[usize];

    /// The cells, row-major without padding. None where they are in the buffer that [`lendable`]
    /// tells.
    fn bytes(&self) -> Option<&[u8]>;
}

impl Input for Array {
    fn element(&self) -> Element {
        self.element()
    }

    fn shape(&self) -> &[usize] {
        self.shape()
    }

    fn bytes(&self) -> Option<&[u8]> {
        Some(self.bytes())
    }
}

/// Runs a plan once: allocate, upload, launch, download.
///
/// # Errors
/// When inputs are missing or wrong, when the target fails, when the run is cancelled.
pub fn run(
    plan: &Plan,
    bound: &Bound,
    inputs: &Inputs,
    target: &mut dyn Target,
    control: &mut Control<'_>,
) -> Result<Outcome, ExecuteError> {
    check_inputs(plan, bound, inputs)?;
    check_devices(plan, bound, target)?;
    target.allocate(bound).map_err(ExecuteError::Target)?;
    upload(plan, bound, inputs, target)?;
    let launched = launch_all(plan, bound, inputs, target, control)?;
    let Some(results) = &mut control.results else {
        let outputs = download(plan, bound, inputs, &launched.current, control.temps, target)?;
        return Ok(Outcome { outputs, launched });
    };
    // Nothing must fail once the values are taken.
    let mut outputs = BTreeMap::new();
    for (place, field) in plan.fields.iter().enumerate() {
        if field.role == Role::Reduction {
            let value = transfer::value(plan, bound, inputs, &launched.current, place, target)?;
            outputs.insert(field.name.clone(), value);
        }
    }
    let mut values = Values::new((plan, bound, inputs), &launched, target, control.cancel);
    match (results(&mut values), values.failure()) {
        (Ok(()), _) => Ok(Outcome { outputs, launched }),
        (Err(_), Some(reason)) => Err(reason),
        (Err(error), None) => Err(ExecuteError::Results(error)),
    }
}

/// Checks that every state and const field has data of its type and shape. Temp fields and
/// reductions may have data, with which a run goes on where another one ended.
///
/// # Errors
/// The first input that is missing, unknown or wrong.
pub fn check_inputs<I: Input>(
    plan: &Plan,
    bound: &Bound,
    inputs: &BTreeMap<String, I>,
) -> Result<(), ExecuteError> {
    if let Some(name) = inputs.keys().find(|name| plan.field(name).is_none()) {
        let fields = plan.fields.iter().filter(|field| field.role.is_input());
        let known: Vec<_> = fields.map(|field| field.name.as_str()).collect();
        return Err(ExecuteError::UnknownInput {
            program: plan.program.clone(),
            name: name.clone(),
            known: known.join(", "),
        });
    }
    for (field, shape) in plan.fields.iter().zip(&bound.shapes) {
        let Some(array) = inputs.get(&field.name) else {
            if field.role.is_input() {
                return Err(ExecuteError::MissingInput(field.name.clone()));
            }
            continue;
        };
        if array.element() != field.element || array.shape() != shape {
            return Err(ExecuteError::Input {
                field: field.name.clone(),
                found: kind(array.element(), array.shape()),
                wanted: kind(field.element, shape),
            });
        }
    }
    Ok(())
}

/// Refuses a plan for more devices than the target has.
///
/// # Errors
/// Says how many there are.
pub fn check_devices(plan: &Plan, bound: &Bound, target: &dyn Target) -> Result<(), ExecuteError> {
    let buffers = bound.buffers.iter().map(|buffer| buffer.device);
    let most = buffers.chain(plan.launches().map(|launch| launch.device)).max().unwrap_or(0);
    let (wanted, found) = (u64::from(most) + 1, target.devices());
    if wanted > found.into() {
        return Err(ExecuteError::Devices { program: plan.program.clone(), wanted, found });
    }
    Ok(())
}

/// Does the whole schedule and waits for it.
///
/// # Errors
/// When a launch is impossible or fails, when the run is cancelled.
pub fn launch_all(
    plan: &Plan,
    bound: &Bound,
    inputs: &Inputs,
    target: &mut dyn Target,
    control: &mut Control<'_>,
) -> Result<Launched, ExecuteError> {
    check_devices(plan, bound, target)?;
    match heights::open(plan, bound) {
        Some(choose) => heights::launch_all(plan, bound, choose, inputs, target, control),
        None => {
            let whole = Segment { of: bound.steps, ..Segment::default() };
            launch_segment(plan, bound, inputs, target, control, whole)
        }
    }
}

fn kind(element: Element, shape: &[usize]) -> String {
    format!("{element} {}", shape_text(shape))
}
