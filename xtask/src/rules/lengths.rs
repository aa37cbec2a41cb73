//! No file of code and no function is too long to be read in one go.

use super::{Break, Tree};

/// Lines of a file, its tests included: large tests belong in a file of their own.
const OF_A_FILE: usize = 450;

/// Lines of a function, from `fn` to its last brace.
const OF_A_FUNCTION: usize = 80;

/// Files that are too long.
pub fn of_files(tree: &Tree) -> Vec<Break> {
    let mut broken = Vec::new();
    let is_code = |name: &str| name.ends_with(".rs") || name.ends_with(".py");
    for (name, text) in tree.texts.iter().filter(|(name, _)| is_code(name)) {
        let lines = text.lines().count();
        if lines > OF_A_FILE {
            let what = format!("{lines} lines; at most {OF_A_FILE} are allowed");
            broken.push(Break::new(name, OF_A_FILE + 1, what));
        }
    }
    broken
}

/// Functions that are too long.
pub fn of_functions(tree: &Tree) -> Vec<Break> {
    let mut broken = Vec::new();
    for source in &tree.sources {
        for function in source.functions() {
            let lines = function.last_line - function.line + 1;
            if lines > OF_A_FUNCTION {
                let name = function.name;
                let what =
                    format!("`{name}` has {lines} lines; at most {OF_A_FUNCTION} are allowed");
                broken.push(Break::new(&source.name, function.line, what));
            }
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_too_many_breaks_the_rule() {
        let of_lines = |lines: usize| "//\n".repeat(lines);
        let (long, fine) = (of_lines(OF_A_FILE + 1), of_lines(OF_A_FILE));
        let broken = of_files(&Tree::of(&[("long.rs", &long), ("fine.rs", &fine)]));
        assert_eq!((broken.len(), broken[0].file.as_str()), (1, "long.rs"));
        let long = "pass\n".repeat(OF_A_FILE + 1);
        assert_eq!(of_files(&Tree::of(&[("long.py", &long), ("long.txt", &long)])).len(), 1);
    }

    #[test]
    fn functions_are_measured_from_their_first_line_to_their_last() {
        let of_lines = |lines: usize| {
            format!(
                "trait A {{\n    fn none();\n    fn a() {{\n{}    }}\n}}\n",
                "\n".repeat(lines - 2)
            )
        };
        let (long, fine) = (of_lines(OF_A_FUNCTION + 1), of_lines(OF_A_FUNCTION));
        let broken = of_functions(&Tree::of(&[("long.rs", &long), ("fine.rs", &fine)]));
        assert_eq!(broken, [Break::new("long.rs", 3, "`a` has 81 lines; at most 80 are allowed")]);
    }
}
