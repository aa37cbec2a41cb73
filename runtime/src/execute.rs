//! Executes a bound plan on any target: the order of launches, which memory a buffer stands for,
//! upload and download. A target ([`Target`]) only allocates, copies and launches.

pub mod heights;
mod lent;
mod segment;
#[cfg(test)]
mod tests;
mod transfer;

use crate::array::{Array, ArrayError, Element, shape_text};
use crate::bind::{Bound, BufferId};
use crate::launch::{Copy, Iterations, Launch, LaunchError};
use crate::plan::{Plan, Role};
use crate::watch::Stuck;
use heights::Chosen;
pub use lent::{homeward, lendable};
pub use segment::{Segment, launch_segment};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
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

/// Runs kernels: a GPU, or a simulator of one.
pub trait Target {
    /// How many devices it has. Buffers and launches of a plan lie on devices from 0.
    fn devices(&self) -> u32 {
        1
    }

    /// Makes room for these buffers, filled with zeros, in place of any from before.
    ///
    /// # Errors
    /// When there is too little memory: how much is needed and free.
    fn allocate(&mut self, bound: &Bound) -> Result<(), TargetError>;

    /// Fills a buffer from the host.
    ///
    /// # Errors
    /// When the copy fails.
    fn upload(&mut self, buffer: BufferId, bytes: &[u8]) -> Result<(), TargetError>;

    /// Copies a whole buffer into another of the same size.
    ///
    /// # Errors
    /// When the copy fails.
    fn copy(&mut self, from: BufferId, to: BufferId) -> Result<(), TargetError>;

    /// Whether a run on it is waited for. Then a block that waits without end makes a record, which
    /// is read after the run.
    fn watches(&self) -> bool {
        true
    }

    /// Called before the first launch of a run.
    ///
    /// # Errors
    /// When the target can't begin.
    fn begin(&mut self) -> Result<(), TargetError> {
        Ok(())
    }

    /// Launches a kernel; it may run later, but in order.
    ///
    /// # Errors
    /// When the launch is refused.
    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), TargetError>;

    /// Copies rows from one buffer to another; it may run later, but in order with launches.
    ///
    /// # Errors
    /// When the copy is refused.
    fn exchange(&mut self, copy: &Copy) -> Result<(), TargetError>;

    /// Waits for all launches and copies since [`Target::begin`]; the run goes on after it, and
    /// buffers may be read before it does.
    ///
    /// # Errors
    /// When a kernel failed.
    fn wait(&mut self) -> Result<(), TargetError>;

    /// Takes a look at the first bytes of a buffer behind the launches so far without a wait;
    /// `values` are the memories that hold values then. Gives the number of the look. None where
    /// the target takes none: then the caller waits and downloads.
    ///
    /// # Errors
    /// When the look is refused.
    fn look_ahead(
        &mut self,
        condition: BufferId,
        bytes: usize,
        values: Vec<BufferId>,
    ) -> Result<Option<u64>, TargetError> {
        let _ = (condition, bytes, values);
        Ok(None)
    }

    /// What a look found, where it is known. All are known behind [`Target::wait`].
    fn found(&mut self, look: u64) -> Option<[u8; 8]> {
        let _ = look;
        None
    }

    /// Drops launches that have not begun and looks, where it can, and waits for the others; the
    /// run goes on behind it.
    ///
    /// # Errors
    /// When a kernel failed.
    fn drop_ahead(&mut self) -> Result<(), TargetError> {
        self.wait()
    }

    /// Waits for all launches since [`Target::begin`]; says how long they took, if the target
    /// measures time.
    ///
    /// # Errors
    /// When a kernel failed.
    fn finish(&mut self) -> Result<Option<Duration>, TargetError> {
        Ok(None)
    }

    /// Launches a kernel that does nothing so many times; says how long that took together, if the
    /// target can.
    ///
    /// # Errors
    /// When the launches fail.
    fn null(
        &mut self,
        grid: [u32; 3],
        block: [u32; 3],
        times: u32,
    ) -> Result<Option<Duration>, TargetError> {
        let _ = (grid, block, times);
        Ok(None)
    }

    /// Blocks of a kernel, by its place in the plan, that run at once, if the target knows.
    fn resident(&self, kernel: usize) -> Option<u64> {
        let _ = kernel;
        None
    }

    /// Ends a run early: drops launches that have not begun, where it can, and waits for the
    /// others.
    ///
    /// # Errors
    /// When a kernel failed.
    fn abandon(&mut self) -> Result<(), TargetError> {
        self.finish().map(drop)
    }

    /// Reads a buffer to the host, from a byte on.
    ///
    /// # Errors
    /// When the copy fails.
    fn download(
        &mut self,
        buffer: BufferId,
        first: usize,
        bytes: &mut [u8],
    ) -> Result<(), TargetError>;
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
