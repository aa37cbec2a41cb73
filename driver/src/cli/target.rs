//! `--target`: what a program runs on.

use clap::ValueEnum;
use std::num::NonZeroUsize;
use stencil_compiler::Target;

/// A target, as a word of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TargetName {
    /// CUDA where there is a device, else the reference
    Auto,
    /// The oracle: a plain interpreter of the program
    Reference,
    /// A simulated GPU: every thread executed and judged
    Sim,
    /// The processor of this machine
    Cpu,
    /// A CUDA device
    Cuda,
}

impl TargetName {
    /// The target; the seed is for the simulator, the threads for the processor.
    pub(crate) fn target(self, seed: Option<u64>, threads: Option<NonZeroUsize>) -> Target {
        match self {
            Self::Auto => Target::available(),
            Self::Reference => Target::Reference,
            Self::Sim => Target::Simulator { seed },
            Self::Cpu => Target::Cpu { threads },
            Self::Cuda => Target::Cuda(0),
        }
    }
}
