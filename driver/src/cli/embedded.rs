//! Options of the command line that another program hands over, as strings.

use super::CommonArgs;
use super::values::threads;
use crate::target::TargetName;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use std::num::NonZeroUsize;
use stencil_compiler::{Failure, Session, Source, Target};

#[derive(Debug, Parser)]
#[command(
    name = "options",
    no_binary_name = true,
    disable_help_flag = true,
    override_usage = "the options of `stencilc run` that describe a compile, --target and --seed"
)]
struct Embedded {
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

/// The session and the target that options describe, for a source at hand.
///
/// # Errors
/// An option that is unknown, wrong, or of no use here.
pub fn embedded(source: &Source, options: &[String]) -> Result<(Session, Target), Failure> {
    // The name of the program is the one argument without an option.
    let end = ["--".to_owned(), source.name.clone()];
    let arguments = options.iter().chain(&end);
    let Embedded { common, target, seed, threads } =
        Embedded::try_parse_from(arguments).map_err(|error| refusal(&error))?;
    if common.print_ir_after_all || common.timing {
        return Err(Failure::user("--print-ir-after-all and --timing are for stencilc alone"));
    }
    let session = common.session(source)?;
    let (target, _) = target.target(&session, source, (seed, threads))?;
    if seed.is_some() && !matches!(target, Target::Simulator { .. }) {
        return Err(Failure::user("--seed is for the simulator; add --target sim"));
    }
    Ok((session, target))
}

/// What is said of wrong options; the usage of a command does not help here.
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
