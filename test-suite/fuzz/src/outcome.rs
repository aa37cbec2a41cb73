//! Outcomes of damaged inputs, and the places of the undamaged ones.

use crate::check::Fault;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// The outcome of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is valid, as far as it was taken.
    Accepted(&'static str),
    /// The tools say what is wrong with it.
    Refused,
    /// A failure.
    Failed(Fault, String),
}

impl Outcome {
    /// As one line: what it counts as, and the message of a failure.
    pub fn line(&self) -> String {
        match self {
            Self::Accepted(how) => format!("accepted {how}"),
            Self::Refused => "refused".to_owned(),
            Self::Failed(fault, message) => {
                format!("failed {fault:?} {}", message.lines().next().unwrap_or_default())
            }
        }
    }
}

/// Runs a check; a panic is a failure.
pub fn attempt(check: impl FnOnce() -> Result<Outcome, (Fault, String)>) -> Outcome {
    match catch_unwind(AssertUnwindSafe(check)) {
        Ok(Ok(outcome)) => outcome,
        Ok(Err((fault, message))) => Outcome::Failed(fault, message),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or(panic.downcast_ref::<&str>().copied());
            Outcome::Failed(Fault::Panic, text.unwrap_or("a panic without a message").to_owned())
        }
    }
}

/// An error of the tools: fine, unless it is internal or says nothing.
///
/// # Errors
/// The failure.
pub fn judge(internal: bool, message: &str) -> Result<Outcome, (Fault, String)> {
    if internal || message.trim().is_empty() {
        Err((Fault::Internal, message.to_owned()))
    } else {
        Ok(Outcome::Refused)
    }
}

fn suite() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The texts of a folder of the test suite, those of its folders too, by name.
///
/// # Errors
/// When one can't be read.
pub fn folder(name: &str, extension: &str) -> std::io::Result<Vec<String>> {
    let (mut folders, mut files) = (vec![suite().join(name)], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                files.push(path);
            }
        }
    }
    files.sort();
    files.iter().map(std::fs::read_to_string).collect()
}

/// The blocks of a document in `docs` that are marked with a language, or with one that begins so.
///
/// # Errors
/// When the document can't be read.
pub fn documents(name: &str, language: &str) -> std::io::Result<Vec<String>> {
    let text = std::fs::read_to_string(suite().join("../docs").join(name))?;
    let blocks = text.split("```").skip(1).step_by(2);
    let marked = blocks.filter(|block| block.starts_with(language));
    Ok(marked.filter_map(|block| Some(block.split_once('\n')?.1.to_owned())).collect())
}
