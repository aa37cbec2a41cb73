//! The cases of a comparison: programs in two element types, strategies, sizes and fast math.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::project::Project;

/// The strategies to compare; each program is tried with all of them.
const STRATEGIES: [&str; 4] = ["naive", "block", "stream", "warp"];

const PROGRAMS: &str = "test-suite/programs";

/// One program with the options that the compilers get.
#[derive(Clone, Debug)]
pub struct Case {
    /// The program's file.
    pub program: PathBuf,
    /// The program's text.
    pub text: String,
    /// `-D N=... --fast-math`, as far as the case has them.
    pub sizes_and_math: Vec<String>,
    /// The strategy asked for; `None` leaves the choice to the compiler.
    pub strategy: Option<&'static str>,
    /// All options: the strategy, sizes and fast math.
    pub options: Vec<String>,
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.program.file_name().unwrap_or_default().to_string_lossy();
        write!(f, "{name} {}", self.options.join(" "))
    }
}

/// Which sizes a compile knows.
#[derive(Clone, Copy, PartialEq)]
enum Sizes {
    Open,
    Small,
    Large,
}

/// All cases of the programs whose names contain `filter`.
///
/// The cases cover each pair of values of element type, fast math and sizes; with `every`, each
/// combination.
///
/// # Errors
/// When the programs can't be read, or their variants not be written.
pub fn all(project: &Project, filter: &str, every: bool) -> Result<Vec<Case>> {
    let folder = project.root().join(PROGRAMS);
    let mut programs = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| format!("reading {PROGRAMS}"))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if path.extension().is_some_and(|e| e == "stencil") && name.contains(filter) {
            programs.push(path);
        }
    }
    programs.sort();
    let mut cases = Vec::new();
    for program in programs {
        let text = std::fs::read_to_string(&program)
            .with_context(|| format!("reading {}", program.display()))?;
        let double = in_f64(project, &program, &text)?;
        cases.extend(of_program(&program, &text, 0, every));
        if let Some((program, text)) = double {
            cases.extend(of_program(&program, &text, 1, every));
        }
    }
    Ok(cases)
}

/// A program with `f64` in place of `f32`, in a file of its own; nothing where that is the same
/// program or stands among the others.
fn in_f64(project: &Project, program: &Path, text: &str) -> Result<Option<(PathBuf, String)>> {
    let stem = program.file_stem().unwrap_or_default().to_string_lossy();
    let double = replace_word(text, "f32", "f64");
    if double == text || program.with_file_name(format!("{stem}_f64.stencil")).is_file() {
        return Ok(None);
    }
    let folder = project.target().join("same-code/programs");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{stem}_f64.stencil"));
    std::fs::write(&path, &double).with_context(|| format!("writing {}", path.display()))?;
    Ok(Some((path, double)))
}

fn of_program(program: &Path, text: &str, element: usize, every: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for (size, sizes) in [Sizes::Open, Sizes::Small, Sizes::Large].into_iter().enumerate() {
        for fast_math in [false, true] {
            // Half of all combinations hold each pair of values.
            if !every && (element + usize::from(fast_math) + size) % 2 == 1 {
                continue;
            }
            let mut sizes_and_math = size_options(text, sizes);
            sizes_and_math.extend(fast_math.then(|| "--fast-math".to_owned()));
            for strategy in STRATEGIES.into_iter().map(Some).chain([None]) {
                let asked = strategy.map(|strategy| format!("--strategy={strategy}"));
                let options = asked.into_iter().chain(sizes_and_math.iter().cloned()).collect();
                cases.push(Case {
                    program: program.to_path_buf(),
                    text: text.to_owned(),
                    sizes_and_math: sizes_and_math.clone(),
                    strategy,
                    options,
                });
            }
        }
    }
    cases
}

/// A size for each param of a program. Large sizes are those of measurements; small ones are odd.
fn size_options(text: &str, sizes: Sizes) -> Vec<String> {
    let params: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("param ")).map(str::trim).collect();
    let size = |at: usize| match (sizes, params.len()) {
        (Sizes::Small, _) => 101 - 10 * at,
        (_, 1) => 1 << 24,
        (_, 2) => 8192,
        _ => 512,
    };
    if sizes == Sizes::Open {
        return Vec::new();
    }
    params.iter().enumerate().map(|(at, param)| format!("-D{param}={}", size(at))).collect()
}

/// Replaces `old` where it is a whole word.
fn replace_word(text: &str, old: &str, new: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(old) {
        let (before, after) = (&rest[..at], &rest[at + old.len()..]);
        let whole = !before.ends_with(is_word) && !after.starts_with(is_word);
        replaced.push_str(before);
        replaced.push_str(if whole { new } else { old });
        rest = after;
    }
    replaced + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "param N\nparam M\nfield A : f32 on G # f32x xf32\nscalar f32_ : f32\n";

    #[test]
    fn whole_words_are_replaced() {
        let wanted = "param N\nparam M\nfield A : f64 on G # f32x xf32\nscalar f32_ : f64\n";
        assert_eq!(replace_word(TEXT, "f32", "f64"), wanted);
    }

    #[test]
    fn every_param_gets_a_size() {
        assert_eq!(size_options(TEXT, Sizes::Small), ["-DN=101", "-DM=91"]);
        assert_eq!(size_options(TEXT, Sizes::Large), ["-DN=8192", "-DM=8192"]);
        assert!(size_options(TEXT, Sizes::Open).is_empty());
    }

    #[test]
    fn cases_hold_each_pair_of_values() {
        let path = Path::new("a.stencil");
        let traits = |element: usize| {
            let values = |case: Case| {
                let has = |option: &str| case.options.iter().any(|o| o.starts_with(option));
                [has("-DN=101"), has("-DN=8192"), has("--fast"), element == 1]
            };
            of_program(path, TEXT, element, false).into_iter().map(values).collect::<Vec<_>>()
        };
        let all = [traits(0), traits(1)].concat();
        for (one, other) in [(0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
            for values in [(false, false), (false, true), (true, false), (true, true)] {
                let found = all.iter().any(|case| (case[one], case[other]) == values);
                assert!(found, "{one} {other}: {values:?}");
            }
        }
        let strategies = STRATEGIES.len() + 1;
        assert_eq!(of_program(path, TEXT, 0, true).len(), 6 * strategies);
        assert_eq!(of_program(path, TEXT, 0, false).len(), 3 * strategies);
    }
}
