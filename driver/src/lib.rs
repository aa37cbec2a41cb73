//! The tools: `stencilc` compiles and runs programs, `stencil-opt` runs passes on IR. Here are
//! their arguments, messages and files; the work is done by `stencil-compiler`.

#![forbid(unsafe_code)]

pub mod cli;
mod compile;
mod devices;
mod emit;
mod emit_c;
mod files;
pub mod manual;
pub mod message;
pub mod opt;
pub mod picture;
mod run;
mod target;

use std::process::ExitCode;
use stencil_compiler::{Failure, stack};
use stencil_dialects::error::Error;

/// Bytes that the stack of a tool has at least.
const STACK: usize = 4 << 20;

/// Does the work of a tool on a stack of its own where the limit of the first thread's is small.
pub fn with_stack(work: impl FnOnce() -> ExitCode) -> ExitCode {
    if stacker::remaining_stack().is_some_and(|bytes| bytes >= STACK) {
        return work();
    }
    let refused = |error: Error| message::exit(Err(vec![Failure::user(error.message)]));
    stack::grow(STACK, work).unwrap_or_else(refused)
}
