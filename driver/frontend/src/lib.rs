//! The stencil language: from text to a checked [`program::Program`], and what it means.
//!
//! ```text
//! text --lexer, parser--> ast::File --check--> program::Program --oracle--> fields
//! ```
//!
//! Invariants: the parser never fails (it returns a tree and diagnostics); a checked program has
//! a meaning for all sizes that pass its checks; the oracle shares no code with any compiler
//! pass; nothing here depends on LLVM or MLIR.

#![forbid(unsafe_code)]

mod affine;
pub mod ast;
pub mod check;
pub mod diagnostics;
mod excerpt;
pub mod lexer;
pub mod limits;
pub mod oracle;
pub mod parser;
pub mod print;
pub mod program;
pub mod sizes;
pub mod sl;
pub mod source;
mod suggest;

use diagnostics::Diagnostic;
use program::Program;
use source::Source;

/// Reads and checks a source: SL where its name ends with `.sl`. `defines` are values for params
/// that override those of the file.
///
/// A program comes only without errors; the diagnostics are sorted by place.
pub fn load(source: &Source, defines: &[(String, i64)]) -> (Option<Program>, Vec<Diagnostic>) {
    if sl::is_sl(&source.name) {
        return sl::load(source, defines);
    }
    let (file, mut diagnostics) = parser::parse(source);
    if source.text.len() > limits::TEXT {
        return (None, diagnostics); // Nothing of it was read.
    }
    match check::check(&file, source, defines) {
        Ok(program) if diagnostics.is_empty() => (Some(program), diagnostics),
        Ok(_) => (None, diagnostics),
        Err(found) => {
            diagnostics.extend(found);
            if diagnostics.is_empty() {
                diagnostics.push(Diagnostic::error_without_place(
                    "internal fault: the checker refuses this program without saying why",
                ));
            }
            diagnostics::sort(&mut diagnostics);
            (None, diagnostics)
        }
    }
}

/// Whether a program can't declare a name, because the language has it.
pub fn is_reserved(name: &str) -> bool {
    lexer::KEYWORDS.iter().any(|(word, _)| *word == name) || check::is_reserved(name)
}

/// The syntax tree of a source as text, in SL where its name ends with `.sl`.
///
/// # Errors
/// The faults of the syntax.
pub fn syntax_tree(source: &Source) -> Result<String, Vec<Diagnostic>> {
    let (text, diagnostics) = if sl::is_sl(&source.name) {
        sl::syntax_tree(source)
    } else {
        let (file, diagnostics) = parser::parse(source);
        (print::print(&file), diagnostics)
    };
    if diagnostics.is_empty() { Ok(text) } else { Err(diagnostics) }
}

#[cfg(test)]
mod tests;
