//! Runs on device memory in a stream of the caller: sent, and not waited for. What is the same in
//! many calls is made once: the code on the device, the buffers of a stream, and the launches as
//! the driver takes them.

use super::binding::{Binding, Memory};
use super::error::HostError;
use super::program::{Code, Hooks, Program, Ran, taken};
use super::raw;
use super::run::{Copies, Done, Run};
use crate::array::{Array, Element};
use crate::bind::{Bound, Buffer, BufferId};
use crate::cuda::{self, Cuda, Lent, LentStream, Recording};
use crate::execute::{
    ExecuteError, Input, Target, check_devices, check_inputs, lendable, read_value,
};
use crate::plan::{Plan, Role};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// Streams of a program that are kept with their buffers.
const MOST_QUEUES: usize = 4;
/// Kinds of runs of a stream that are kept.
const MOST_RUNS: usize = 8;

/// A run that is to be sent.
pub struct Sending<'a> {
    /// The CUDA device, by its number.
    pub device: i32,
    /// The stream.
    pub stream: LentStream,
    /// Tells runs apart that differ in more than the addresses of their fields. Runs of a program
    /// with the same key have the same request, shapes and element types.
    pub key: &'a [u64],
    /// The memory of each field that the caller gives, in the plan's order.
    pub fields: &'a [Lent],
}

#[derive(Default)]
pub(super) struct Queues {
    open: Mutex<Vec<Open>>,
}

impl Queues {
    /// Frees the buffers of all streams once their work has ended. One that a run holds goes with
    /// the end of that run.
    pub(super) fn close(&self) {
        drop(taken(&self.open));
    }
}

/// The work of a program in a stream.
struct Open {
    device: i32,
    stream: LentStream,
    queue: Arc<Mutex<Queue>>,
}

struct Queue {
    program: cuda::Program,
    /// The buffers that are allocated.
    buffers: Vec<Buffer>,
    /// The last one first.
    runs: Vec<Kept>,
}

/// A run that was sent before.
struct Kept {
    key: Vec<u64>,
    bound: Bound,
    /// The buffer that a field's memory replaces, and its bytes, in the plan's order.
    homes: Vec<(BufferId, usize)>,
    /// None where the run can't be sent without waiting for parts of it.
    recording: Option<Recording>,
}

/// Cells that lie in a buffer of the device already.
struct OnDevice<'a>(&'a Binding);

impl Input for OnDevice<'_> {
    fn element(&self) -> Element {
        self.0.element
    }

    fn shape(&self) -> &[usize] {
        &self.0.shape
    }

    fn bytes(&self) -> Option<&[u8]> {
        None
    }
}

impl Program {
    /// Sends a run to a stream, behind the work that it has, and does not wait for its end, unless
    /// there are reductions to read. `settings` is called for a run of a new key, and describes it.
    /// None where the run can't be sent so, and [`Run::execute`] can do it: where a field's memory
    /// can't take the place of a buffer, or launches depend on values.
    ///
    /// # Errors
    /// As [`Run::execute`]. The memory of state fields is then undefined.
    pub fn send(
        &self,
        sending: &Sending<'_>,
        settings: impl FnOnce() -> Result<Run, HostError>,
        mut hooks: Hooks<'_>,
    ) -> Result<Option<Done>, HostError> {
        let Code::Cuda(code) = &self.code else { return Ok(None) };
        let queue = self.queue(sending, code)?;
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        let place = queue.runs.iter().position(|run| run.key == sending.key);
        let mut run = match place {
            Some(place) => queue.runs.remove(place),
            None => queue.prepare(&self.plan, sending.key, &settings()?)?,
        };
        let done = queue.send(&self.plan, &mut run, sending.fields, &mut hooks);
        // After an error the buffers may be others than those of the recording.
        if done.is_ok() {
            queue.runs.insert(0, run);
            queue.runs.truncate(MOST_RUNS);
        }
        done
    }

    fn queue(&self, sending: &Sending<'_>, code: &[u8]) -> Result<Arc<Mutex<Queue>>, HostError> {
        let mut open = self.queues.open.lock().unwrap_or_else(PoisonError::into_inner);
        let is = |one: &Open| (one.device, one.stream) == (sending.device, sending.stream);
        if let Some(place) = open.iter().position(is) {
            let found = open.remove(place);
            let queue = Arc::clone(&found.queue);
            open.insert(0, found);
            return Ok(queue);
        }
        let code = self.code_on(sending.device, code)?;
        let program = code.program_on(sending.stream)?;
        let queue = Queue { program, buffers: Vec::new(), runs: Vec::new() };
        let queue = Arc::new(Mutex::new(queue));
        let (device, stream) = (sending.device, sending.stream);
        open.insert(0, Open { device, stream, queue: Arc::clone(&queue) });
        open.truncate(MOST_QUEUES);
        Ok(queue)
    }

