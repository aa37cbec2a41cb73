//! The tools: `stencilc` compiles and runs programs, `stencil-opt` runs passes on IR. Here are
//! their arguments, messages and files; the work is done by `stencil-compiler`.

#![forbid(unsafe_code)]

pub mod cli;
mod compile;
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
use stencil_compiler::Failure;

/// Bytes that the stack of a tool has at least.
const STACK: usize = 4 << 20;

/// Does the work of a tool on a stack of its own where the limit of the first thread's is small.
pub fn with_stack(work: impl FnOnce() -> ExitCode) -> ExitCode {
    let small = stacker::remaining_stack().is_some_and(|bytes| bytes < STACK);
    // `stacker` panics where there is no memory for the stack.
    if small && Vec::<u8>::new().try_reserve_exact(2 * STACK).is_err() {
        let message = format!("out of memory: no {STACK} bytes for a stack");
        return message::exit(Err(vec![Failure::user(message)]));
    }
    stacker::maybe_grow(STACK, STACK, work)
}
