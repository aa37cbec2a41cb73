//! `stencil-opt`: runs passes on MLIR. See `stencilc::opt`.

#![forbid(unsafe_code)]

use clap::{CommandFactory, Parser};
use std::process::ExitCode;
use stencilc::message::{exit, usage};
use stencilc::opt::{self, Args};

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: stencil_runtime::allocator::Told = stencil_runtime::allocator::Told;

fn main() -> ExitCode {
    stencilc::with_stack(work)
}

fn work() -> ExitCode {
    if let Some(code) = stencilc::manual::asked_for(Args::command()) {
        return code;
    }
    // A tool that can't be told of signals still works.
    #[cfg(unix)]
    let _ = stencil_runtime::signals::end_in_order(|| false);
    match Args::try_parse() {
        Ok(arguments) => exit(opt::run(&arguments)),
        Err(error) => usage(&error),
    }
}
