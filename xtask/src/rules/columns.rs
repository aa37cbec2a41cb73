//! No line is too wide to be read beside another, where it could be broken.

use super::source::{Kind, Source};
use super::{Break, Tree};

/// Columns of a line.
const MOST: usize = 100;

/// Lines that are too wide, of Rust, Python and Markdown.
pub fn too_many(tree: &Tree) -> Vec<Break> {
    let mut broken = Vec::new();
    for source in &tree.sources {
        broken.extend(of_code(source));
    }
    for (name, text) in &tree.texts {
        if name.ends_with(".md") {
            broken.extend(of_prose(name, text));
        } else if name.ends_with(".py") {
            broken.extend(of_python(name, text));
        }
    }
    broken
}

/// Wide lines outside raw strings and code in comments that hold more than one word.
fn of_code(source: &Source) -> Vec<Break> {
    let raw: Vec<_> = source.tokens.iter().filter(|token| token.kind == Kind::RawText).collect();
    let in_raw = |line| raw.iter().any(|token| (token.line..=token.last_line).contains(&line));
    let mut fenced = false;
    let mut broken = Vec::new();
    for (number, line) in (1..).zip(source.text.lines()) {
        let comment = line.trim_start().strip_prefix("//");
        fenced = match comment {
            Some(comment) => {
                fenced ^ comment.trim_start_matches(['/', '!', ' ']).starts_with("```")
            }
            None => false,
        };
        let words = comment.unwrap_or(line).split_whitespace().filter(|word| *word != "!");
        if !fenced && !in_raw(number) && is_wide(line) && words.count() > 1 {
            broken.push(wide(&source.name, number, line));
        }
    }
    broken
}

/// Wide lines that hold more than one word.
fn of_python(name: &str, text: &str) -> Vec<Break> {
    let lines = (1..).zip(text.lines());
    let wide_ones = lines.filter(|(_, line)| is_wide(line) && line.split_whitespace().count() > 1);
    wide_ones.map(|(number, line)| wide(name, number, line)).collect()
}

/// Wide lines outside tables and fenced code, the targets of links not counted.
fn of_prose(name: &str, text: &str) -> Vec<Break> {
    let mut broken = Vec::new();
    for (number, line) in crate::links::prose(text) {
        let shown = without_targets(line);
        let is_table = line.trim_start().starts_with('|');
        let is_definition = line.starts_with('[') && line.contains("]: ");
        if is_wide(&shown) && !is_table && !is_definition && shown.trim().contains(' ') {
            broken.push(wide(name, number, &shown));
        }
    }
    broken
}

/// `[text](target)` as `[text]`.
fn without_targets(line: &str) -> String {
    let mut parts = line.split("](");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown.push(']');
        shown.push_str(part.split_once(')').map_or(part, |(_, rest)| rest));
    }
    shown
}

fn is_wide(line: &str) -> bool {
    line.chars().count() > MOST
}

fn wide(name: &str, number: usize, line: &str) -> Break {
    let columns = line.chars().count();
    Break::new(name, number, format!("{columns} columns; at most {MOST} are allowed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide_lines(name: &str, text: &str) -> Vec<usize> {
        too_many(&Tree::of(&[(name, text)])).iter().map(|broken| broken.line).collect()
    }

    #[test]
    fn wide_code_is_found() {
        let wide = "a ".repeat(50);
        assert!(wide_lines("a.rs", &format!("//{}\n", &wide[2..])).is_empty());
        assert_eq!(wide_lines("a.rs", &format!("\n// {wide}\n")), [2]);
        assert_eq!(wide_lines("a.rs", &format!("const A: &str = \"{wide}\";\n")), [1]);
        assert_eq!(wide_lines("a.py", &format!("pass\n{wide} {wide}\n{}\n", &wide[2..])), [2]);
    }

    #[test]
    fn what_cannot_be_broken_may_be_wide() {
        let (wide, word) = ("a ".repeat(50), "a".repeat(100));
        assert!(
            wide_lines("a.rs", &format!("const A: &str = r#\"\n{wide} {wide}\n\"#;\n")).is_empty()
        );
        assert!(wide_lines("a.rs", &format!("//! {word}\n    \"{word}\"\n")).is_empty());
        assert_eq!(wide_lines("a.rs", &format!("//! ```\n//! {wide}\n//! ```\n//! {wide}\n")), [4]);
    }

    #[test]
    fn wide_prose_is_found_outside_tables_code_and_targets() {
        let wide = "word ".repeat(21);
        let text = format!(
            "{wide}\n| {wide} |\n```\n{wide}\n```\nSee [a]({}) b.\n- {wide}\n",
            "x".repeat(99)
        );
        assert_eq!(wide_lines("a.md", &text), [1, 7]);
    }
}
