//! `stencil-opt`: runs passes on MLIR. See `stencilc::opt`.

#![forbid(unsafe_code)]

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = stencilc::manual::asked_for(<stencilc::opt::Args as clap::CommandFactory>::command()) {
        return code;
    }
    match stencilc::opt::run(&stencilc::opt::Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprint!("{failure}");
            ExitCode::from(failure.code)
        }
    }
}
