//! A loaded program with its buffers: a plan's kernels as a [`Target`].

use super::code::{Code, Kernels};
use super::memory::{Memory, NoMemory};
use super::workers::Workers;
use crate::bind::{Bound, BufferId};
use crate::execute::{Shown, Target, TargetError};
use crate::launch::{Copy, Launch};
use crate::memory::{TooLittleMemory, require};
use crate::plan::Plan;
use crate::processor::Processor;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Why a run on the processor failed.
#[derive(Debug, Error)]
pub enum CpuError {
    /// The plan is for a GPU.
    #[error(
        "the plan of {program} is for {arch}, not for a processor; compile it with --arch native"
    )]
    Architecture {
        /// The program.
        program: String,
        /// The architecture of the plan.
        arch: String,
    },
    /// The code has vectors that this processor does not have.
    #[error(
        "the code of {program} is for {arch}, with vectors of {wanted} bytes, and this processor \
         has {own}; compile it on this machine with --arch native, or name this processor"
    )]
    Vectors {
        /// The program.
        program: String,
        /// The architecture of the plan.
        arch: String,
        /// Bytes of a vector of the code.
        wanted: u32,
        /// Bytes of a vector of this processor.
        own: u32,
    },
    /// Plan and code are of different compiles.
    #[error("the code does not fit the plan of {program}: {reason}; compile them together")]
    Code {
        /// The program.
        program: String,
        /// How it was found.
        reason: String,
    },
    /// The plan and the program differ.
    #[error("{program}: {message}; compile the program again")]
    Mismatch {
        /// The program.
        program: String,
        /// The fault.
        message: String,
    },
    /// There are no threads to be had.
    #[error("no threads for the run: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// There is too little memory.
    #[error(transparent)]
    Memory(#[from] TooLittleMemory),
    /// The system gives no memory.
    #[error(transparent)]
    Allocate(#[from] NoMemory),
}

impl CpuError {
    /// Whether there is too little memory for the run; threads need some too.
    pub fn lacks_memory(&self) -> bool {
        matches!(self, Self::Memory(_) | Self::Allocate(_) | Self::Threads(_))
    }
}

/// Checks that the code of a plan has no wider vectors than a processor, in bytes.
fn check_vectors(plan: &Plan, own: u32) -> Result<(), CpuError> {
    let described = plan.target.device.as_deref().and_then(|text| text.parse().ok());
    match described {
        Some(Processor { vector: wanted, .. }) if wanted > own => {
            let (program, arch) = (plan.program.clone(), plan.target.arch.clone());
            Err(CpuError::Vectors { program, arch, wanted, own })
        }
        _ => Ok(()),
    }
}

/// A program on this machine's processor. It runs plans through [`crate::execute`].
#[derive(Debug)]
pub struct Program {
    name: String,
    kernels: Kernels,
    workers: Workers,
    buffers: Vec<Memory>,
    /// Bytes that a thread needs for a tile.
    bytes: u64,
    begin: Option<Instant>,
}

/// How many threads this machine runs at once.
fn all_threads() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

impl Program {
    /// A plan with its code, for some threads; by default, as many as the machine runs at once.
    ///
    /// # Errors
    /// A plan for a GPU; code that was not made together with the plan; a system that gives no
    /// threads.
    pub fn new(
        plan: &Plan,
        code: Arc<dyn Code>,
        threads: Option<NonZeroUsize>,
    ) -> Result<Self, CpuError> {
        let program = plan.program.clone();
        if plan.target.arch.starts_with("sm_") {
            return Err(CpuError::Architecture { program, arch: plan.target.arch.clone() });
        }
        check_vectors(plan, Processor::host().vector)?;
        let kernels = Kernels::new(plan, code)
            .map_err(|reason| CpuError::Code { program: program.clone(), reason })?;
        let workers = Workers::new(threads.map_or_else(all_threads, NonZeroUsize::get))?;
        let bytes = plan.kernels.iter().map(|kernel| kernel.dynamic_shared).max().unwrap_or(0);
        Ok(Self { name: program, kernels, workers, buffers: Vec::new(), bytes, begin: None })
    }

    /// How many threads it has.
    pub fn threads(&self) -> usize {
        self.workers.count()
    }

    /// Frees the buffers and the memory of the threads. The next run allocates its own.
    pub fn free(&mut self) {
        self.buffers.clear();
        self.workers.free();
    }

    fn mismatch(&self, message: impl Into<String>) -> TargetError {
        CpuError::Mismatch { program: self.name.clone(), message: message.into() }.into()
    }

    fn buffer(&mut self, id: BufferId, bytes: usize) -> Result<&mut Memory, TargetError> {
        let wrong = self.mismatch(format!("buffer {} is not one of {bytes} bytes", id.0));
        self.buffers.get_mut(id.0).filter(|buffer| buffer.len() == bytes).ok_or(wrong)
    }
}

impl Target for Program {
    fn allocate(&mut self, bound: &Bound) -> Result<(), TargetError> {
        self.buffers.clear();
        let own = self.bytes.saturating_mul(self.threads() as u64);
        require(bound.device_bytes().saturating_add(own)).map_err(CpuError::from)?;
        for buffer in &bound.buffers {
            let mut memory = Memory::zeros(buffer.bytes()).map_err(CpuError::from)?;
            if buffer.input.is_none() {
                self.workers.touch(&mut memory);
            }
            self.buffers.push(memory);
        }
        Ok(())
    }

    fn allocate_part(
        &mut self,
        bound: &Bound,
        bytes: u64,
        _: Option<&Shown>,
    ) -> Result<(), TargetError> {
        self.buffers.clear();
        let own = self.bytes.saturating_mul(self.threads() as u64);
        require(bytes.saturating_add(own)).map_err(CpuError::from)?;
        for buffer in &bound.buffers {
            self.buffers.push(Memory::unreserved(buffer.bytes()).map_err(CpuError::from)?);
        }
        Ok(())
    }

    fn forget(&mut self, buffer: BufferId, runs: &[Range<usize>]) -> Result<(), TargetError> {
        // The system takes back memory of pages that nobody needs.
        if let Some(memory) = self.buffers.get_mut(buffer.0)
            && runs.iter().any(|run| run.start == 0 && run.end >= memory.len())
        {
            *memory = Memory::unreserved(memory.len()).map_err(CpuError::from)?;
        }
        Ok(())
    }

    fn put(&mut self, buffer: BufferId, first: usize, bytes: &[u8]) -> Result<(), TargetError> {
        let missing = format!("buffer {} has no {} bytes from {first} on", buffer.0, bytes.len());
        let missing = self.mismatch(missing);
        let memory = self.buffers.get_mut(buffer.0).map(Memory::bytes_mut);
        let part = memory.and_then(|all| all.get_mut(first..first.checked_add(bytes.len())?));
        self.workers.copy(bytes, part.ok_or(missing)?);
        Ok(())
    }

    fn upload(&mut self, buffer: BufferId, bytes: &[u8]) -> Result<(), TargetError> {
        self.buffer(buffer, bytes.len())?;
        if let Some(memory) = self.buffers.get_mut(buffer.0) {
            self.workers.copy(bytes, memory.bytes_mut());
        }
        Ok(())
    }

    fn copy(&mut self, from: BufferId, to: BufferId) -> Result<(), TargetError> {
        let Ok([from, to]) = self.buffers.get_disjoint_mut([from.0, to.0]) else {
            return Err(self.mismatch("a copy between buffers that are not there"));
        };
        if from.len() != to.len() {
            return Err(self.mismatch("a copy between buffers of different sizes"));
        }
        self.workers.copy(from.bytes(), to.bytes_mut());
        Ok(())
    }

    fn begin(&mut self) -> Result<(), TargetError> {
        self.begin = Some(Instant::now());
        Ok(())
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), TargetError> {
        let Self { kernels, workers, buffers, .. } = self;
        kernels.run(launch, workers, buffers).map_err(|message| self.mismatch(message))
    }

    fn exchange(&mut self, copy: &Copy) -> Result<(), TargetError> {
        let part = |first: usize| first..first.saturating_add(copy.bytes);
        let from = self.buffers.get(copy.from.0);
        let from = from.and_then(|from| from.bytes().get(part(copy.from_byte))).map(<[u8]>::to_vec);
        let to = self.buffers.get_mut(copy.to.0);
        let to = to.and_then(|to| to.bytes_mut().get_mut(part(copy.to_byte)));
        match (from, to) {
            (Some(from), Some(to)) => to.copy_from_slice(&from),
            _ => return Err(self.mismatch("an exchange reaches beyond a buffer")),
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<(), TargetError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<Option<Duration>, TargetError> {
        Ok(self.begin.take().map(|begin| begin.elapsed()))
    }

    fn download(
        &mut self,
        buffer: BufferId,
        first: usize,
        bytes: &mut [u8],
    ) -> Result<(), TargetError> {
        let found = self.buffers.get(buffer.0).map(Memory::bytes);
        let part = found.and_then(|found| found.get(first..first.checked_add(bytes.len())?));
        let missing =
            || format!("buffer {} has no {} bytes from {first} on", buffer.0, bytes.len());
        let part = part.ok_or_else(|| self.mismatch(missing()))?;
        self.workers.copy(part, bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_for_wider_vectors_is_refused() {
        let text = include_str!("../../tests/data/smear.plan.json");
        let mut plan = Plan::from_json(text, "test").unwrap();
        assert!(check_vectors(&plan, 16).is_ok());
        plan.target.arch = "znver5".to_owned();
        plan.target.device = Some(Processor::named(64).to_string());
        assert!(check_vectors(&plan, 64).is_ok());
        let error = check_vectors(&plan, 32).unwrap_err().to_string();
        assert!(error.contains("is for znver5, with vectors of 64 bytes"), "{error}");
    }
}
