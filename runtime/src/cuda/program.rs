//! A loaded program with its buffers: a plan's kernels as a [`Target`].

use super::buffer::{Buffer, Lent};
use super::call::{Call, Word};
use super::clock::{Clock, Event};
use super::code::{Code, Constants};
use super::error::CudaError;
use super::graph::{GraphSettings, Graphs};
use super::joint::Peers;
use super::kernel::{Kernel, KernelFacts};
use super::null::Null;
use super::peer;
use super::slots::Windows;
use super::stream::Stream;
use crate::bind::{Bound, BufferId};
use crate::execute::{Joined, Shown, Slots, Target, TargetError};
use crate::launch::{Copy, Launch, Value};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// A program on a device. It runs plans through [`crate::execute`], in a stream of its own: several
/// run side by side, on one device or on many, and each may be sent to another thread.
#[derive(Debug)]
pub struct Program {
    // Fields are dropped in this order, after all work has ended.
    /// Sends launches as graphs; without it they are sent one by one.
    pub(super) graphs: Option<Graphs>,
    clock: Clock,
    /// Points of the run whose times are asked for.
    marks: Vec<Event>,
    pub(super) buffers: Vec<Buffer>,
    pub(super) saved: Vec<Buffer>,
    /// Memory of the caller that takes the place of buffers.
    pub(super) lent: Vec<(BufferId, Lent)>,
    /// Memory for windows of a grid.
    pub(super) windows: Option<Windows>,
    /// The devices with which it may have buffers together.
    pub(super) peers: Option<Peers>,
    constants: Constants,
    kernels: Arc<[Kernel]>,
    /// What a launch costs by itself, of plans that leave the pyramid height to the run.
    null: Option<Arc<Null>>,
    /// The end of the last run that was sent and not waited for.
    pub(super) replayed: Option<Event>,
    pub(super) stream: Arc<Stream>,
    /// The program's name.
    name: Arc<str>,
}

impl Program {
    pub(super) fn new(
        code: &Code,
        constants: Constants,
        stream: Arc<Stream>,
    ) -> Result<Self, CudaError> {
        Ok(Self {
            constants,
            kernels: Arc::clone(&code.kernels),
            replayed: None,
            clock: Clock::new(&stream)?,
            marks: Vec::new(),
            graphs: None,
            buffers: Vec::new(),
            saved: Vec::new(),
            lent: Vec::new(),
            windows: None,
            peers: None,
            null: code.null.clone(),
            stream,
            name: Arc::clone(&code.name),
        })
    }

    /// The name of its device.
    pub fn device_name(&self) -> &str {
        &self.stream.device().facts().name
    }

    /// Facts of the kernels, in the plan's order.
    pub fn kernels(&self) -> Vec<KernelFacts> {
        self.kernels.iter().map(|kernel| kernel.facts().clone()).collect()
    }

