//! A program: a plan with the code that runs it.

use super::error::HostError;
use super::queue::Queues;
use crate::array::Array;
use crate::bind::Request;
use crate::cuda;
use crate::execute::heights::Memory;
use crate::plan::Plan;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// Runs a program by other means than a CUDA device.
pub trait Engine: Send + Sync {
    /// Runs it on arrays.
    ///
    /// # Errors
    /// Why the run failed.
    fn run(
        &self,
        inputs: &BTreeMap<String, Array>,
        request: Request,
        hooks: Hooks<'_>,
    ) -> Result<Ran, HostError>;

    /// Ends threads that no run uses. The next run starts its own.
    fn release(&self) {}

    /// Why it runs on memory of the host alone.
    fn why_host(&self) -> &'static str {
        "the program is compiled for another target"
    }
}

/// How the caller follows a run, and ends it early.
pub struct Hooks<'a> {
    /// When set to true, the run ends before its next launch or step.
    pub cancel: Arc<AtomicBool>,
    /// Called with the steps that were taken or sent to the device, and with those of the run.
    pub progress: Option<&'a mut dyn FnMut(i64, i64)>,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    /// State fields and reductions.
    pub outputs: BTreeMap<String, Array>,
    /// Steps taken.
    pub steps: i64,
    /// Kernels launched.
    pub launches: u64,
    /// How long the steps took, where that is measured.
    pub seconds: Option<f64>,
    /// Whether the condition of an `until` was met, where there is one.
    pub met: Option<bool>,
}

/// What runs a program.
pub enum Code {
    /// A CUDA device, with this PTX or cubin.
    Cuda(Vec<u8>),
    /// Something else.
    Engine(Box<dyn Engine>),
}

/// A program.
pub struct Program {
    /// Its plan; of an engine the declarations at least.
    pub plan: Plan,
    /// Its code.
    pub code: Code,
    /// Copies that are loaded on a device and not in use, with the device's number.
    loaded: Mutex<Vec<(i32, cuda::Program)>>,
    /// The code as it is loaded on devices.
    pub(super) codes: Mutex<Vec<(i32, cuda::Code)>>,
    /// Pyramid heights that runs have chosen.
    pub(super) heights: Mutex<Memory>,
    /// Work in streams of the caller.
    pub(super) queues: Queues,
}

impl Program {
    /// A program.
    pub fn new(plan: Plan, code: Code) -> Self {
        let (loaded, codes) = (Mutex::default(), Mutex::default());
        let heights = Mutex::new(Memory::from_environment());
        Self { plan, code, loaded, codes, heights, queues: Queues::default() }
    }

    /// Ends threads that no run uses, and frees memory of devices once the work that was sent there
    /// has ended. The next run has its own.
    pub fn release(&self) {
        if let Code::Engine(engine) = &self.code {
            engine.release();
        }
        // Each holds the code that it runs.
        self.queues.close();
        drop(taken(&self.loaded));
        drop(taken(&self.codes));
    }

    /// Takes a copy that is loaded on a device; it has no buffers.
    pub(super) fn take_loaded(&self, device: i32) -> Option<cuda::Program> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let place = loaded.iter().position(|(on, _)| *on == device)?;
        Some(loaded.swap_remove(place).1)
    }

    /// Keeps a loaded copy for the next run.
    pub(super) fn keep_loaded(&self, device: i32, mut program: cuda::Program) {
        program.lend(Vec::new());
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.push((device, program));
    }
}

/// All of a list, which is unlocked again.
pub(super) fn taken<T>(list: &Mutex<Vec<T>>) -> Vec<T> {
    std::mem::take(&mut *list.lock().unwrap_or_else(PoisonError::into_inner))
}
