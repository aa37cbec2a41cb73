//! MLIR's diagnostics as plain data, and source positions.

use super::identifier;
use crate::error::{Error, Place};
use melior::Context;
use melior::diagnostic::DiagnosticSeverity;
use melior::ir::Location;
use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;

/// One message of MLIR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error, warning, remark or note.
    pub severity: Severity,
    /// Where.
    pub place: Place,
    /// What.
    pub message: String,
    /// Attached notes.
    pub notes: Vec<Diagnostic>,
}

/// How bad a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The input is refused.
    Error,
    /// The input is accepted.
    Warning,
    /// More about another diagnostic.
    Note,
    /// Something worth knowing.
    Remark,
}

/// Runs `body` and collects every diagnostic that MLIR emits meanwhile.
pub fn capture<R>(context: &Context, body: impl FnOnce() -> R) -> (R, Vec<Diagnostic>) {
    let collected = Rc::new(RefCell::new(Vec::new()));
    let sink = Rc::clone(&collected);
    let handler = context.attach_diagnostic_handler(move |diagnostic| {
        sink.borrow_mut().push(read_diagnostic(&diagnostic));
        true
    });
    let result = body();
    context.detach_diagnostic_handler(handler);
    let diagnostics = collected.borrow_mut().drain(..).collect();
    (result, diagnostics)
}

fn read_diagnostic(diagnostic: &melior::diagnostic::Diagnostic) -> Diagnostic {
    Diagnostic {
        severity: match diagnostic.severity() {
            DiagnosticSeverity::Error => Severity::Error,
            DiagnosticSeverity::Warning => Severity::Warning,
            DiagnosticSeverity::Note => Severity::Note,
            DiagnosticSeverity::Remark => Severity::Remark,
        },
        place: place(diagnostic.location()),
        message: message(diagnostic),
        notes: (0..diagnostic.note_count())
            .filter_map(|index| diagnostic.note(index).ok())
            .map(|note| read_diagnostic(&note))
            .collect(),
    }
}

/// The source position of a location; the innermost one of fused, named and call-site locations.
pub fn place(location: Location) -> Place {
    if location.is_file_line_col_range() {
        Place {
            file: identifier(location.file_line_col_range_filename()).unwrap_or("-").to_owned(),
            line: location.file_line_col_range_start_line(),
            column: location.file_line_col_range_start_column(),
        }
    } else if location.is_name() {
        place(location.name_child_location())
    } else if location.is_call_site() {
        place(location.call_site_callee())
    } else if location.is_fused() && location.fused_num_locations() > 0 {
        place(location.fused_location(0))
    } else {
        Place::unknown()
    }
}

/// The first error among MLIR's diagnostics, the others as its notes.
pub fn first_error(diagnostics: Vec<Diagnostic>) -> Option<Error> {
    let mut errors =
        diagnostics.into_iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let first = errors.next()?;
    let mut error = Error::new(first.place, first.message);
    error.notes.extend(first.notes.into_iter().map(|note| (note.place, note.message)));
    error.notes.extend(errors.map(|other| (other.place, other.message)));
    Some(error)
}

/// A diagnostic's sentence; where it quotes what is not UTF-8, the part before that.
fn message(diagnostic: &melior::diagnostic::Diagnostic) -> String {
    let mut text = String::new();
    if write!(text, "{diagnostic}").is_err() {
        text.push_str("(bytes that are not UTF-8)");
    }
    text
}
