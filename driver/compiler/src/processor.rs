//! Machine code of a program, loaded to run on the processor of this machine.

use crate::failure::Failure;
use std::num::NonZeroUsize;
use std::sync::Arc;
use stencil_passes::llvm::emit_object::Object;
use stencil_passes::llvm::load_object;
use stencil_runtime::cpu::{CpuError, Program};
use stencil_runtime::plan::Plan;

/// Loads the code of a plan for some threads.
///
/// # Errors
/// Threads that are not to be had.
pub fn load(
    plan: &Plan,
    object: &Object,
    threads: Option<NonZeroUsize>,
) -> Result<Program, Failure> {
    let code = load_object::load(object).map_err(Failure::internal)?;
    Program::new(plan, Arc::new(code), threads).map_err(|error| match error {
        // One compile made the code and the plan.
        CpuError::Code { .. } => Failure::internal(error),
        error => Failure::user(error),
    })
}

/// The device, for messages.
pub fn label(program: &Program) -> String {
    match program.threads() {
        1 => "processor, 1 thread".to_owned(),
        threads => format!("processor, {threads} threads"),
    }
}
