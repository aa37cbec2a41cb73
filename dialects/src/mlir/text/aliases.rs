//! Depth and size of the aliases in IR text, with the aliases in them written out.
//!
//! MLIR keeps `#a1 = [#a0, #a0]` once, but its printer and its walks of attributes go through it as
//! a tree, with a call for each level. Some lines of aliases would overflow the stack, or take
//! longer than anyone can wait.

use super::{Kind, Token};
use std::collections::HashMap;

/// Tokens of what one alias stands for, with the aliases in it written out.
pub const MOST_IN_ONE: usize = 1 << 20;

/// Tokens of all that aliases stand for where they are used.
pub const MOST_IN_ALL: usize = 1 << 24;

/// Depth and size of an alias.
#[derive(Clone, Copy, Default)]
struct Extent {
    tokens: usize,
    depth: usize,
}

/// The aliases so far, with their `#` or `!`.
#[derive(Default)]
pub struct Aliases<'t> {
    known: HashMap<&'t str, Extent>,
    /// The alias that is being defined.
    open: Option<(&'t str, Extent)>,
    /// Whether the outermost token before ends a value, so that another value begins anew.
    complete: bool,
    written_out: usize,
}

impl<'t> Aliases<'t> {
    /// Takes a token at some levels of nesting, which may lie outside of all brackets, and may be
    /// an alias that is defined. Returns the levels with those of what it stands for.
    pub fn next(
        &mut self,
        token: &Token<'t>,
        outermost: bool,
        defines: bool,
        levels: usize,
    ) -> Result<usize, String> {
        let word = matches!(token.kind, Kind::Word | Kind::Text | Kind::Alias);
        let begins = word || token.kind == Kind::Value;
        if outermost && (defines || self.complete && begins) {
            self.known.extend(self.open.take());
        }
        if outermost || token.kind == Kind::Close {
            self.complete = word || token.kind == Kind::Close;
        }
        if defines {
            self.open = Some((token.text, Extent::default()));
            self.complete = false;
            return Ok(levels);
        }
        let found = match token.kind {
            Kind::Alias => self.known.get(token.text).copied(),
            _ => None,
        };
        let depth = levels + found.map_or(0, |alias| alias.depth);
        if let Some(alias) = found {
            self.written_out = self.written_out.saturating_add(alias.tokens);
            if self.written_out > MOST_IN_ALL {
                return Err(format!(
                    "aliases written out where they are used have more than {MOST_IN_ALL} tokens; \
                     use shorter ones"
                ));
            }
        }
        if let Some((name, extent)) = &mut self.open {
            extent.depth = extent.depth.max(depth);
            extent.tokens = extent.tokens.saturating_add(found.map_or(1, |alias| alias.tokens));
            if extent.tokens > MOST_IN_ONE {
                return Err(format!(
                    "the alias {name} written out has more than {MOST_IN_ONE} tokens; use fewer \
                     aliases in it"
                ));
            }
        }
        Ok(depth)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MAX_NESTING, check};

    fn fault(text: &str) -> Option<String> {
        check(text, "t").err().map(|error| error.message)
    }

    /// Aliases, each made of the one before.
    fn chain(sigil: char, first: &str, of: impl Fn(String) -> String, count: usize) -> String {
        let line = |n| format!("{sigil}a{} = {}\n", n + 1, of(format!("{sigil}a{n}")));
        format!("{sigil}a0 = {first}\n{}", (0..count).map(line).collect::<String>())
    }

    #[test]
    fn levels_of_aliases_add_up() {
        let arrays = |count| chain('#', "1", |a| format!("[{a}]"), count);
        let tuples = |count| chain('!', "i1", |a| format!("tuple<{a}>"), count);
        for text in [arrays(MAX_NESTING), tuples(MAX_NESTING)] {
            assert_eq!(fault(&text), None);
            // The levels around the use count too.
            let used = format!("{text}module attributes {{x = #a{MAX_NESTING}, y = !a399}} {{}}");
            assert_eq!(fault(&used).is_some(), text.starts_with('#'));
        }
        for text in [arrays(MAX_NESTING + 1), tuples(MAX_NESTING + 1)] {
            let message = fault(&text).unwrap_or_default();
            assert!(message.starts_with("the IR is nested more than 400 levels deep"), "{message}");
        }
    }

    #[test]
    fn tokens_of_aliases_add_up() {
        for (sigil, open, close, first) in [('#', "[", "]", "1"), ('!', "tuple<", ">", "i1")] {
            let twice = |a: String| format!("{open}{a}, {a}{close}");
            assert_eq!(fault(&chain(sigil, first, twice, 15)), None);
            let message = fault(&chain(sigil, first, twice, 60)).unwrap_or_default();
            assert!(message.contains("more than 1048576 tokens"), "{message}");
            // Each one is short enough, and all uses together are too many.
            let uses = vec![format!("{sigil}a15"); 200].join(", ");
            let text = format!("{}\"f\"() {{x = [{uses}]}}", chain(sigil, first, twice, 15));
            let message = fault(&text).unwrap_or_default();
            assert!(message.contains("more than 16777216 tokens"), "{message}");
        }
    }

    #[test]
    fn a_definition_ends_where_another_value_begins() {
        // The last definition ends before the next value.
        let long = "1, ".repeat(1 << 19);
        for next in ["module", "\"builtin.module\"()", "%0 = \"f\"()"] {
            for value in ["[1]", "#d.e<1>", "1 : i32", "\"a\"", "affine_map<(d0) -> (d0)>", "@b"] {
                let text =
                    format!("#a = {value}\n{next} {{x = [{long}], y = [{}]}}", "#a".repeat(99));
                assert_eq!(fault(&text), None, "{value} {next}");
            }
        }
        // Neither is a name between brackets a definition.
        assert_eq!(
            fault(&format!("#a = [1]\nf {{#a = [{long}], y = [{}]}}", "#a".repeat(99))),
            None
        );
    }
}