    /// From the next run on launches are sent as graphs of many. That spares the time between short
    /// kernels, and launches overlap where that is possible; the measured time is then that of the
    /// graphs. Graphs of runs before are used again.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn use_graphs(&mut self, settings: GraphSettings) -> Result<(), CudaError> {
        if self.graphs.as_ref().is_none_or(|graphs| graphs.settings() != settings) {
            self.graphs = Some(Graphs::new(&self.stream, settings)?);
        }
        Ok(())
    }

    /// On several devices, buffers that are shared out lie on all of them, so that none has a copy
    /// of another one's cells.
    pub fn join_peers(&mut self, peers: Peers) {
        self.peers = Some(peers);
    }

    /// The most bands of a launch so far.
    pub fn most_bands(&self) -> usize {
        self.graphs.as_ref().map_or(1, Graphs::most_bands)
    }

    pub(super) fn buffer(&self, id: BufferId) -> Result<&Buffer, CudaError> {
        self.buffers.get(id.0).ok_or_else(|| self.mismatch(format!("there is no buffer {}", id.0)))
    }

    /// A buffer of just this many bytes.
    fn sized_buffer(&self, id: BufferId, bytes: usize) -> Result<&Buffer, CudaError> {
        let buffer = self.buffer(id)?;
        if buffer.bytes() == bytes {
            return Ok(buffer);
        }
        let found = buffer.bytes();
        Err(self.mismatch(format!("buffer {} has {found} bytes, its data {bytes}", id.0)))
    }

    /// A buffer that has so many bytes from the `first` on.
    fn part(&self, id: BufferId, first: usize, bytes: usize) -> Result<&Buffer, CudaError> {
        let buffer = self.buffer(id)?;
        if first.checked_add(bytes).is_some_and(|end| end <= buffer.bytes()) {
            return Ok(buffer);
        }
        let (id, found) = (id.0, buffer.bytes());
        Err(self.mismatch(format!("buffer {id} has {found} bytes, not {bytes} from {first} on")))
    }

    pub(super) fn mismatch(&self, message: String) -> CudaError {
        CudaError::Mismatch { program: self.name.to_string(), message }
    }

    pub(super) fn kernel(&self, launch: &Launch<'_>) -> Result<&Kernel, CudaError> {
        let name = &launch.kernel.name;
        let kernel = self.kernels.get(launch.index).filter(|kernel| kernel.name() == name);
        kernel.ok_or_else(|| self.mismatch(format!("there is no kernel `{name}`")))
    }

    pub(super) fn call(&self, launch: &Launch<'_>) -> Result<Call, CudaError> {
        let word = |argument: &Value| match argument {
            Value::Buffer(id) => Ok((Word::of(&self.buffer(*id)?.address().to_ne_bytes()), 8)),
            Value::Number(number) => {
                let bytes = number.bytes();
                Ok((Word::of(&bytes), bytes.len()))
            }
        };
        let words = launch.arguments.iter().map(word).collect::<Result<Vec<_>, CudaError>>()?;
        self.kernel(launch)?.call(launch, &words).map_err(|message| self.mismatch(message))
    }

    /// Adds a launch to those that are sent next, and sends what is full.
    fn gather(&self, graphs: &mut Graphs, launch: &Launch<'_>) -> Result<(), CudaError> {
        if graphs.are_full_before(launch) {
            graphs.send(|| self.clock.start())?;
        }
        let kernel = self.kernel(launch)?;
        kernel.admit(launch)?;
        graphs.add(launch, kernel.resident(), |part| self.call(part))
    }

    fn send(&self, launch: &Launch<'_>) -> Result<(), CudaError> {
        self.kernel(launch)?.admit(launch)?;
        let call = self.call(launch)?;
        self.stream.enter()?;
        call.send(&self.stream)
    }

    /// Sends what was gathered, so that work in the stream comes after it.
    pub(super) fn flush(&mut self) -> Result<(), CudaError> {
        self.stream.enter()?;
        let Some(graphs) = self.graphs.as_mut().filter(|graphs| !graphs.is_empty()) else {
            return Ok(());
        };
        let sent = graphs.send(|| self.clock.start());
        sent.map_err(|error| self.not_sent(error))
    }

    /// Waits for the launches and says how long they took.
    fn end(&mut self) -> Result<Duration, CudaError> {
        self.stream.enter()?;
        if let Some(graphs) = &mut self.graphs {
            let sent = graphs.send(|| self.clock.start());
            sent.map_err(|error| self.not_sent(error))?;
        }
        self.clock.stop().map_err(|error| self.of_kernels(error))
    }

    /// Why a launch could not be sent: if a kernel before it failed, that is the reason. Waits for
    /// what was sent.
    pub(super) fn not_sent(&self, error: CudaError) -> CudaError {
        self.stream.synchronize().map_or_else(|fault| self.of_kernels(fault), |()| error)
    }

    /// An error of a kernel that ran, told as such.
    fn of_kernels(&self, error: CudaError) -> CudaError {
        match error {
            CudaError::Call { call, device, reason } => {
                let names: Vec<_> =
                    self.kernels.iter().map(|kernel| format!("`{}`", kernel.name())).collect();
                let kernels = match names.as_slice() {
                    [name] => format!("kernel {name}"),
                    names => format!("one of the kernels {}", names.join(", ")),
                };
                CudaError::Run { kernels, device, call, reason }
            }
            other => other,
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A run that was left half-way may still be under way. The caller's stream may be gone
        // where nothing was waited for.
        let _ = self.stream.enter().and_then(|()| match &self.replayed {
            Some(end) => end.wait(),
            None => self.stream.synchronize(),
        });
    }
}

