//! A program: a plan with the code that runs it.

use crate::fault::{Fault, Status};
use crate::handles::{self, Object};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use stencil_runtime::array::Array;
use stencil_runtime::bind::Request;
use stencil_runtime::cuda;
use stencil_runtime::plan::Plan;

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
        cancel: &Arc<AtomicBool>,
    ) -> Result<Ran, Fault>;
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
}

impl Program {
    /// A program.
    pub fn new(plan: Plan, code: Code) -> Self {
        Self { plan, code, loaded: Mutex::new(Vec::new()) }
    }

    /// Makes it live, and returns its handle.
    pub fn publish(self) -> u64 {
        handles::add(Object::Program(Arc::new(self)))
    }

    /// Takes a copy that is loaded on a device; it has no buffers.
    pub fn take_loaded(&self, device: i32) -> Option<cuda::Program> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let place = loaded.iter().position(|(on, _)| *on == device)?;
        Some(loaded.swap_remove(place).1)
    }

    /// Keeps a loaded copy for the next run.
    pub fn keep_loaded(&self, device: i32, mut program: cuda::Program) {
        program.lend(Vec::new());
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.push((device, program));
    }
}

/// Reads a plan.
///
/// # Errors
/// What is wrong with it.
pub fn plan(text: Vec<u8>, origin: &str) -> Result<Plan, Fault> {
    let wrong = |why: String| Fault::new(Status::Plan, why);
    let text =
        String::from_utf8(text).map_err(|_| wrong(format!("{origin} is not text (UTF-8)")))?;
    Plan::from_json(&text, origin).map_err(|error| wrong(error.to_string()))
}
