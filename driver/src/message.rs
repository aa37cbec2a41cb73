//! Words to standard error, and exit codes. A standard error that can't be written changes neither
//! the work nor its exit code.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write, stderr};
use std::process::ExitCode;
use stencil_compiler::{Class, Failure, Look};
use stencil_runtime::message::shortened;
use stencil_runtime::standard_output;

/// Writes to standard error, as far as that is possible.
pub fn say(text: impl Display) {
    let _ = stderr().write_all(text.to_string().as_bytes());
}

/// Says how the work failed, if it did, and gives the exit code.
pub fn exit(result: Result<(), Vec<Failure>>) -> ExitCode {
    let failures = result.err().unwrap_or_default();
    let look = look();
    for failure in failures.iter().filter(|failure| failure.class != Class::Unread) {
        say(failure.text(look));
    }
    let codes = failures.iter().map(|failure| failure.class).map(Class::exit_code);
    ExitCode::from(codes.max().unwrap_or(0))
}

/// Says what is wrong with a command line, or gives the help that was asked for.
pub fn usage(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    let short = shortened(&text);
    if error.use_stderr() && short != text {
        say(short);
        return ExitCode::from(1);
    }
    if error.use_stderr() {
        // If even the message can't be printed, the exit code still tells.
        let _ = error.print();
        return ExitCode::from(1);
    }
    let printed = standard_output::write(|_| error.print());
    exit(printed.map_err(|why| vec![unprinted(&why)]))
}

/// The failure of a write to standard output.
pub fn unprinted(why: &io::Error) -> Failure {
    match why.kind() {
        ErrorKind::BrokenPipe => Failure::unread(why),
        _ => Failure::user(why),
    }
}

/// Colours where a person reads, and does not refuse them.
fn look() -> Look {
    if stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        Look::Coloured
    } else {
        Look::Plain
    }
}
