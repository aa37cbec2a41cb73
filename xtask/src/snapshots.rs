//! Snapshots that no test looks at: each would be a check that has silently stopped.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::project;

/// Fails when a `.snap` file of the checkout is not among the references that insta wrote down,
/// one path a line, while the tests ran. Returns how many snapshots there are.
///
/// # Errors
/// Names the snapshots that no test refers to.
pub fn all_referenced(root: &Path, references: &Path) -> Result<usize> {
    let text = match std::fs::read_to_string(references) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        other => other.with_context(|| format!("reading {}", references.display()))?,
    };
    let is_snapshot = |path: &PathBuf| path.extension().is_some_and(|e| e == "snap");
    let stored: Vec<PathBuf> = project::files(root)?.into_iter().filter(is_snapshot).collect();
    let unused = unreferenced(root, &stored, &text);
    if unused.is_empty() {
        return Ok(stored.len());
    }
    let lines: Vec<String> = unused
        .iter()
        .map(|path| format!("  {}", path.strip_prefix(root).unwrap_or(path).display()))
        .collect();
    bail!(
        "snapshots that no test refers to: {} (delete them, or restore their tests)\n{}",
        lines.len(),
        lines.join("\n")
    );
}

fn unreferenced<'a>(root: &Path, stored: &'a [PathBuf], references: &str) -> Vec<&'a PathBuf> {
    let plain = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let used: BTreeSet<PathBuf> = references.lines().map(|line| plain(root.join(line))).collect();
    let is_unused = |path: &&PathBuf| !used.contains(&plain(path.to_path_buf()));
    stored.iter().filter(is_unused).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_tests_touched_is_referenced() {
        let root = Path::new("/project");
        let stored = [root.join("a/1.snap"), root.join("a/2.snap"), root.join("b/3.snap")];
        let unused =
            unreferenced(root, &stored, "/project/a/1.snap\nb/3.snap\n/project/a/1.snap\n");
        assert_eq!(unused, [&stored[1]]);
        assert_eq!(unreferenced(root, &stored, "").len(), 3);
    }
}
