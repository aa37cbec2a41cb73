//! `cargo xtask`: the commands that set this project up, show what it does, and check it.
//!
//! Needs nothing but Rust: no LLVM, no Python. Whatever else the other crates need, `setup`
//! installs, and both `demo` and `test` begin with it.

#![forbid(unsafe_code)]

mod c_host;
mod demo;
mod gallery;
mod install;
mod links;
mod picture;
mod project;
mod python;
mod rules;
mod same_code;
mod setup;
mod snapshots;
mod stages;

use anyhow::{Result, bail};
use project::Project;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  setup                          install what is missing: LLVM 22, ptxas, libdevice, NumPy
  demo                           set up, build, then compile, run, check and draw the heat equation
  gallery                        set up, build, then run the programs of docs/gallery.md and draw \
  them
  install --prefix DIR [--runtime]
                                 put the libraries for C programs and their headers into DIR;
                                 --runtime leaves out the compiler, and needs no LLVM
  wheel                          build the Python package into target/wheels
  test [--keep-going] [STAGE]... set up, then every check that a change must pass, or only the
                                 stages named: {stages}
  same-code REVISION [--stencilc PATH] [--all] [FILTER]
                                 compare generated code and chosen schedules with those of another
                                 revision, for the programs whose names contain FILTER; REVISION's
                                 compiler is built once and kept, or is the binary PATH; --all
                                 takes every combination of element type, fast math and size";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Err(error) = run(&arguments) {
        eprintln!("xtask: {error:#}");
        std::process::exit(1);
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", arguments),
    };
    match (command, rest) {
        ("setup", []) => setup::run(&Project::find()?),
        ("demo", []) => demo::run(&Project::find()?),
        ("gallery", []) => gallery::run(&Project::find()?),
        ("install", _) => install::run(&Project::find()?, rest),
        ("wheel", []) => {
            let project = Project::find()?;
            setup::run(&project)?;
            python::wheel(&project).map(drop)
        }
        ("test", _) => stages::run(&Project::find()?, &stages::Selection::parse(rest)?),
        ("same-code", _) => same_code::run(&Project::find()?, &same_code::Request::parse(rest)?),
        ("help" | "--help" | "-h", []) => {
            println!("{}", USAGE.replace("{stages}", &stages::names().join(" ")));
            Ok(())
        }
        ("setup" | "demo" | "gallery" | "wheel" | "help", [extra, ..]) => {
            bail!("'{command}' takes no '{extra}'")
        }
        _ => bail!(
            "no command '{command}': there are setup, demo, gallery, install, wheel, test, \
             same-code"
        ),
    }
}
