//! Runs as the driver takes them: put down once, and sent again and again without a wait.
//!
//! A [`Recorder`] is a target that keeps what a run does. A run whose launches depend on values (an
//! `until`) or that copies between launches can't be put down.

use super::buffer::{Buffer, Lent};
use super::chunk::{Chunk, Node, Work};
use super::clock::Event;
use super::error::CudaError;
use super::graph::{GraphSettings, Graphs};
use super::program::Program;
use crate::bind::{Bound, BufferId};
use crate::execute::{
    Control, ExecuteError, Input, Inputs, Launched, Target, TargetError, homeward, launch_all,
    upload,
};
use crate::launch::{Copy, Launch};
use crate::plan::Plan;
use std::collections::BTreeMap;
use std::time::Duration;
use thiserror::Error;

/// A run as the driver takes it.
#[derive(Debug)]
pub struct Recording {
    starts: Vec<Start>,
    chunks: Vec<Vec<Node>>,
    /// The copies after which each value is in its first memory again: from where, to where, and by
    /// way of which buffer where the copies cross.
    home: Vec<(BufferId, BufferId, Option<Buffer>)>,
    /// Where the buffers lay when the calls got their arguments.
    addresses: Vec<u64>,
    launched: Launched,
}

impl Recording {
    /// What the run does: launches, steps, and where each buffer's value is before it goes home.
    pub fn launched(&self) -> &Launched {
        &self.launched
    }

    /// Bytes of whole buffers that it copies at its end.
    pub fn copied_home(&self, bound: &Bound) -> impl Iterator<Item = usize> {
        let buffers = self.home.iter().filter_map(|(_, to, _)| bound.buffers.get(to.0));
        buffers.map(|buffer| buffer.bytes())
    }
}

/// What a buffer gets when a run begins.
#[derive(Debug)]
enum Start {
    Copy { from: BufferId, to: BufferId },
    Zeros(BufferId),
    Image(Buffer, BufferId),
}

/// Why a run can't be put down.
#[derive(Debug, Error)]
#[error("the run has more than launches that are known before it begins")]
struct Unknown;

struct Recorder<'p> {
    program: &'p mut Program,
    starts: Vec<Start>,
    chunk: Chunk,
    chunks: Vec<Vec<Node>>,
}

impl Recorder<'_> {
    fn end_chunk(&mut self) {
        let chunk = std::mem::take(&mut self.chunk);
        if !chunk.nodes.is_empty() {
            self.chunks.push(chunk.nodes);
        }
    }
}

impl Target for Recorder<'_> {
    fn watches(&self) -> bool {
        false
    }

    fn allocate(&mut self, _bound: &Bound) -> Result<(), TargetError> {
        Ok(())
    }

    fn upload(&mut self, buffer: BufferId, bytes: &[u8]) -> Result<(), TargetError> {
        self.starts.push(match bytes.iter().all(|byte| *byte == 0) {
            true => Start::Zeros(buffer),
            false => {
                let image = Buffer::new(&self.program.stream, bytes.len())?;
                image.upload(0, bytes)?;
                Start::Image(image, buffer)
            }
        });
        Ok(())
    }

    fn clear(&mut self, buffer: BufferId, _: usize) -> Result<(), TargetError> {
        self.starts.push(Start::Zeros(buffer));
        Ok(())
    }

    fn copy(&mut self, from: BufferId, to: BufferId) -> Result<(), TargetError> {
        self.starts.push(Start::Copy { from, to });
        Ok(())
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), TargetError> {
        if self.chunk.ends_before(launch, GraphSettings::default().chunk) {
            self.end_chunk();
        }
        let kernel = self.program.kernel(launch)?;
        kernel.admit(launch)?;
        let resident = kernel.resident();
        self.chunk.add(launch, resident, |part| self.program.call(part))?;
        Ok(())
    }

    fn exchange(&mut self, _copy: &Copy) -> Result<(), TargetError> {
        Err(Unknown.into())
    }

    fn wait(&mut self) -> Result<(), TargetError> {
        Err(Unknown.into())
    }

    fn finish(&mut self) -> Result<Option<Duration>, TargetError> {
        self.end_chunk();
        Ok(None)
    }

    fn download(&mut self, _: BufferId, _: usize, _: &mut [u8]) -> Result<(), TargetError> {
        Err(Unknown.into())
    }
}

impl Program {
    /// The end of the last run that was sent and not waited for.
    pub(super) fn replayed(&mut self) -> Result<&Event, CudaError> {
        if self.replayed.is_none() {
            self.replayed = Some(Event::new(&self.stream)?);
        }
        self.replayed.as_ref().ok_or_else(|| self.mismatch("there is no event".to_owned()))
    }

