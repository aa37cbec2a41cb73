//! Options of the command line that another program hands over, as strings.

use super::CommonArgs;
use super::values::threads;
use crate::target::TargetName;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use std::num::NonZeroUsize;
use stencil_compiler::{Failure, Session, Source, Target};

/// Options as another program hands them over.
#[derive(Debug, Parser)]
#[command(
    name = "options",
    no_binary_name = true,
    disable_help_flag = true,
    override_usage = "the options of `stencilc run` that describe a compile, --target and --seed"
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
    /// The session and the target that the options describe, for a source at hand.
    ///
    /// # Errors
    /// Options that exclude each other, or measured schedules that can't be read.
    pub fn session(&self, source: &Source) -> Result<(Session, Target), Failure> {
        let session = self.common.session(source)?;
        let target = self.target(&session, source)?;
        Ok((session, target))
    }

    /// Checks the options before there is a program. Measured schedules are not read, because each
    /// is for one program.
    ///
    /// # Errors
    /// Options that exclude each other, or one that is wrong for every program.
    pub fn check(&self) -> Result<(), Failure> {
        let session = self.common.unmeasured()?;
        self.target(&session, &Source::new("program.stencil", ""))?;
        session.check_options(Target::Reference, &[])
    }

    fn target(&self, session: &Session, source: &Source) -> Result<Target, Failure> {
        let (target, _) = self.target.target(session, source, (self.seed, self.threads))?;
        if self.seed.is_some() && !matches!(target, Target::Simulator { .. }) {
            return Err(Failure::user("--seed is for the simulator; add --target sim"));
        }
        Ok(target)
    }
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
