//! `stencil-opt`: runs passes on MLIR. See `stencilc::opt`.

#![forbid(unsafe_code)]

use clap::{CommandFactory, Parser};
use std::process::ExitCode;
use stencilc::message::usage;
use stencilc::opt::{self, Args};

fn main() -> ExitCode {
    if let Some(code) = stencilc::manual::asked_for(Args::command()) {
        return code;
    }
    let arguments = match Args::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    match opt::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprint!("{failure}");
            ExitCode::from(failure.code)
        }
    }
}
