//! `stencilc`: compiles and runs stencil programs. See `stencilc::cli`.

#![forbid(unsafe_code)]

use clap::{CommandFactory, Parser};
use std::process::ExitCode;
use stencilc::cli::Cli;

fn main() -> ExitCode {
    if let Some(code) = stencilc::manual::asked_for(Cli::command()) {
        return code;
    }
    match Cli::parse().execute() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprint!("{failure}");
            ExitCode::from(failure.code)
        }
    }
}
