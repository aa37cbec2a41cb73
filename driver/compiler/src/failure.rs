//! The one error of this crate: messages with their places, and whose fault they are.

use crate::written::Written;
use std::fmt::{self, Display, Formatter};
use stencil_dialects::error::{Decline, Error, Fault, Place};
use stencil_frontend::diagnostics::{self, Diagnostic, Look};
use stencil_frontend::oracle::OracleError;
use stencil_frontend::source::{Source, Span};
use stencil_runtime::cuda::CudaError;
use stencil_runtime::execute::ExecuteError;
use stencil_runtime::message::shortened;
use stencil_simulator::error::Problem;
use stencil_simulator::{is_without_memory, simulation_error};

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The input is wrong or asks for what is not there.
    Input,
    /// There is no such device, or it failed.
    Device,
    /// The compiler is wrong.
    Internal,
    /// The caller has ended the work.
    Cancelled,
    /// The machine or the device has too little memory for a run.
    Memory,
    /// The reader of standard output has closed it. No message is printed.
    Unread,
}

impl Class {
    /// The exit code of a tool that fails so.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Input | Self::Device | Self::Cancelled | Self::Memory | Self::Unread => 1,
            Self::Internal => 2,
        }
    }
}

/// One finding as plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Where in the source, if anywhere.
    pub place: Option<Place>,
    /// What is wrong.
    pub text: String,
    /// Other places that matter, facts and remedies.
    pub notes: Vec<(Option<Place>, String)>,
}

/// Why a compile or a run failed. It displays as text with the source lines, without colours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Whose fault it is.
    pub class: Class,
    /// The reason for which a strategy does not take the schedule, if one does not.
    pub decline: Option<Decline>,
    /// Never empty.
    diagnostics: Vec<Diagnostic>,
    /// The source that the diagnostics point into.
    source: Option<Source>,
}

impl std::error::Error for Failure {}

impl Failure {
    /// A wrong input without a place in a source.
    pub fn user(message: impl Display) -> Self {
        Self::of(Class::Input, message)
    }

    /// A fault of the compiler.
    pub fn internal(message: impl Display) -> Self {
        Self::of(Class::Internal, format!("internal fault: {message}"))
    }

    /// The caller has ended the work.
    pub fn cancelled(message: impl Display) -> Self {
        Self::of(Class::Cancelled, message)
    }

    /// The machine or the device has too little memory.
    pub(crate) fn memory(message: impl Display) -> Self {
        Self::of(Class::Memory, message)
    }

    /// Nobody reads the output.
    pub fn unread(message: impl Display) -> Self {
        Self::of(Class::Unread, message)
    }

    /// A run that failed, of a caller who has asked for its end or not.
    pub(crate) fn of_run(error: &ExecuteError, cancelled: bool) -> Self {
        match (simulation_error(error), error) {
            (Some(fault), _) => Self::of(
                Class::Internal,
                format!("the simulator found a fault in compiled code\n{fault}"),
            ),
            (None, ExecuteError::Cancelled(_)) => Self::cancelled(error),
            (None, ExecuteError::Results(failure)) => match failure.downcast_ref::<Self>() {
                Some(failure) => failure.clone(),
                None => Self::user(error),
            },
            // A simulated launch ends within.
            (None, _) if cancelled => Self::cancelled(error),
            (None, _) if error.lacks_memory() || is_without_memory(error) => Self::memory(error),
            (None, ExecuteError::Stuck(_)) => Self::of(Class::Internal, error),
            (None, ExecuteError::Target(target)) if target.is::<CudaError>() => Self::device(error),
            (None, _) => Self::user(error),
        }
    }

    /// There is no such device, or it failed.
    pub(crate) fn device(message: impl Display) -> Self {
        Self::of(Class::Device, message)
    }

    /// The same of a source, where some problems are its author's fault: all of kernels written by
    /// hand; of point functions in MLIR a division by zero and the read of a cell that does not
    /// exist; of affine loops a division by zero and a loop whose iterations are said to be
    /// parallel and touch one cell.
    pub(crate) fn of_source(error: &ExecuteError, cancelled: bool, written: Written) -> Self {
        let author = |problem| match written {
            Written::Program => false,
            Written::Kernels => true,
            Written::Nest => matches!(problem, Problem::DivisionByZero | Problem::Race),
            Written::Functions => {
                matches!(problem, Problem::DivisionByZero | Problem::OutOfBounds)
            }
        };
        match (simulation_error(error), error) {
            (Some(fault), _) if author(fault.problem) => Self::user(fault),
            (None, ExecuteError::Stuck(_)) if written == Written::Kernels => Self::user(error),
            _ => Self::of_run(error, cancelled),
        }
    }

    /// A run of the reference that failed.
    pub(crate) fn of_oracle(error: &OracleError, source: &Source) -> Self {
        match error {
            OracleError::Cancelled(_) => Self::cancelled(error),
            OracleError::Memory(_) => Self::memory(error),
            OracleError::NotFinite { span: Some(span), .. } => {
                let found = Diagnostic::error(error.to_string(), *span, "this value");
                Self::diagnostics(vec![found], source)
            }
            _ => Self::user(error),
        }
    }

    pub(crate) fn of(class: Class, message: impl Display) -> Self {
        let diagnostic = Diagnostic::error_without_place(shortened(&message.to_string()));
        Self { class, decline: None, diagnostics: vec![diagnostic], source: None }
    }

