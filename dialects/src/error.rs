//! Errors of dialects and passes: a place in the source, a sentence, and whose fault it is.

pub use crate::decline::Decline;
use std::fmt::{self, Display, Formatter};

/// A position in a source file; lines and columns count from 1, and line 0 means unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// File name as it was given.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
}

impl Place {
    /// Nowhere in particular.
    pub fn unknown() -> Self {
        Self::default()
    }

    /// A file as a whole.
    pub fn file(name: &str) -> Self {
        Self { file: name.to_owned(), line: 0, column: 0 }
    }
}

impl Display for Place {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        match (self.file.as_str(), self.line) {
            ("", _) => write!(formatter, "<unknown>"),
            (file, 0) => write!(formatter, "{file}"),
            (file, line) => write!(formatter, "{file}:{line}:{}", self.column),
        }
    }
}

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The input is wrong or asks for what is not there.
    User,
    /// The input is right, and a strategy does not take it under this schedule.
    Declined(Decline),
    /// The compiler is wrong.
    Internal,
}

/// A failure of a dialect or a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Whose fault it is.
    pub fault: Fault,
    /// Where.
    pub place: Place,
    /// What is wrong and what to do, in a sentence.
    pub message: String,
    /// More places that matter.
    pub notes: Vec<(Place, String)>,
}

impl Error {
    /// A wrong input at a place.
    pub fn new(place: Place, message: impl Into<String>) -> Self {
        Self { fault: Fault::User, place, message: message.into(), notes: Vec::new() }
    }

    /// A wrong input without a place.
    pub fn user(message: impl Into<String>) -> Self {
        Self::new(Place::unknown(), message)
    }

    /// A schedule that a strategy does not take, without a place.
    pub fn declined(reason: Decline, message: impl Into<String>) -> Self {
        Self { fault: Fault::Declined(reason), ..Self::user(message) }
    }

    /// The same error at a place.
    pub fn at(self, place: Place) -> Self {
        Self { place, ..self }
    }

    /// Whether the compiler is wrong.
    pub fn is_internal(&self) -> bool {
        self.fault == Fault::Internal
    }

    /// Whether a strategy declined a schedule.
    pub fn is_decline(&self) -> bool {
        matches!(self.fault, Fault::Declined(_))
    }

    /// A fault of the compiler.
    pub fn internal(message: impl Into<String>) -> Self {
        Self { fault: Fault::Internal, ..Self::user(message) }
    }

    /// The same error with one more place.
    pub fn with_note(mut self, place: Place, message: impl Into<String>) -> Self {
        self.notes.push((place, message.into()));
        self
    }
}

impl Display for Error {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        if self.place != Place::unknown() {
            write!(formatter, "{}: ", self.place)?;
        }
        if self.fault == Fault::Internal {
            write!(formatter, "internal fault: ")?;
        }
        write!(formatter, "{}", self.message)?;
        for (place, note) in &self.notes {
            write!(formatter, "\n  note: {place}: {note}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
