//! The checkout that the commands work on: where its parts lie, and how its programs are started.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// LLVM's own folder in Debian's packages; `.cargo/config.toml` tells the build scripts the same.
pub const LLVM: &str = "/usr/lib/llvm-22";

/// One checkout and the moment at which work on it began.
pub struct Project {
    root: PathBuf,
    target: PathBuf,
    began: Instant,
    python: OnceLock<PathBuf>,
}

impl Project {
    /// Finds the checkout from where Cargo says that this crate lies, else from where it was built.
    ///
    /// # Errors
    /// When the folder found holds no workspace.
    pub fn find() -> Result<Self> {
        let crate_folder = std::env::var_os("CARGO_MANIFEST_DIR")
            .unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&crate_folder)
            .parent()
            .filter(|root| root.join("lit.cfg").is_file())
            .context("the project's folder was not found: start this as `cargo xtask`")?
            .to_path_buf();
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => std::path::absolute(folder)?,
            None => root.join("target"),
        };
        Ok(Self { root, target, began: Instant::now(), python: OnceLock::new() })
    }

    /// The checkout's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Cargo's folder for build products.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Where the project's release binaries lie once they are built.
    pub fn binaries(&self) -> PathBuf {
        self.target.join("release")
    }

    /// Where `setup` puts what does not come from Debian's packages.
    pub fn toolchain(&self) -> PathBuf {
        self.root.join(".toolchain")
    }

    /// Where NVIDIA's compiler wheels, once installed, hold `bin/ptxas` and `nvvm/libdevice`.
    pub fn cuda(&self) -> PathBuf {
        self.toolchain().join("cuda/nvidia/cu13")
    }

    /// The Python to use: that of the PATH if it has pip, else Debian's.
    pub fn python(&self) -> &Path {
        self.python.get_or_init(|| {
            let has_pip = Command::new("python3")
                .args(["-c", "import pip"])
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success());
            if has_pip { "python3" } else { "/usr/bin/python3" }.into()
        })
    }

    /// Says what is being done, with the seconds since the command began.
    pub fn say(&self, what: impl std::fmt::Display) {
        println!("[{:6.1} s] {what}", self.elapsed().as_secs_f64());
    }

    /// Time since the command began.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// A command that runs in the checkout and finds the project's tools, LLVM's and ptxas.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .env("CARGO_TARGET_DIR", &self.target)
            .env("STENCILC_BIN_DIR", self.binaries())
            .env("PATH", self.search_path())
            .env("PYTHONPATH", self.toolchain().join("python"))
            .env("PYTHONDONTWRITEBYTECODE", "1");
        // Cargo's variables about a program's own package are not true of the program's children.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&name);
            }
        }
        command
    }

    /// [`Project::command`] for Cargo itself.
    pub fn cargo(&self, arguments: &[&str]) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = self.command(cargo);
        command.args(arguments);
        command
    }

    fn search_path(&self) -> std::ffi::OsString {
        let ours = [self.binaries(), self.cuda().join("bin"), Path::new(LLVM).join("bin")];
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let all = ours.into_iter().chain(std::env::split_paths(&inherited));
        // A folder whose name holds a colon can't be on a search path; then only the inherited one.
        std::env::join_paths(all).unwrap_or(inherited)
    }
}

/// Runs a command to its end and returns what it wrote, standard output and errors in order.
///
/// # Errors
/// When it can't be started or fails; the message holds all that it wrote.
pub fn capture(command: &mut Command) -> Result<String> {
    run(command, false)
}

/// Like [`capture`], and shows each line as it comes.
///
/// # Errors
/// When the command can't be started or fails.
pub fn stream(command: &mut Command) -> Result<String> {
    run(command, true)
}

fn run(command: &mut Command, show: bool) -> Result<String> {
    let name = shown(command);
    let (reader, writer) = std::io::pipe()?;
    let mut child = command
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()
        .with_context(|| format!("`{name}` can't be started"))?;
    // The command holds the pipe's writing ends too; without this, reading would never end.
    command.stdout(Stdio::null()).stderr(Stdio::null());

    let mut text = String::new();
    for line in BufReader::new(reader).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        if show {
            println!("{line}");
        }
        text.push_str(&line);
        text.push('\n');
    }
    let status = child.wait()?;
    if status.success() {
        return Ok(text);
    }
    if show {
        bail!("`{name}` failed ({status})");
    }
    bail!("`{name}` failed ({status}):\n{}", text.trim_end());
}

/// A command as one would type it, without the folder of the program.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut words = vec![program.file_name().unwrap_or(program.as_os_str()).to_string_lossy()];
    words.extend(command.get_args().map(OsStr::to_string_lossy));
    words.join(" ")
}

/// All files of the checkout that are not build products, in order of their paths.
///
/// # Errors
/// When a folder can't be read.
pub fn files(root: &Path) -> Result<Vec<PathBuf>> {
    const PRODUCTS: [&str; 5] = [".git", ".toolchain", "out", "target", "__pycache__"];
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries =
            std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() && !PRODUCTS.iter().any(|name| entry.file_name() == *name) {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_captured_in_order_and_failure_carries_it() {
        let text = capture(Command::new("sh").args(["-c", "echo a; echo b >&2; echo c"]));
        assert_eq!(text.unwrap(), "a\nb\nc\n");
        let error = capture(Command::new("sh").args(["-c", "echo why; exit 3"])).unwrap_err();
        let message = format!("{error:#}");
        assert!(message.contains("exit status: 3"), "{message}");
        assert!(message.ends_with("why"), "{message}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = capture(&mut Command::new("no-such-program-here")).unwrap_err();
        assert!(format!("{error:#}").contains("`no-such-program-here` can't be started"));
    }
}
