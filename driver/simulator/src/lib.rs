//! Executes kernels of the gpu level, and functions of the affine level, without a GPU. Every
//! error names the operation and its place.

#![forbid(unsafe_code)]

mod argument;
pub mod bands;
mod clock;
mod counters;
pub mod error;
mod launch;
mod machine;
mod marks;
mod mask;
mod memory;
pub mod mutate;
pub mod nest;
mod program;
mod report;
pub mod series;
mod simulator;
mod traffic;
mod translate;
mod value;

pub use marks::mark_applies;
pub use report::{Counts, Flops, KernelReport, Report};
pub use simulator::{
    BlockHook, Options, Settings, Simulator, SimulatorError, is_without_memory, simulation_error,
};
pub use traffic::Traffic;
