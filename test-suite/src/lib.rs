//! Runs the built tools the way a user does: in a folder of its own, with what they print, their
//! exit code and the files they leave behind.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

pub mod timing;

/// The folder `test-suite`.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The files of a folder of the test suite with an extension, by name.
///
/// # Panics
/// When the folder can't be read.
pub fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap_or_else(|error| panic!("{folder}: {error}")).path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

/// A built tool, which lies two folders above the test's own binary.
///
/// # Panics
/// When it is not there: the tools are no dependency of the tests and must be built before.
pub fn tool(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap_or_else(|error| panic!("{error}"));
    let built =
        test.ancestors().nth(2).map(|folder| folder.join(name)).filter(|path| path.exists());
    built.unwrap_or_else(|| panic!("{name} is not built: run `cargo build --release` first"))
}

/// A folder to run tools in, gone when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
}

/// The outcome of a run of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The exit code; none after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Names of the files that were not there before the run, beneath the folder.
    pub new_files: Vec<String>,
}

impl Scratch {
    /// An empty folder.
    ///
    /// # Panics
    /// When it can't be made.
    #[expect(clippy::new_without_default, reason = "makes a folder")]
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap_or_else(|error| panic!("{error}")) }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file.
    ///
    /// # Panics
    /// When it can't be written.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(name), bytes)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// Copies a file of the test suite into the folder, under its own name.
    ///
    /// # Panics
    /// When it can't be copied.
    pub fn copy(&self, from: &str) {
        let name = Path::new(from).file_name().unwrap_or_default();
        std::fs::copy(root().join(from), self.path().join(name))
            .unwrap_or_else(|error| panic!("{from}: {error}"));
    }

    /// Reads a file as text.
    ///
    /// # Panics
    /// When it can't be read.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name))
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Whether a program in the folder reads values of its own sweep, as few strategies allow.
    pub fn sweeps(&self, program: &str) -> bool {
        self.read(&format!("{program}.stencil")).contains("'[")
    }

    /// Runs a tool in the folder. Devices are hidden from it.
    ///
    /// # Panics
    /// When it can't be started.
    pub fn run(&self, name: &str, arguments: &[&str]) -> Outcome {
        self.outcome(Command::new(tool(name)).args(arguments))
    }

    /// Runs a line of the shell in the folder, in which `stencilc` and the other tools are known.
    ///
    /// # Panics
    /// When it can't be started.
    pub fn shell(&self, line: &str) -> Outcome {
        let tools = tool("stencilc").parent().map(Path::to_owned).unwrap_or_default();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::iter::once(tools).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(path).unwrap_or_else(|error| panic!("{error}"));
        // Signals are as usual, however the tests were started.
        let shell = ["--default-signal", "sh", "-c", line];
        self.outcome(Command::new("env").args(shell).env("PATH", path))
    }

    fn outcome(&self, command: &mut Command) -> Outcome {
        let before = self.files();
        let output = command
            .current_dir(self.path())
            .env("CUDA_VISIBLE_DEVICES", "-1")
            .output()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Outcome {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
            new_files: self.files().difference(&before).cloned().collect(),
        }
    }

    /// The contents of all files beneath the folder, by name.
    pub fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let read = |name: String| Some((name.clone(), std::fs::read(self.path().join(name)).ok()?));
        self.files().into_iter().filter_map(read).collect()
    }

    fn files(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut folders = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path.clone());
                }
                found.insert(path.strip_prefix(self.path()).unwrap_or(&path).display().to_string());
            }
        }
        found
    }
}