    /// The code on a device, loaded once.
    pub(super) fn code_on(&self, device: i32, code: &[u8]) -> Result<cuda::Code, HostError> {
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = codes.iter().find(|(on, _)| *on == device) {
            return Ok(found.clone());
        }
        let loaded = Cuda::open(device)?.code(&self.plan, code)?;
        codes.push((device, loaded.clone()));
        Ok(loaded)
    }
}

impl Queue {
    /// Makes the buffers of a run, where those that are there are others, and puts the run down.
    fn prepare(&mut self, plan: &Plan, key: &[u64], run: &Run) -> Result<Kept, HostError> {
        let bound = run.bound_to(plan)?;
        let inputs: BTreeMap<_, _> =
            run.fields.iter().map(|(name, field)| (name.clone(), OnDevice(field))).collect();
        check_inputs(plan, &bound, &inputs)?;
        check_devices(plan, &bound, &self.program)?;
        let mut kept = Kept { key: key.to_vec(), bound, homes: Vec::new(), recording: None };
        let (mut lent, mut states) = (Vec::new(), Vec::new());
        for (place, field) in plan.fields.iter().enumerate() {
            let Some(binding) = run.fields.get(&field.name) else { continue };
            let Memory::Device { address, .. } = binding.memory else { return Ok(kept) };
            if !binding.is_dense() {
                return Ok(kept);
            }
            let home = lendable(plan, &kept.bound, place).filter(|_| binding.bytes() > 0);
            let Some(home) = home else { return Ok(kept) };
            lent.push((home, raw::lent(address, binding.bytes())));
            kept.homes.push((home, binding.bytes()));
            if field.role == Role::State {
                states.push(home);
            }
        }
        if self.buffers == kept.bound.buffers {
            self.program.exchange_lent(&lent)?;
        } else {
            self.runs.clear();
            self.buffers.clear();
            self.program.lend(lent);
            self.program.allocate(&kept.bound).map_err(ExecuteError::Target)?;
            self.buffers.clone_from(&kept.bound.buffers);
        }
        kept.recording = self.program.record(plan, &kept.bound, &inputs, &states)?;
        Ok(kept)
    }

    fn send(
        &mut self,
        plan: &Plan,
        run: &mut Kept,
        fields: &[Lent],
        hooks: &mut Hooks<'_>,
    ) -> Result<Option<Done>, HostError> {
        let Some(recording) = &mut run.recording else { return Ok(None) };
        if !run.homes.iter().map(|(_, bytes)| *bytes).eq(fields.iter().map(Lent::bytes)) {
            let (found, own) = (fields.len(), run.homes.len());
            let text = format!("{found} fields of other sizes are given for {own}");
            return Err(HostError::Argument(text));
        }
        let lent: Vec<(BufferId, Lent)> =
            run.homes.iter().map(|(home, _)| *home).zip(fields.iter().copied()).collect();
        self.program.exchange_lent(&lent)?;
        let (steps, launches) = (recording.launched().steps, recording.launched().count);
        let whole = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let sent = self.program.replay(recording, &mut |parts, of| {
            if parts > 0
                && let Some(progress) = &mut hooks.progress
            {
                progress(steps.saturating_mul(whole(parts)) / whole(of.max(1)), steps);
            }
            !hooks.cancel.load(Ordering::Relaxed)
        })?;
        if !sent {
            return Err(ExecuteError::Cancelled(run.bound.first_step).into());
        }
        let mut copies = Copies::default();
        recording.copied_home(&run.bound).for_each(|bytes| copies.add(bytes));
        let current = recording.launched().current.clone();
        let mut outputs = BTreeMap::new();
        for (place, field) in plan.fields.iter().enumerate() {
            if field.role == Role::Reduction {
                let shape = run.bound.shapes.get(place).map_or(&[] as &[_], Vec::as_slice);
                let mut value = Array::zeros(field.element, shape)?;
                let program = &mut self.program;
                read_value(&run.bound, &current, place, value.bytes_mut(), program)?;
                outputs.insert(field.name.clone(), value);
            }
        }
        if let Some(progress) = &mut hooks.progress {
            progress(steps, steps);
        }
        let ran = Ran { outputs, steps, launches, seconds: None, met: None };
        Ok(Some(Done { ran, copies }))
    }
}
