//! What a tool tells its user when it fails, and the exit code that goes with it.

use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;
use stencil_dialects::error::{Error, Fault, Place};
use stencil_frontend::diagnostics::{self, Diagnostic, Look};
use stencil_frontend::source::{Source, Span};

/// A failure, ready to be printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// 1 where the input is wrong, 2 where the compiler is.
    pub code: u8,
    /// The whole message, with the source line where there is one.
    pub text: String,
}

impl Failure {
    /// A wrong input without a place in a source.
    pub fn user(message: impl Display) -> Self {
        Self { code: 1, text: format!("error: {message}\n") }
    }

    /// Diagnostics of the front end.
    pub fn diagnostics(found: &[Diagnostic], source: &Source) -> Self {
        Self { code: 1, text: diagnostics::render(found, source, look()) }
    }

    /// A failure of a dialect or a pass, shown in the source that it points into.
    pub fn in_source(error: &Error, source: &Source) -> Self {
        let (code, message) = match error.fault {
            Fault::User => (1, error.message.clone()),
            Fault::Declined(reason) => (1, format!("declined [{reason}]: {}", error.message)),
            Fault::Internal => (2, format!("internal fault: {}", error.message)),
        };
        let mut diagnostic = match span(&error.place, source) {
            Some(span) => Diagnostic::error(message, span, ""),
            None if error.place == Place::unknown() => Diagnostic::error_without_place(message),
            None => Diagnostic::error_without_place(format!("{}: {message}", error.place)),
        };
        for (place, note) in &error.notes {
            diagnostic = match span(place, source) {
                Some(span) => diagnostic.see(span, note),
                None => diagnostic.note(note),
            };
        }
        if code == 2 {
            diagnostic = diagnostic.note(
                "this is a fault of the compiler, not of the program; please \
                    report it with the input",
            );
        }
        Self { code, text: diagnostics::render(&[diagnostic], source, look()) }
    }
}

impl Display for Failure {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Prints what is wrong with a command line, or the help that was asked for.
pub fn usage(error: &clap::Error) -> ExitCode {
    let printed = error.print();
    ExitCode::from(u8::from(error.use_stderr() || printed.is_err()))
}

/// The word at a place of the source.
fn span(place: &Place, source: &Source) -> Option<Span> {
    if place.file != source.name || place.line == 0 {
        return None;
    }
    let mut start = 0;
    for _ in 1..place.line {
        start += source.text.get(start..)?.find('\n')? + 1;
    }
    let line = source.text.get(start..)?.lines().next().unwrap_or_default();
    let column = line
        .char_indices()
        .nth(place.column.saturating_sub(1))
        .map_or(line.len(), |(offset, _)| offset);
    let rest = line.get(column..).unwrap_or_default();
    let word = rest
        .find(|letter: char| !(letter.is_alphanumeric() || "_.\"@%".contains(letter)))
        .unwrap_or(rest.len())
        .max(1);
    let offset = |at: usize| u32::try_from(start + at).ok();
    Some(Span::new(offset(column)?, offset((column + word).min(line.len().max(column)))?))
}

/// Colours where a person reads, and where they are wanted.
fn look() -> Look {
    use std::io::IsTerminal;
    if std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        Look::Coloured
    } else {
        Look::Plain
    }
}
