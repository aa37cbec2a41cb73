//! No file holds a path of somebody's own machine.

use std::path::Path;

use super::{Break, Tree};

/// Places where a path of one machine begins.
pub fn of_machines(tree: &Tree) -> Vec<Break> {
    let paths = machine_paths(&tree.root);
    let mut broken = Vec::new();
    for (name, text) in &tree.texts {
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(path) = paths.iter().find(|path| holds(line, path)) {
                broken.push(Break::new(name, number, format!("a path of one machine: {path}")));
            }
        }
    }
    broken
}

/// Where people keep their own files, and where this checkout lies.
fn machine_paths(root: &Path) -> Vec<String> {
    let mut paths: Vec<String> = ["home", "root", "Users"].map(|top| format!("/{top}/")).into();
    paths.push(format!("{}/", root.display()));
    paths
}

/// Whether a path begins in a line, and is not the rest of a longer one.
fn holds(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-}/".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_machine_are_found_as_whole_paths() {
        let found = |text: &str| of_machines(&Tree::of(&[("f", text)])).len();
        assert_eq!(found(&format!("see /{}/ann/notes", "home")), 1);
        assert_eq!(found("cd /src/project/passes"), 1);
        assert_eq!(found("dialects/src/project/x and the /src/ folder"), 0);
        assert_eq!(found("a\nroots/home/x"), 0);
    }
}
