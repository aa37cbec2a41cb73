//! `stencilc`: compiles and runs stencil programs. See `stencilc::cli`.

#![forbid(unsafe_code)]

use clap::CommandFactory;
use std::process::ExitCode;
use stencilc::cli::Cli;
use stencilc::message::usage;

fn main() -> ExitCode {
    if let Some(code) = stencilc::manual::asked_for(Cli::command()) {
        return code;
    }
    let arguments = match Cli::read() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    // The first Ctrl-C ends a run in order; a run that does not listen ends at the second.
    let _ = ctrlc::set_handler(stencilc::run::cancel);
    match arguments.execute() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprint!("{failure}");
            ExitCode::from(failure.code)
        }
    }
}
