//! Rules that the tree must keep, and a proof for each rule that it can fail.
//!
//! - The crates that run a compiled program, or only read one, never reach LLVM or MLIR.
//! - `unsafe` stands in the adapters to MLIR and to CUDA alone.
//! - Every Rust file begins by saying what it is for.
//! - No file holds a path of somebody's own machine.
//! - No code outside a strategy's folder spells a strategy's name.
//! - No pass names a device.
//! - No files of different folders of a crate import each other in a circle.
//! - No file of Rust or Python has over 450 lines, and no function of Rust over 80.
//! - No line has over 100 columns, where it could be broken.

mod circles;
mod columns;
mod dependencies;
mod heads;
mod imports;
mod lengths;
mod names;
mod not_yet;
mod paths;
mod source;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::project::{self, Project};
use source::Source;

/// The files that rules look at.
struct Tree {
    root: PathBuf,
    /// All Rust files.
    sources: Vec<Source>,
    /// All text files with their names: paths from the root.
    texts: Vec<(String, String)>,
}

/// A place that breaks a rule.
#[derive(Clone, Debug, PartialEq)]
struct Break {
    file: String,
    line: usize,
    what: String,
}

impl Break {
    fn new(file: &str, line: usize, what: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, what: what.into() }
    }
}

/// A rule on files, and the files that break it as yet.
struct Rule {
    name: &'static str,
    check: fn(&Tree) -> Vec<Break>,
    not_yet: &'static [&'static str],
}

const fn rule(name: &'static str, check: fn(&Tree) -> Vec<Break>) -> Rule {
    Rule { name, check, not_yet: &[] }
}

const RULES: [Rule; 9] = [
    rule("head comments", heads::without_head),
    rule("unsafe code", heads::unsafe_code),
    rule("machine paths", paths::of_machines),
    Rule { not_yet: not_yet::STRATEGIES, ..rule("strategy names", names::strategies) },
    Rule { not_yet: not_yet::DEVICES, ..rule("device names", names::devices) },
    Rule { not_yet: not_yet::CIRCLES, ..rule("import circles", circles::find) },
    Rule { not_yet: not_yet::FILES, ..rule("file lengths", lengths::of_files) },
    Rule { not_yet: not_yet::FUNCTIONS, ..rule("function lengths", lengths::of_functions) },
    Rule { not_yet: not_yet::COLUMNS, ..rule("columns", columns::too_many) },
];

/// Checks all rules and returns in one line what was looked at.
///
/// # Errors
/// Lists every place that breaks a rule, and every file that no longer needs its exception.
pub fn check(project: &Project) -> Result<String> {
    let mut broken = dependencies::check(project)?;
    let tree = Tree::read(project)?;
    for rule in &RULES {
        broken.extend(judged(rule, (rule.check)(&tree)));
    }
    if !broken.is_empty() {
        bail!("{} rules broken:\n  {}", broken.len(), broken.join("\n  "));
    }
    let exceptions: usize = RULES.iter().map(|rule| rule.not_yet.len()).sum();
    let also = if exceptions == 0 { String::new() } else { format!("; not yet: {exceptions}") };
    let crates = dependencies::WITHOUT_LLVM.join(", ");
    Ok(format!("{} files; without LLVM: {crates}{also}", tree.texts.len()))
}

/// The breaks in files that are not on the rule's list, and the listed files that have none.
fn judged(rule: &Rule, breaks: Vec<Break>) -> Vec<String> {
    let name = rule.name;
    let (known, new): (Vec<_>, Vec<_>) =
        breaks.into_iter().partition(|found| rule.not_yet.contains(&found.file.as_str()));
    let mended = rule.not_yet.iter().filter(|file| !known.iter().any(|found| found.file == **file));
    new.iter()
        .map(|found| format!("{}:{}: {name}: {}", found.file, found.line, found.what))
        .chain(mended.map(|file| {
            format!("{file}: {name}: breaks nothing any more; take it off the list in not_yet.rs")
        }))
        .collect()
}

impl Tree {
    fn read(project: &Project) -> Result<Self> {
        let root = project.root();
        let mut tree = Self { root: root.to_owned(), sources: Vec::new(), texts: Vec::new() };
        for path in project::files(root)? {
            // Binary files hold neither code nor words.
            let Ok(text) = std::fs::read_to_string(&path) else {
                continue;
            };
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            if name.ends_with(".rs") {
                let source = Source::read(&name, &text);
                tree.sources.push(source.with_context(|| format!("{name} is no Rust code"))?);
            }
            tree.texts.push((name, text));
        }
        Ok(tree)
    }

    /// A tree of these files, for tests of rules.
    #[cfg(test)]
    fn of(files: &[(&str, &str)]) -> Self {
        let sources = files.iter().filter(|(name, _)| name.ends_with(".rs"));
        Self {
            root: "/src/project".into(),
            sources: sources.map(|(name, text)| Source::read(name, text).unwrap()).collect(),
            texts: files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule { not_yet: &["a.rs", "b.rs"], ..rule("size", |_| Vec::new()) };

    #[test]
    fn a_listed_file_may_break_its_rule_and_no_other_may() {
        let breaks = ["a.rs", "b.rs", "c.rs"].map(|file| Break::new(file, 3, "long"));
        assert_eq!(judged(&RULE, breaks.to_vec()), ["c.rs:3: size: long"]);
    }

    #[test]
    fn a_listed_file_that_breaks_nothing_is_reported() {
        let broken = judged(&RULE, vec![Break::new("a.rs", 3, "long")]);
        assert_eq!(broken.len(), 1);
        assert!(broken[0].starts_with("b.rs: size: breaks nothing any more"), "{}", broken[0]);
    }
}
