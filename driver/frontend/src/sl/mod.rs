//! SL, the key-value language of *A Language and Optimizing Compiler for Iterative Stencil Loops*,
//! section 4: from text to the same checked program that a `.stencil` file becomes.
//!
//! ```text
//! text --lexer, parser--> tree::File --lower, data, check--> program::Program
//! ```
//!
//! `docs/sl.md` has the grammar and the meaning. The parser never fails. Whatever is not in the
//! grammar is reported with its place.

mod calls;
mod check;
mod convergence;
mod data;
mod expressions;
mod host_names;
pub mod lexer;
mod lower;
mod parser;
mod print;
mod scopes;
mod statements;
mod tree;
mod types;
mod values;
mod variables;

pub use check::{COUNT, DATA, LAYERS, READ, SIZES};

use crate::diagnostics::{self, Diagnostic};
use crate::limits;
use crate::program::Program;
use crate::source::Source;

/// Whether a source is a file of SL: its name ends so.
pub fn is_sl(name: &str) -> bool {
    name.ends_with(".sl")
}

/// The name of the function of a file of SL; none of any other source.
pub fn function_name(source: &Source) -> Option<String> {
    let file = is_sl(&source.name).then(|| parser::parse(source).0)?;
    file.function_name.map(|name| name.node)
}

/// The syntax tree of a file as text, and what is wrong with the syntax.
pub(crate) fn syntax_tree(source: &Source) -> (String, Vec<Diagnostic>) {
    let (file, errors) = parser::parse(source);
    (print::print(&file), errors)
}

/// Reads and checks a file. `defines` are values for sizes.
pub(crate) fn load(
    source: &Source,
    defines: &[(String, i64)],
) -> (Option<Program>, Vec<Diagnostic>) {
    let (file, mut errors) = parser::parse(source);
    if source.text.len() > limits::TEXT {
        return (None, errors); // Nothing of it was read.
    }
    let checked = check::check(&file, source, defines);
    let program = match checked {
        Ok(program) if errors.is_empty() => Some(program),
        Ok(_) => None,
        Err(found) => {
            errors.extend(found);
            None
        }
    };
    if program.is_none() && errors.is_empty() {
        errors.push(Diagnostic::error_without_place(
            "internal fault: the checker refuses this program without saying why",
        ));
    }
    diagnostics::sort(&mut errors);
    (program, errors)
}
