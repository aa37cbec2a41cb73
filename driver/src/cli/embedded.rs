//! Options of the command line that another program hands over, as strings.

use super::CommonArgs;
use super::values::threads;
use crate::devices::within_process;
use crate::target::TargetName;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use std::num::NonZeroUsize;
use stencil_compiler::{DeviceList, Failure, Placement, Session, Source, Target};
use stencil_runtime::windows::DeviceMemory;

/// Options as another program hands them over.
#[derive(Debug, Parser)]
#[command(
    name = "options",
    no_binary_name = true,
    disable_help_flag = true,
    override_usage = "the options of `stencilc run` that describe a compile, --target, --seed and \
                      --threads"
)]
pub struct Embedded {
    #[command(flatten)]
    common: CommonArgs,
    /// What to run on
    #[arg(long, value_enum, default_value = "auto")]
    target: TargetName,
    /// Permute the order in which the simulator runs blocks
    #[arg(long)]
    seed: Option<u64>,
    /// Threads that compute tiles
    #[arg(long, value_parser = threads)]
    threads: Option<NonZeroUsize>,
    /// Device memory for runs out of core, such as 4GiB
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = str::parse::<DeviceMemory>,
        conflicts_with = "devices"
    )]
    device_memory: Option<DeviceMemory>,
}

/// A compile as its options describe it.
pub struct Described {
    /// The session of the compile.
    pub session: Session,
    /// The machine that runs the program.
    pub target: Target,
    /// The devices and the memory of its runs.
    pub placement: Placement,
}

/// Reads options for a program of this name.
///
/// # Errors
/// An option that is unknown, wrong, or of no use here.
pub fn embedded(name: &str, options: &[String]) -> Result<Embedded, Failure> {
    // The name of the program is the one argument without an option.
    let end = ["--".to_owned(), name.to_owned()];
    let arguments = options.iter().chain(&end);
    let read = Embedded::try_parse_from(arguments).map_err(|error| refusal(&error))?;
    if read.common.print_ir_after_all || read.common.timing {
        return Err(Failure::user("--print-ir-after-all and --timing are for stencilc alone"));
    }
    Ok(read)
}

impl Embedded {
    /// What the options describe, for a source at hand.
    ///
    /// # Errors
    /// Options that exclude each other, or measured schedules that can't be read.
    pub fn session(&self, source: &Source) -> Result<Described, Failure> {
        let placement = Placement { devices: self.devices()?, device_memory: self.device_memory };
        let session = self.common.session(source)?.in_windows(self.device_memory.is_some());
        let target = self.target(&session, source)?;
        Ok(Described { session, target, placement })
    }

    /// The devices that share runs; none for one that is not named.
    fn devices(&self) -> Result<Option<DeviceList>, Failure> {
        let Some(list) = &self.common.devices else { return Ok(None) };
        if list.devices.count() == 1 && list.gpus.is_empty() {
            return Ok(None);
        }
        within_process(list)?;
        match processes().filter(|_| list.gpus.is_empty()) {
            None => Ok(Some(list.clone())),
            Some(count) => Err(Failure::user(format!(
                "--devices {list}: {count} processes were started, and each would share its run \
                 with no other one; start one process, name the GPUs of each by their numbers \
                 (0,1), or run the program by stencilc-mpi"
            ))),
        }
    }

    /// Checks the options before there is a program. Measured schedules are not read, because each
    /// is for one program.
    ///
    /// # Errors
    /// Options that exclude each other, or one that is wrong for every program.
    pub fn check(&self) -> Result<(), Failure> {
        self.devices()?;
        let session = self.common.unmeasured()?;
        self.target(&session, &Source::new("program.stencil", ""))?;
        session.check_options(Target::Reference, &[])
    }

    fn target(&self, session: &Session, source: &Source) -> Result<Target, Failure> {
        let (target, _) = self.target.target(session, source, (self.seed, self.threads))?;
        if self.seed.is_some() && !matches!(target, Target::Simulator { .. }) {
            return Err(Failure::user("--seed is for the simulator; add --target sim"));
        }
        let named = self.common.devices.as_ref().and_then(|list| list.gpus.first());
        match (target, named) {
            (Target::Cuda(_), Some(first)) => Ok(Target::Cuda(*first)),
            (_, Some(_)) => Err(Failure::user(
                "--devices names GPUs, and the target is another one; give how many devices there \
                 are, or add --target cuda",
            )),
            (Target::Reference, None) if self.devices()?.is_some() => Err(Failure::user(
                "the reference has one device; add --target cuda, sim or cpu, or leave --devices \
                 out",
            )),
            (Target::Reference, None) if self.device_memory.is_some() => Err(Failure::user(
                "a run out of core is for --target cuda, sim or cpu; add one of them, or leave \
                 --device-memory out",
            )),
            (target, None) => Ok(target),
        }
    }
}

/// How many processes mpirun, srun or torchrun has started, if this is one of several.
fn processes() -> Option<usize> {
    const COUNTS: [&str; 4] =
        ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "WORLD_SIZE"];
    let count = |name: &&str| std::env::var(name).ok()?.parse().ok();
    COUNTS.iter().filter_map(count).find(|count| *count > 1)
}

/// The failure for wrong options. It leaves out the usage of a command, which does not help here.
fn refusal(error: &clap::Error) -> Failure {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let unknown = context(ContextKind::InvalidArg);
    let unknown = unknown.filter(|_| error.kind() == ErrorKind::UnknownArgument);
    let Some(name) = unknown else {
        let text = error.to_string();
        let text = text.split("\n\nUsage").next().unwrap_or_default();
        return Failure::user(text.trim_start_matches("error: ").trim_end());
    };
    let message = format!("there is no option {name}");
    Failure::user(match context(ContextKind::SuggestedArg) {
        Some(near) => format!("{message}; did you mean {near}?"),
        None => {
            let command = Embedded::command();
            let names = command.get_arguments().filter_map(clap::Arg::get_long);
            let names: Vec<_> = names.map(|name| format!("--{name}")).collect();
            format!("{message}; there are {}", names.join(", "))
        }
    })
}
