//! Executes a bound plan on any target: the order of launches, which buffer is current, upload
//! and download. A target ([`Target`]) only allocates, copies and launches.

use crate::array::{Array, ArrayError, Element, shape_text};
use crate::bind::{Bound, BufferId};
use crate::launch::{Launch, LaunchError, Launches};
use crate::plan::{Plan, Role};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use thiserror::Error;

/// What a target says when it fails; the text names the call and the device.
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
        /// Type and shape wanted.
        wanted: String,
    },
    /// A launch is impossible.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// An array can't be made.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The target failed.
    #[error(transparent)]
    Target(TargetError),
    /// The run was cancelled.
    #[error("cancelled before step {0}")]
    Cancelled(i64),
}

/// Runs kernels: a GPU, or a simulator of one.
pub trait Target {
    /// Makes room for these buffers, filled with zeros, in place of any from before.
    ///
    /// # Errors
    /// When there is too little memory: how much is wanted and free.
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

    /// Waits for all launches since [`Target::begin`]; says how long they took, if the target
    /// measures time.
    ///
    /// # Errors
    /// When a kernel failed.
    fn finish(&mut self) -> Result<Option<Duration>, TargetError> {
        Ok(None)
    }

    /// Ends a run early: drops launches that have not begun, where it can, and waits for the
    /// others.
    ///
    /// # Errors
    /// When a kernel failed.
    fn abandon(&mut self) -> Result<(), TargetError> {
        self.finish().map(drop)
    }

    /// Reads a whole buffer to the host.
    ///
    /// # Errors
    /// When the copy fails.
    fn download(&mut self, buffer: BufferId, bytes: &mut [u8]) -> Result<(), TargetError>;
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Launches handed to the target.
    pub launches: u64,
    /// Steps that they take together.
    pub steps: i64,
    /// Steps of the run.
    pub of: i64,
}

/// Hooks into a run.
#[derive(Default)]
pub struct Control<'a> {
    /// Called after each launch.
    pub progress: Option<&'a mut dyn FnMut(Progress)>,
    /// When set to true, the run ends before the next launch.
    pub cancel: Option<&'a AtomicBool>,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The state fields after the last step.
    pub outputs: BTreeMap<String, Array>,
    /// What was launched and how long it took.
    pub launched: Launched,
}

/// What [`launch_all`] did.
#[derive(Clone, Debug, PartialEq)]
pub struct Launched {
    /// The number of launches.
    pub count: u64,
    /// How long they took on the device, if the target measures time.
    pub elapsed: Option<Duration>,
    /// The current buffer of each field, in the plan's order.
    pub current: Vec<BufferId>,
}

/// Runs a plan once: allocate, upload, launch, download.
///
/// # Errors
/// When inputs are missing or wrong, when the target fails, when the run is cancelled.
pub fn run(
    plan: &Plan,
    bound: &Bound,
    inputs: &BTreeMap<String, Array>,
    target: &mut dyn Target,
    control: &mut Control<'_>,
) -> Result<Outcome, ExecuteError> {
    check_inputs(plan, bound, inputs)?;
    target.allocate(bound).map_err(ExecuteError::Target)?;
    upload(plan, bound, inputs, target)?;
    let launched = launch_all(plan, bound, target, control)?;
    let outputs = download(plan, bound, &launched.current, target)?;
    Ok(Outcome { outputs, launched })
}

/// Checks that every state and const field has data of its type and shape, and nothing else has.
///
/// # Errors
/// The first input that is missing, unknown or wrong.
pub fn check_inputs(
    plan: &Plan,
    bound: &Bound,
    inputs: &BTreeMap<String, Array>,
) -> Result<(), ExecuteError> {
    let fields = || plan.fields.iter().filter(|field| field.role != Role::Temp);
    if let Some(name) = inputs.keys().find(|name| fields().all(|field| field.name != **name)) {
        let known: Vec<_> = fields().map(|field| field.name.as_str()).collect();
        return Err(ExecuteError::UnknownInput {
            program: plan.program.clone(),
            name: name.clone(),
            known: known.join(", "),
        });
    }
    for (field, shape) in
        plan.fields.iter().zip(&bound.shapes).filter(|(field, _)| field.role != Role::Temp)
    {
        let array = inputs
            .get(&field.name)
            .ok_or_else(|| ExecuteError::MissingInput(field.name.clone()))?;
        if array.element() != field.element || array.shape() != shape {
            return Err(ExecuteError::Input {
                field: field.name.clone(),
                found: array.kind(),
                wanted: kind(field.element, shape),
            });
        }
    }
    Ok(())
}