impl Target for Program {
    fn allocate(&mut self, bound: &Bound) -> Result<(), TargetError> {
        self.allocate_part(bound, 0, None)
    }

    fn allocate_part(
        &mut self,
        bound: &Bound,
        _: u64,
        joint: Option<&Shown>,
    ) -> Result<(), TargetError> {
        self.saved.clear();
        self.buffers.clear();
        let mut joined: BTreeMap<_, _> = peer::joined(self, joint)?.into_iter().collect();
        let lent = |place: usize| self.lent.iter().find(|(id, _)| id.0 == place);
        let own = |place: &usize| lent(*place).is_none() && !joined.contains_key(&BufferId(*place));
        let owned = bound.buffers.iter().enumerate().filter(|(place, _)| own(place));
        let wanted = owned.map(|(_, buffer)| buffer.bytes() as u64).fold(0, u64::saturating_add);
        let out_of_memory = self.require(wanted)?;
        let buffers = bound.buffers.iter().enumerate().map(|(place, buffer)| {
            if let Some(joined) = joined.remove(&BufferId(place)) {
                return Ok(joined);
            }
            if let Some(constant) = self.constants.buffer(place, buffer, &self.stream) {
                return constant.map_err(|message| self.mismatch(message));
            }
            match lent(place) {
                Some((_, memory)) => self.lent_buffer(*memory),
                None => Buffer::new(&self.stream, buffer.bytes()),
            }
        });
        self.buffers = match buffers.collect() {
            Ok(buffers) => buffers,
            // The error is that of the whole program, not of one buffer.
            Err(CudaError::OutOfMemory { .. }) => return Err(out_of_memory.into()),
            Err(error) => return Err(error.into()),
        };
        Ok(())
    }

    fn upload(&mut self, buffer: BufferId, bytes: &[u8]) -> Result<(), TargetError> {
        self.stream.enter()?;
        Ok(self.sized_buffer(buffer, bytes.len())?.upload(0, bytes)?)
    }

    fn clear(&mut self, buffer: BufferId, bytes: usize) -> Result<(), TargetError> {
        self.stream.enter()?;
        Ok(self.sized_buffer(buffer, bytes)?.fill_with_zeros()?)
    }

    fn put(&mut self, buffer: BufferId, first: usize, bytes: &[u8]) -> Result<(), TargetError> {
        self.flush()?;
        Ok(self.part(buffer, first, bytes.len())?.upload(first, bytes)?)
    }

    fn slots(&mut self) -> Option<&mut dyn Slots> {
        Some(self)
    }

    fn joins(&self) -> bool {
        self.peers.is_some()
    }

    fn join(&mut self, buffers: &[Joined]) -> Result<Shown, TargetError> {
        Ok(peer::join(self, buffers)?)
    }

    fn shows(&self) -> bool {
        true
    }

    fn show(&mut self, buffers: &[BufferId]) -> Result<Shown, TargetError> {
        self.flush()?;
        Ok(peer::show(self, buffers)?)
    }

    fn fetch(
        &mut self,
        shown: &Shown,
        buffer: BufferId,
        runs: &[Range<usize>],
    ) -> Result<(), TargetError> {
        Ok(peer::fetch(self, shown, buffer, runs)?)
    }

    fn follow(&mut self, shown: &Shown) -> Result<(), TargetError> {
        self.flush()?;
        Ok(peer::follow(self, shown)?)
    }

    fn copy(&mut self, from: BufferId, to: BufferId) -> Result<(), TargetError> {
        self.stream.enter()?;
        let from = self.buffer(from)?;
        self.sized_buffer(to, from.bytes())?.copy_from(from)?;
        Ok(self.stream.synchronize()?)
    }