    /// Puts down a run on the buffers that are allocated. After the run the values of `homes` are
    /// in these buffers again. None where launches depend on values, or copies come between them.
    ///
    /// # Errors
    /// When a launch is impossible, or the device has no room for what is on the way.
    pub fn record<I: Input>(
        &mut self,
        plan: &Plan,
        bound: &Bound,
        inputs: &BTreeMap<String, I>,
        homes: &[BufferId],
    ) -> Result<Option<Recording>, ExecuteError> {
        if self.graphs.is_none() {
            let settings = GraphSettings { chunk: usize::MAX, ..GraphSettings::default() };
            let graphs = Graphs::new(&self.stream, settings);
            self.graphs = Some(graphs.map_err(|error| ExecuteError::Target(error.into()))?);
        }
        let (starts, chunk, chunks) = (Vec::new(), Chunk::default(), Vec::new());
        let mut recorder = Recorder { program: self, starts, chunk, chunks };
        let done = upload(plan, bound, inputs, &mut recorder).and_then(|()| {
            launch_all(plan, bound, &Inputs::new(), &mut recorder, &mut Control::default())
        });
        let launched = match done {
            Err(ExecuteError::Target(error)) if error.is::<Unknown>() => return Ok(None),
            done => done?,
        };
        let Recorder { starts, chunks, .. } = recorder;
        let pairs = homeward(&launched.current, homes);
        let crossed = pairs.iter().any(|(_, to)| pairs.iter().any(|(from, _)| from == to));
        let home = pairs.into_iter().map(|(from, to)| {
            let bytes = bound.buffers.get(from.0).map_or(0, |buffer| buffer.bytes());
            let between = crossed.then(|| Buffer::new(&self.stream, bytes)).transpose()?;
            Ok((from, to, between))
        });
        let home: Result<Vec<_>, CudaError> = home.collect();
        let home = home.map_err(|error| ExecuteError::Target(error.into()))?;
        let addresses = self.addresses();
        Ok(Some(Recording { starts, chunks, home, addresses, launched }))
    }

    /// Sends a recorded run to the stream, behind the work that it has, and does not wait for its
    /// end. Between parts of many launches, `goes_on` is called with the parts that were sent and
    /// those of the run; where it says no, the run ends there, and the result is false.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn replay(
        &mut self,
        recording: &mut Recording,
        goes_on: &mut dyn FnMut(usize, usize) -> bool,
    ) -> Result<bool, CudaError> {
        self.stream.enter()?;
        recording.readdress(self);
        let sent = self.send_recording(recording, goes_on);
        let marked = self.replayed()?.record();
        let sent = sent.map_err(|error| self.not_sent(error))?;
        marked.map(|()| sent)
    }

    fn send_recording(
        &mut self,
        recording: &Recording,
        goes_on: &mut dyn FnMut(usize, usize) -> bool,
    ) -> Result<bool, CudaError> {
        for start in &recording.starts {
            match start {
                Start::Copy { from, to } => self.buffer(*to)?.copy_from(self.buffer(*from)?)?,
                Start::Zeros(to) => self.buffer(*to)?.fill_with_zeros()?,
                Start::Image(image, to) => self.buffer(*to)?.copy_from(image)?,
            }
        }
        if let Some(graphs) = &mut self.graphs {
            graphs.begin();
            let parts = recording.chunks.len();
            for (place, nodes) in recording.chunks.iter().enumerate() {
                if !goes_on(place, parts) {
                    return Ok(false);
                }
                graphs.replay(nodes)?;
            }
        }
        for (from, to, between) in &recording.home {
            let from = self.buffer(*from)?;
            match between {
                Some(between) => between.copy_from(from)?,
                None => self.buffer(*to)?.copy_from(from)?,
            }
        }
        for (_, to, between) in &recording.home {
            if let Some(between) = between {
                self.buffer(*to)?.copy_from(between)?;
            }
        }
        Ok(true)
    }

    /// From the next replay on, these buffers are other memory of the caller.
    ///
    /// # Errors
    /// When the driver does not know the memory.
    pub fn exchange_lent(&mut self, lent: &[(BufferId, Lent)]) -> Result<(), CudaError> {
        for (id, memory) in lent {
            if self.buffer(*id)?.address() != memory.address() {
                let buffer = self.lent_buffer(*memory)?;
                if let Some(place) = self.buffers.get_mut(id.0) {
                    *place = buffer;
                }
            }
        }
        Ok(())
    }

    fn addresses(&self) -> Vec<u64> {
        self.buffers.iter().map(Buffer::address).collect()
    }
}

impl Recording {
    /// Gives the calls the addresses that the buffers have now.
    fn readdress(&mut self, program: &Program) {
        let now = || program.buffers.iter().map(Buffer::address);
        if now().eq(self.addresses.iter().copied()) {
            return;
        }
        self.addresses = now().collect();
        for node in self.chunks.iter_mut().flatten() {
            if let Work::Call(call) = &mut node.work {
                call.readdress(&self.addresses);
            }
        }
    }
}