/// Uploads the inputs into freshly allocated or used buffers. Both buffers of a field get its
/// data, so that cells which no kernel writes are the same in either; temp fields become zeros.
///
/// # Errors
/// When the target fails.
pub fn upload(
    plan: &Plan,
    bound: &Bound,
    inputs: &BTreeMap<String, Array>,
    target: &mut dyn Target,
) -> Result<(), ExecuteError> {
    let fields = plan.fields.iter().zip(&bound.shapes).zip(&bound.first_buffer);
    for ((field, shape), first) in fields.filter(|((field, _), _)| field.buffers > 0) {
        match inputs.get(&field.name) {
            Some(array) => target.upload(*first, array.bytes()),
            None => target.upload(*first, Array::zeros(field.element, shape)?.bytes()),
        }
        .map_err(ExecuteError::Target)?;
        for other in 1..field.buffers as usize {
            target.copy(*first, BufferId(first.0 + other)).map_err(ExecuteError::Target)?;
        }
    }
    Ok(())
}

/// Launches the whole schedule and waits for it.
///
/// # Errors
/// When a launch is impossible or fails, when the run is cancelled.
pub fn launch_all(
    plan: &Plan,
    bound: &Bound,
    target: &mut dyn Target,
    control: &mut Control<'_>,
) -> Result<Launched, ExecuteError> {
    let mut launches = Launches::new(plan, bound)?;
    let mut count = 0;
    target.begin().map_err(ExecuteError::Target)?;
    while let Some(launch) = launches.next() {
        if control.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            target.abandon().map_err(ExecuteError::Target)?;
            return Err(ExecuteError::Cancelled(launch.step));
        }
        if let Err(error) = target.launch(&launch) {
            // What is already under way must end before its buffers go.
            let _ = target.abandon();
            return Err(ExecuteError::Target(error));
        }
        count += 1;
        if let Some(progress) = &mut control.progress {
            progress(Progress { launches: count, steps: launches.step(), of: bound.steps });
        }
    }
    let elapsed = target.finish().map_err(ExecuteError::Target)?;
    Ok(Launched { count, elapsed, current: launches.current() })
}

/// Downloads the state fields from their current buffers.
///
/// # Errors
/// When the target fails or there is too little memory.
pub fn download(
    plan: &Plan,
    bound: &Bound,
    current: &[BufferId],
    target: &mut dyn Target,
) -> Result<BTreeMap<String, Array>, ExecuteError> {
    let mut outputs = BTreeMap::new();
    for ((field, shape), buffer) in plan.fields.iter().zip(&bound.shapes).zip(current) {
        if field.role == Role::State {
            let mut array = Array::zeros(field.element, shape)?;
            target.download(*buffer, array.bytes_mut()).map_err(ExecuteError::Target)?;
            outputs.insert(field.name.clone(), array);
        }
    }
    Ok(outputs)
}