    /// Diagnostics of the front end. A program is never refused without one.
    pub fn diagnostics(found: Vec<Diagnostic>, source: &Source) -> Self {
        if found.is_empty() {
            return Self::in_source(
                &Error {
                    place: Place::file(&source.name),
                    ..Error::internal("the program is refused without a reason")
                },
                source,
            );
        }
        Self {
            class: Class::Input,
            decline: None,
            diagnostics: found,
            source: Some(source.clone()),
        }
    }

    /// A failure of a dialect or a pass, shown in the source that it points into.
    pub fn in_source(error: &Error, source: &Source) -> Self {
        let text = shortened(&error.message);
        let (class, decline, message) = match error.fault {
            Fault::User => (Class::Input, None, text),
            Fault::Declined(reason) => {
                (Class::Input, Some(reason), format!("declined [{reason}]: {text}"))
            }
            Fault::Internal => (Class::Internal, None, format!("internal fault: {text}")),
        };
        let mut diagnostic = match span(&error.place, source) {
            Some(span) => Diagnostic::error(message, span, ""),
            None if error.place == Place::unknown() => Diagnostic::error_without_place(message),
            None => Diagnostic::error_without_place(format!("{}: {message}", error.place)),
        };
        for (place, note) in &error.notes {
            diagnostic = match span(place, source) {
                Some(span) => diagnostic.see(span, shortened(note)),
                None => diagnostic.note(shortened(note)),
            };
        }
        if class == Class::Internal {
            diagnostic = diagnostic.note(
                "this is a fault of the compiler, not of the program; please \
                    report it with the input",
            );
        }
        Self { class, decline, diagnostics: vec![diagnostic], source: Some(source.clone()) }
    }

    /// The same with one more fact.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        if let Some(last) = self.diagnostics.pop() {
            self.diagnostics.push(last.note(text));
        }
        self
    }

    /// The findings as plain data.
    pub fn messages(&self) -> Vec<Message> {
        let place = |span: Span| {
            let source = self.source.as_ref()?;
            let place = source.place(span.start);
            Some(Place { file: source.name.clone(), line: place.line, column: place.column })
        };
        let message = |diagnostic: &Diagnostic| {
            let labels = diagnostic.labels.iter().filter(|label| !label.message.is_empty());
            let labels = labels.map(|label| (place(label.span), label.message.clone()));
            let notes = diagnostic.notes.iter().map(|note| (None, note.clone()));
            Message {
                place: diagnostic.place().and_then(place),
                text: diagnostic.message.clone(),
                notes: labels.chain(notes).collect(),
            }
        };
        self.diagnostics.iter().map(message).collect()
    }

    /// The whole text, with the source lines where there are any.
    pub fn text(&self, look: Look) -> String {
        if let Some(source) = &self.source {
            return diagnostics::render(&self.diagnostics, source, look);
        }
        let mut text = String::new();
        for diagnostic in &self.diagnostics {
            text += &format!("error: {}\n", diagnostic.message);
            for note in &diagnostic.notes {
                text += &format!("  = {note}\n");
            }
        }
        text
    }
}

impl Display for Failure {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        formatter.write_str(self.text(Look::Plain).trim_end())
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use stencil_runtime::array::{Array, Element};
    use stencil_runtime::watch::Stuck;

    #[test]
    fn a_wait_that_does_not_end_is_a_fault_of_the_compiler() {
        let buffer = "flags of f".to_owned();
        let stuck = Stuck { buffer, block: 2, flag: 1, wanted: 9, found: Some(5) };
        let failure = Failure::of_run(&ExecuteError::Stuck(stuck), false);
        assert_eq!((failure.class, failure.class.exit_code()), (Class::Internal, 2));
        let text = failure.to_string();
        assert!(text.starts_with("error: block 2 waited in vain for flag 1 of `flags"), "{text}");
        let failure = Failure::of_run(&ExecuteError::MissingInput("A".to_owned()), false);
        assert_eq!((failure.class, failure.class.exit_code()), (Class::Input, 1));
        let array = Array::zeros(Element::F64, &[1 << 40, 1 << 40]).unwrap_err();
        let failure = Failure::of_run(&ExecuteError::Array(array), false);
        assert_eq!((failure.class, failure.class.exit_code()), (Class::Memory, 1));
        let array = Array::zeros(Element::F64, &[1 << 40, 1 << 40]).unwrap_err();
        let source = Source::new("a.stencil", "");
        assert_eq!(Failure::of_oracle(&array.into(), &source).class, Class::Memory);
    }

    #[test]
    fn no_failure_is_silent() {
        let source = Source::new("a.stencil", "");
        let failure = Failure::diagnostics(Vec::new(), &source);
        assert_eq!(failure.class.exit_code(), 2);
        let text = failure.to_string();
        assert!(
            text.starts_with(
                "error: a.stencil: internal fault: the program is refused without a reason"
            ),
            "{text}"
        );
    }

    #[test]
    fn messages_have_places_and_notes() {
        let source = Source::new("a.mlir", "one\ntwo three\n");
        let place = |line, column| Place { file: "a.mlir".to_owned(), line, column };
        let error = Error::new(place(2, 5), "wrong")
            .with_note(place(1, 1), "because")
            .with_note(Place::unknown(), "help");
        let message = Message {
            place: Some(place(2, 5)),
            text: "wrong".to_owned(),
            notes: vec![(Some(place(1, 1)), "because".to_owned()), (None, "help".to_owned())],
        };
        let failure = Failure::in_source(&error, &source);
        assert_eq!(failure.messages(), [message]);
        assert!(failure.to_string().contains("a.mlir:2:5"), "{failure}");
    }
}