    fn begin(&mut self) -> Result<(), TargetError> {
        self.stream.enter()?;
        self.marks.clear();
        match &mut self.graphs {
            Some(graphs) => graphs.begin(),
            None => self.clock.start()?,
        }
        Ok(())
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), TargetError> {
        if let Some(part) = &launch.part {
            // Each range of blocks is a launch.
            return part.iter().try_for_each(|numbers| {
                let alone = || CudaError::Part { kernel: launch.kernel.name.clone() };
                Target::launch(self, &launch.numbered(numbers).ok_or_else(alone)?)
            });
        }
        let sent = match self.graphs.take() {
            Some(mut graphs) => {
                let sent = self.gather(&mut graphs, launch);
                self.graphs = Some(graphs);
                sent
            }
            None => self.send(launch),
        };
        Ok(sent.map_err(|error| self.not_sent(error))?)
    }

    fn exchange(&mut self, copy: &Copy) -> Result<(), TargetError> {
        self.flush()?;
        if self.buffer(copy.to)?.copy_part(self.buffer(copy.from)?, copy)? {
            return Ok(());
        }
        Err(self.mismatch("an exchange reaches beyond a buffer".to_string()).into())
    }

    fn wait(&mut self) -> Result<(), TargetError> {
        self.flush()?;
        self.stream.synchronize().map_err(|error| self.of_kernels(error))?;
        if let Some(graphs) = &mut self.graphs {
            graphs.ended();
        }
        Ok(())
    }

    fn look_ahead(
        &mut self,
        condition: BufferId,
        bytes: usize,
        values: Vec<BufferId>,
    ) -> Result<Option<u64>, TargetError> {
        let Some(mut graphs) = self.graphs.take() else { return Ok(None) };
        let buffer = self.buffer(condition);
        let taken = buffer.and_then(|buffer| graphs.look((condition, buffer, bytes), values));
        self.graphs = Some(graphs);
        Ok(taken.map_err(|error| self.not_sent(error))?)
    }

    fn found(&mut self, look: u64) -> Option<[u8; 8]> {
        self.graphs.as_mut().and_then(|graphs| graphs.found(look))
    }

    fn drop_ahead(&mut self) -> Result<(), TargetError> {
        if let Some(graphs) = &mut self.graphs {
            graphs.drop_ahead();
        }
        self.wait()
    }

    fn finish(&mut self) -> Result<Option<Duration>, TargetError> {
        Ok(Some(self.end()?))
    }

    fn mark(&mut self) -> Result<bool, TargetError> {
        self.flush()?;
        let mark = Event::new(&self.stream)?;
        mark.record()?;
        self.marks.push(mark);
        Ok(true)
    }

    fn marks(&mut self) -> Result<Vec<Duration>, TargetError> {
        self.stream.enter()?;
        let Some(first) = self.marks.first() else { return Ok(Vec::new()) };
        Ok(self.marks.iter().map(|mark| first.until(mark)).collect::<Result<_, _>>()?)
    }

    fn null(
        &mut self,
        grid: [u32; 3],
        block: [u32; 3],
        times: u32,
    ) -> Result<Option<Duration>, TargetError> {
        let Some(null) = &self.null else { return Ok(None) };
        self.stream.enter()?;
        Ok(Some(null.time((grid, block), times, (&self.stream, &self.clock))?))
    }

    fn resident(&self, kernel: usize) -> Option<u64> {
        self.kernels.get(kernel).map(Kernel::resident)
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        self.stream.enter()?;
        if let Some(graphs) = &mut self.graphs {
            graphs.begin();
        }
        Ok(self.stream.synchronize().map_err(|error| self.of_kernels(error))?)
    }

    fn download(
        &mut self,
        buffer: BufferId,
        first: usize,
        bytes: &mut [u8],
    ) -> Result<(), TargetError> {
        self.flush()?;
        Ok(self.part(buffer, first, bytes.len())?.download(first, bytes)?)
    }
}
