//! What must never come into the tree, and a proof for each rule that it can fail.
//!
//! - The crates that run a compiled program, or only read one, never reach LLVM or MLIR.
//! - `unsafe` stands in the adapters to MLIR and to CUDA alone.
//! - Every Rust file begins by saying what it is for.
//! - No file holds a path of somebody's own machine.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};

use crate::project::{self, Project, capture};

/// Crates that build and run where there is no LLVM.
const WITHOUT_LLVM: [&str; 3] = ["stencil-runtime", "stencil-frontend", "xtask"];

/// The crates through which LLVM and MLIR come in.
const LLVM: [&str; 2] = ["mlir-sys", "llvm-sys"];

/// The files that may hold `unsafe`: the adapter to MLIR's C interface, and those to CUDA's driver.
const MAY_BE_UNSAFE: [&str; 11] = [
    "dialects/src/mlir.rs",
    "runtime/src/cuda/buffer.rs",
    "runtime/src/cuda/call.rs",
    "runtime/src/cuda/clock.rs",
    "runtime/src/cuda/device.rs",
    "runtime/src/cuda/error.rs",
    "runtime/src/cuda/graph.rs",
    "runtime/src/cuda/handle.rs",
    "runtime/src/cuda/kernel.rs",
    "runtime/src/cuda/module.rs",
    "runtime/src/cuda/stream.rs",
];

/// Checks all rules and returns in one line what was looked at.
///
/// # Errors
/// Lists every place that breaks a rule.
pub fn check(project: &Project) -> Result<String> {
    let mut broken = Vec::new();
    for package in WITHOUT_LLVM {
        for found in reaches(&dependencies(project, package)?) {
            broken.push(format!("{package} depends on {found}"));
        }
    }
    let compiler = dependencies(project, "stencilc")?;
    ensure!(
        reaches(&compiler) == LLVM,
        "the check of dependencies is blind: it does not see that stencilc depends on {}",
        LLVM.join(" and ")
    );

    let root = project.root();
    let files = project::files(root)?;
    for path in &files {
        // Binary files hold neither code nor words.
        let Ok(text) = std::fs::read_to_string(path) else {
            continue;
        };
        let name = path.strip_prefix(root).unwrap_or(path);
        if name.extension().is_some_and(|extension| extension == "rs") {
            broken.extend(broken_by_code(name, &text));
        }
        broken.extend(broken_by_words(name, &text, &machine_paths(root)));
    }
    if broken.is_empty() {
        let crates = WITHOUT_LLVM.join(", ");
        return Ok(format!("{} files; without LLVM: {crates}", files.len()));
    }
    bail!("{} rules broken:\n  {}", broken.len(), broken.join("\n  "));
}

/// Names of all packages that `package` is built from, with all of its features.
fn dependencies(project: &Project, package: &str) -> Result<String> {
    let arguments = ["tree", "--all-features", "--edges=normal,build", "--prefix=none"];
    capture(project.cargo(&arguments).args(["--format={p}", "--package", package]))
}

/// The entry packages of LLVM among the lines `name version ...` of a dependency list.
fn reaches(dependencies: &str) -> Vec<&'static str> {
    let has = |name: &&str| dependencies.lines().any(|line| line.split(' ').next() == Some(name));
    LLVM.into_iter().filter(has).collect()
}

fn broken_by_code(name: &Path, text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    let shown = name.display();
    if !text.starts_with("//!") {
        broken.push(format!("{shown}:1: begins without a `//!` comment that says what it is for"));
    }
    if MAY_BE_UNSAFE.iter().any(|allowed| name == Path::new(allowed)) {
        return broken;
    }
    let is_unsafe = |line: &str| code_words(line).any(|word| word == "unsafe");
    let mut places = (1..).zip(text.lines()).filter(|(_, line)| is_unsafe(line));
    if let Some((number, _)) = places.next() {
        let (allowed, more) = (MAY_BE_UNSAFE.join(" and "), places.count());
        broken.push(format!(
            "{shown}:{number}: unsafe code (and {more} places more); it belongs in {allowed}"
        ));
    }
    broken
}

/// The words of a line before its comment, those in plain string literals left out.
fn code_words(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("//").next().unwrap_or(line);
    let outside_quotes = code.split('"').step_by(2);
    outside_quotes.flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_'))
}

/// Where people keep their own files, and where this checkout lies.
fn machine_paths(root: &Path) -> Vec<String> {
    let mut paths: Vec<String> = ["home", "root", "Users"].map(|top| format!("/{top}/")).into();
    paths.push(format!("{}/", root.display()));
    paths
}

fn broken_by_words(name: &Path, text: &str, paths: &[String]) -> Vec<String> {
    let begins_a_path = |line: &str, at: usize| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-}/".contains(c))
    };
    let holds = |line: &str| {
        paths
            .iter()
            .find(|path| line.match_indices(path.as_str()).any(|(at, _)| begins_a_path(line, at)))
            .cloned()
    };
    let found = text.lines().zip(1..).filter_map(|(line, number)| Some((number, holds(line)?)));
    found
        .map(|(number, path)| {
            format!("{}:{number}: a path of one machine: {path}", PathBuf::from(name).display())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_told_by_their_names() {
        let list = "stencilc v0.1.0 (here)\nmelior v0.27.8\nmlir-sys v220.0.1 (*)\n";
        assert_eq!(reaches(list), ["mlir-sys"]);
        assert!(reaches("mlir-sys-like v1.0.0\nserde v1\n").is_empty());
    }

    #[test]
    fn unsafe_code_is_found_only_where_it_is_code() {
        let name = Path::new("passes/src/lib.rs");
        let fine = "//! Head.\n#![forbid(unsafe_code)]\n// unsafe\nlet a = \"unsafe\";\n";
        assert!(broken_by_code(name, fine).is_empty());
        let bad = "//! Head.\nlet a = unsafe { b() };\n";
        let broken = broken_by_code(name, bad);
        assert_eq!(broken.len(), 1);
        assert!(broken[0].starts_with("passes/src/lib.rs:2: unsafe code"), "{}", broken[0]);
        assert!(broken_by_code(Path::new(MAY_BE_UNSAFE[0]), bad).is_empty());
    }

    #[test]
    fn a_file_without_a_head_comment_is_found() {
        let broken = broken_by_code(Path::new("a.rs"), "use std::fs;\n");
        assert_eq!(broken.len(), 1);
        assert!(broken[0].starts_with("a.rs:1: begins without"));
    }

    #[test]
    fn paths_of_a_machine_are_found_as_whole_paths() {
        let paths = machine_paths(Path::new("/src/stencilc"));
        let found = |text: &str| broken_by_words(Path::new("f"), text, &paths).len();
        assert_eq!(found(&format!("see /{}/ann/notes", "home")), 1);
        assert_eq!(found("cd /src/stencilc/passes"), 1);
        assert_eq!(found("dialects/src/stencilc/x and the /src/ folder"), 0);
        assert_eq!(found("a\nroots/home/x"), 0);
    }
}
