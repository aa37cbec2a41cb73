//! One of the two compilers: runs it on a case and, for a revision that stays, keeps its answers.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::cases::Case;
use crate::project::Project;

/// A compiler, and how it is run.
pub struct Compiler {
    program: PathBuf,
    libdevice: PathBuf,
    /// Where answers are kept from call to call.
    answers: Option<PathBuf>,
}

/// The answer of a compiler to a case.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Standard output of a compile that succeeded.
    Text(String),
    /// The compile failed.
    Declined { exit_code: i32, message: String },
}

impl Output {
    /// Changes the text of a compile that succeeded.
    pub fn map(self, change: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Text(text) => Self::Text(change(&text)),
            declined => declined,
        }
    }
}

impl Compiler {
    /// The compiler at a path.
    pub fn new(project: &Project, program: PathBuf) -> Self {
        let libdevice = project.cuda().join("nvvm/libdevice/libdevice.10.bc");
        Self { program, libdevice, answers: None }
    }

    /// The same compiler, whose answers are kept in a folder.
    pub fn with_answers(self, folder: PathBuf) -> Self {
        Self { answers: Some(folder), ..self }
    }

    /// Compiles a case's program with these options.
    ///
    /// # Errors
    /// When the compiler can't be started, or its answer not be kept.
    pub fn compile(&self, case: &Case, options: &[String]) -> Result<Output> {
        let Some(answers) = &self.answers else {
            return self.run(case, options);
        };
        let mut hasher = DefaultHasher::new();
        (&case.text, options).hash(&mut hasher);
        let path = answers.join(format!("{:016x}", hasher.finish()));
        if let Some(known) = std::fs::read_to_string(&path).ok().and_then(|text| parse(&text)) {
            return Ok(known);
        }
        let output = self.run(case, options)?;
        keep(&path, &output)?;
        Ok(output)
    }

    /// The rate that the model predicts for the chosen schedule, from the compiler's report.
    ///
    /// # Errors
    /// When the compiler can't be started.
    pub fn predicted_rate(&self, case: &Case) -> Result<String> {
        let mut command = self.command(case, &case.options);
        let output = command.args(["--emit=plan", "--report"]).output()?;
        let report = String::from_utf8_lossy(&output.stderr);
        Ok(rate(&report).unwrap_or("unknown").to_owned())
    }

    fn command(&self, case: &Case, options: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg(&case.program)
            .args(options)
            .env("STENCILC_LIBDEVICE", &self.libdevice)
            // Schedules that were measured on this machine are no part of a revision.
            .env_remove("STENCILC_SCHEDULES");
        command
    }

    fn run(&self, case: &Case, options: &[String]) -> Result<Output> {
        let output = self
            .command(case, options)
            .output()
            .with_context(|| format!("{} can't be started", self.program.display()))?;
        if output.status.success() {
            return Ok(Output::Text(String::from_utf8_lossy(&output.stdout).into_owned()));
        }
        let said = String::from_utf8_lossy(&output.stderr);
        // A signal leaves no exit code; none of the compiler's own is negative.
        let exit_code = output.status.code().unwrap_or(-1);
        Ok(Output::Declined { exit_code, message: said.lines().next().unwrap_or_default().into() })
    }
}

/// Writes an answer: its exit code in the first line, then the text.
fn keep(path: &Path, output: &Output) -> Result<()> {
    let text = match output {
        Output::Text(text) => format!("0\n{text}"),
        Output::Declined { exit_code, message } => format!("{exit_code}\n{message}"),
    };
    // Renamed into place, so that an answer is never seen half-written.
    let thread = std::thread::current().id();
    let partial = path.with_extension(format!("{}-{thread:?}", std::process::id()));
    std::fs::write(&partial, text)
        .and_then(|()| std::fs::rename(&partial, path))
        .with_context(|| format!("keeping {}", path.display()))
}

fn parse(text: &str) -> Option<Output> {
    let (exit_code, text) = text.split_once('\n')?;
    Some(match exit_code.parse().ok()? {
        0 => Output::Text(text.to_owned()),
        exit_code => Output::Declined { exit_code, message: text.to_owned() },
    })
}

/// The rate in the first line of a report's table of predictions.
fn rate(report: &str) -> Option<&str> {
    const COLUMN: &str = "GCells/s";
    let mut lines = report.lines().skip_while(|line| !line.contains(COLUMN));
    // Numbers are flush right beneath their heading.
    let end = lines.next()?.find(COLUMN)? + COLUMN.len();
    lines.next()?.get(..end)?.split_whitespace().next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_read_back_as_they_were_kept() {
        let path = std::env::temp_dir().join(format!("same-code-{}", std::process::id()));
        let declined = Output::Declined { exit_code: 1, message: "error: no".into() };
        for output in [Output::Text("a\nb\n".into()), declined] {
            keep(&path, &output).unwrap();
            assert_eq!(parse(&std::fs::read_to_string(&path).unwrap()), Some(output));
        }
        std::fs::remove_file(path).unwrap();
        assert_eq!(parse("half"), None);
    }

    #[test]
    fn the_rate_stands_under_its_heading() {
        let report = "x: strategy a\npredicted:\n\
                      strategy  tile per thread  steps  GCells/s  computed\n\
                      a          2x2        1x4      4      58.5      1.1x\n\
                      b  1x1  1x1 1 7.0 1.2x\n";
        assert_eq!(rate(report), Some("58.5"));
        assert_eq!(rate("nothing"), None);
    }
}
