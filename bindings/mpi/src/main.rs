//! The tool `stencilc-mpi`: see the crate's own words.

#![forbid(unsafe_code)]

use mpi::traits::Communicator;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use stencil_compiler::{Devices, Failure};
use stencil_mpi::MpiLink;
use stencil_runtime::ranks::PATIENCE;
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
    let arguments = match Cli::read() {
        Ok(arguments) => arguments,
        // All processes have the same arguments.
        Err(_) if world.rank() > 0 => return ExitCode::from(1),
        Err(error) => return usage(&error),
    };
    let devices = Devices::along(usize::try_from(world.size()).unwrap_or(1));
    let mut link = MpiLink::new(&world, PATIENCE);
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