fn kind(element: Element, shape: &[usize]) -> String {
    format!("{element} {}", shape_text(shape))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Data;
    use crate::launch::Value;
    use crate::launch::tests::bound;
    use crate::plan::tests::heat;

    /// Keeps buffers as bytes. A kernel named `two` adds 2 to every cell of its first argument and
    /// writes the sum to its third; `one` adds 1 and writes to its second.
    #[derive(Default)]
    struct Fake {
        buffers: Vec<Vec<u8>>,
        log: Vec<String>,
        running: bool,
        refuse: Option<&'static str>,
    }

    impl Target for Fake {
        fn allocate(&mut self, bound: &Bound) -> Result<(), TargetError> {
            self.buffers = bound.buffers.iter().map(|buffer| vec![0; buffer.bytes()]).collect();
            Ok(())
        }

        fn upload(&mut self, buffer: BufferId, bytes: &[u8]) -> Result<(), TargetError> {
            self.buffers[buffer.0].copy_from_slice(bytes);
            Ok(())
        }

        fn copy(&mut self, from: BufferId, to: BufferId) -> Result<(), TargetError> {
            self.buffers[to.0] = self.buffers[from.0].clone();
            Ok(())
        }

        fn begin(&mut self) -> Result<(), TargetError> {
            assert!(!self.running);
            self.running = true;
            Ok(())
        }

        fn launch(&mut self, launch: &Launch<'_>) -> Result<(), TargetError> {
            assert!(self.running);
            let name = launch.kernel.name.as_str();
            if self.refuse == Some(name) {
                return Err(format!("launch of `{name}` refused").into());
            }
            let buffer = |place: usize| match launch.arguments[place] {
                Value::Buffer(BufferId(buffer)) => buffer,
                Value::Number(_) => panic!("argument {place} of {name} is no buffer"),
            };
            let (amount, from, to) = match name {
                "two" => (2.0, buffer(0), buffer(2)),
                "one" => (1.0, buffer(0), buffer(1)),
                _ => panic!("unknown kernel"),
            };
            self.log.push(format!(
                "{name} at {} from {from} to {to} on {:?}",
                launch.step, launch.grid
            ));
            assert_ne!(from, to);
            let cells: Vec<f32> =
                self.buffers[from].chunks_exact(4).map(bytemuck::pod_read_unaligned).collect();
            let cells: Vec<f32> = cells.iter().map(|x| x + amount).collect();
            self.buffers[to] = bytemuck::cast_slice(&cells).to_vec();
            Ok(())
        }

        fn finish(&mut self) -> Result<Option<Duration>, TargetError> {
            self.running = false;
            Ok(Some(Duration::from_millis(3)))
        }

        fn abandon(&mut self) -> Result<(), TargetError> {
            self.log.push("abandoned".to_owned());
            self.finish().map(drop)
        }

        fn download(&mut self, buffer: BufferId, bytes: &mut [u8]) -> Result<(), TargetError> {
            bytes.copy_from_slice(&self.buffers[buffer.0]);
            Ok(())
        }
    }

    fn inputs(bound: &Bound) -> BTreeMap<String, Array> {
        let array = |place: usize| Array::noise(Element::F32, &bound.shapes[place], 1).unwrap();
        BTreeMap::from([("A".to_string(), array(0)), ("K".to_string(), array(1))])
    }

    #[test]
    fn buffers_swap_between_launches() {
        for steps in 0..8 {
            let (plan, bound) = (heat(), bound(20, steps));
            let inputs = inputs(&bound);
            let mut fake = Fake::default();
            let outcome = run(&plan, &bound, &inputs, &mut fake, &mut Control::default()).unwrap();
            let (Data::F32(before), Data::F32(after)) =
                (inputs["A"].data(), outcome.outputs["A"].data())
            else {
                panic!("wrong type");
            };
            for (before, after) in before.iter().zip(after) {
                assert!(
                    (before + steps as f32 - after).abs() < 1e-5,
                    "{steps} steps: {before} became {after}"
                );
            }
            assert_eq!(outcome.launched.count, (steps / 2 + steps % 2) as u64);
            assert_eq!(outcome.launched.elapsed, Some(Duration::from_millis(3)));
            assert_eq!(outcome.outputs.keys().collect::<Vec<_>>(), ["A"]);
        }
    }

    #[test]
    fn inputs_are_checked() {
        let (plan, bound) = (heat(), bound(20, 5));
        let mut given = inputs(&bound);
        given.insert("W".to_string(), given["K"].clone());
        let text = check_inputs(&plan, &bound, &given).unwrap_err().to_string();
        assert_eq!(text, "heat has no input `W`; it has A, K");
        given.remove("W");
        given.insert("K".to_string(), Array::zeros(Element::F64, &[20]).unwrap());
        let text = check_inputs(&plan, &bound, &given).unwrap_err().to_string();
        assert_eq!(text, "the data of field `K` is f64 20 where f32 20 is wanted");
        given.remove("K");
        let text = check_inputs(&plan, &bound, &given).unwrap_err().to_string();
        assert_eq!(
            text,
            "field `K` has no data; give it with --in K=FILE.npy, random:SEED or zeros"
        );
    }

    #[test]
    fn runs_report_progress_and_can_be_cancelled() {
        let (plan, bound) = (heat(), bound(20, 7));
        let cancel = AtomicBool::new(false);
        let mut seen = Vec::new();
        let mut progress = |p: Progress| {
            seen.push((p.launches, p.steps, p.of));
            cancel.store(p.steps >= 4, Ordering::Relaxed);
        };
        let mut control = Control { progress: Some(&mut progress), cancel: Some(&cancel) };
        let mut fake = Fake::default();
        let result = run(&plan, &bound, &inputs(&bound), &mut fake, &mut control);
        assert!(matches!(result, Err(ExecuteError::Cancelled(4))), "{result:?}");
        assert_eq!(seen, [(1, 2, 7), (2, 4, 7)]);
        assert!(!fake.running);
        assert_eq!(fake.log[2..], ["abandoned"]);
    }

    #[test]
    fn the_words_of_the_target_reach_the_user() {
        let (plan, bound) = (heat(), bound(20, 7));
        let mut fake = Fake { refuse: Some("one"), ..Fake::default() };
        let result = run(&plan, &bound, &inputs(&bound), &mut fake, &mut Control::default());
        assert_eq!(result.unwrap_err().to_string(), "launch of `one` refused");
        assert_eq!(
            fake.log,
            [
                "two at 0 from 0 to 1 on [2, 1, 1]",
                "two at 2 from 1 to 0 on [2, 1, 1]",
                "two at 4 from 0 to 1 on [2, 1, 1]",
                "abandoned"
            ]
        );
    }
}
