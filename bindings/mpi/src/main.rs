//! The tool `stencilc-mpi`: see the crate's own words.

#![forbid(unsafe_code)]

use mpi::traits::Communicator;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use stencil_compiler::{Devices, Failure, Link, LinkRate};
use stencil_mpi::MpiLink;
use stencil_runtime::ranks::PATIENCE;
use stencil_runtime::standard_output::print;
use stencilc::cli::Cli;
use stencilc::message::{exit, usage};

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: stencil_runtime::allocator::Told = stencil_runtime::allocator::Told;

fn main() -> ExitCode {
    let Some(universe) = mpi::initialize() else {
        let text = "MPI can't be started; start the tool by mpirun or srun";
        return exit(Err(vec![Failure::user(text)]));
    };
    let world = universe.world();
    let devices = Devices::along(usize::try_from(world.size()).unwrap_or(1));
    let mut link = MpiLink::new(&world, PATIENCE);
    if std::env::args().skip(1).eq(["probe"]) {
        return probe(&mut link, devices);
    }
    let arguments = match Cli::read() {
        Ok(arguments) => arguments,
        // All processes have the same arguments.
        Err(_) if world.rank() > 0 => return ExitCode::from(1),
        Err(error) => return usage(&error),
    };
    let cancel = Arc::new(AtomicBool::new(false));
    let ran = arguments.execute_with(&cancel, Some((devices, &mut link)));
    let ran = ran.and_then(|()| link.flush().map_err(|error| Failure::user(error.to_string())));
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            exit(Err(vec![failure]));
            // Ends all other processes, which may wait for this one.
            world.abort(1)
        }
    }
}

/// Measures how fast the first two processes send cells to each other, for STENCILC_LINK.
fn probe(link: &mut MpiLink<'_>, devices: Devices) -> ExitCode {
    if devices.count() < 2 {
        return exit(Err(vec![Failure::user(
            "a probe takes two processes; start it by mpirun -n 2",
        )]));
    }
    let rate = LinkRate::measure(link, devices.count());
    let rate = rate.and_then(|rate| link.flush().map(|()| rate));
    match rate {
        Ok(rate) if link.device() == 0 => match print(format!("{rate}\n").as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => exit(Err(vec![Failure::user(error)])),
        },
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => exit(Err(vec![Failure::user(error)])),
    }
}
