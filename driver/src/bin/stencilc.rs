//! `stencilc`: compiles and runs stencil programs. See `stencilc::cli`.

#![forbid(unsafe_code)]

use clap::CommandFactory;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(unix)]
use stencil_runtime::{bounded_read::Awaited, signals};
use stencilc::cli::Cli;
use stencilc::message::{exit, usage};

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: stencil_runtime::allocator::Told = stencil_runtime::allocator::Told;

fn main() -> ExitCode {
    stencilc::with_stack(work)
}

fn work() -> ExitCode {
    if let Some(code) = stencilc::manual::asked_for(Cli::command()) {
        return code;
    }
    let arguments = match Cli::read() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    let cancel = Arc::new(AtomicBool::new(false));
    // The first Ctrl-C ends the work in order, the second ends the process; the first does so, too,
    // while an input is read. Either way no output is written. A tool that can't be told of signals
    // still works.
    let asked = Arc::clone(&cancel);
    #[cfg(unix)]
    let _ =
        signals::end_in_order(move || !Awaited::is_any() && !asked.swap(true, Ordering::Relaxed));
    exit(arguments.execute(&cancel).map_err(|failure| vec![failure]))
}
