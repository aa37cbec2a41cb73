//! Texts that are no program in the language, told by how they begin.

use stencil_dialects::error::Place;
use stencil_frontend::source::Source;

/// The first word of a text, where a module in MLIR begins with it.
pub fn module_in_mlir(source: &Source) -> Option<Place> {
    let is_text = |line: &str| !line.is_empty() && !line.starts_with("//");
    let mut lines = source.text.lines().enumerate();
    let (index, line) = lines.find(|(_, line)| is_text(line.trim()))?;
    let text = line.trim_start();
    let mut words = text.split_whitespace();
    let begins = match words.next()? {
        "module" | "func.func" | "\"builtin.module\"" => true,
        word => word.starts_with("\"builtin.module\"(") || word.starts_with("module{"),
    };
    // In the language `#` begins a comment, which may hold an item.
    let values = ["affine_map<", "affine_set<", "dense<", "loc(", "#", "!"];
    let alias = text.starts_with(['#', '!'])
        && words.next() == Some("=")
        && words.next().is_some_and(|word| values.iter().any(|value| word.starts_with(value)));
    (begins || alias).then(|| Place {
        file: source.name.clone(),
        line: index + 1,
        column: line.len() - text.len() + 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_told_from_programs() {
        for (text, line, column) in [
            ("\n  // A comment.\n\n  module @a {}", 4, 3),
            ("\"builtin.module\"() ({}) : () -> ()", 1, 1),
            ("#zero = affine_map<()[n] -> (0)>\nmodule {}", 1, 1),
            ("func.func @f() { return }", 1, 1),
            ("module{}", 1, 1),
        ] {
            let place = Place { file: "a.txt".to_owned(), line, column };
            assert_eq!(module_in_mlir(&Source::new("a.txt", text)), Some(place), "{text}");
        }
        for text in
            ["", "// module", "param N", "modules = 1", "# module", "#alpha = 0.1", "#steps = N"]
        {
            assert_eq!(module_in_mlir(&Source::new("a.txt", text)), None, "{text}");
        }
    }
}
