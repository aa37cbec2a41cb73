//! `--target`: what a program runs on.

use clap::ValueEnum;
use std::num::NonZeroUsize;
use stencil_compiler::{Failure, Session, Source, Target};

/// A target, as a word of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TargetName {
    /// CUDA where there is a device, else the processor
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
    /// The word.
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The target of a source, and why where the word leaves it open. The seed is for the simulator
    /// alone, the threads for the processor.
    pub(crate) fn target(
        self,
        session: &Session,
        source: &Source,
        (seed, threads): (Option<u64>, Option<NonZeroUsize>),
    ) -> Result<(Target, Option<String>), Failure> {
        let (target, why) = match self {
            Self::Auto => {
                let (target, why) = session.usual_target(source);
                let name = match target {
                    Target::Reference => Self::Reference,
                    Target::Simulator { .. } => Self::Sim,
                    Target::Cpu { .. } => Self::Cpu,
                    Target::Cuda(_) => Self::Cuda,
                };
                (target, Some(format!("target {}, {why}", name.name())))
            }
            Self::Reference => (Target::Reference, None),
            Self::Sim => (Target::Simulator { seed }, None),
            Self::Cpu => (Target::Cpu { threads: None }, None),
            Self::Cuda => (Target::Cuda(0), None),
        };
        match target {
            Target::Cpu { .. } => Ok((Target::Cpu { threads }, why)),
            _ if threads.is_some() => Err(Failure::user(
                "--threads is for the processor; add --target cpu or leave it out",
            )),
            _ => Ok((target, why)),
        }
    }
}
