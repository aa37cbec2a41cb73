//! Checks of IR text before MLIR's parser sees it: what would end the process there is an error.

mod aliases;
mod applies;
mod forms;

use crate::error::{Error, Place};
use aliases::Aliases;
use applies::Applies;
pub use forms::refused;

/// Levels of brackets, and of operators of an affine expression, in IR text. MLIR's parser recurses
/// at each; with 2 MiB of stack it overflows between 600 and 1,000 regions.
pub const MAX_NESTING: usize = 400;

/// Numbers of a vector. MLIR makes a list of them for some operations, and ends the process where
/// there is no memory for it.
pub const MAX_VECTOR: u64 = 1 << 20;

/// The number of a result of an operation with several, as in `%0#1`, at most. MLIR makes room for
/// all results before it, and ends the process where there is no memory for them.
pub const MAX_RESULTS: u64 = 1 << 16;

/// Refuses text at which MLIR crashes or never ends: too many levels of brackets or operators,
/// aliases that stand for too much, `affine.apply` of too many others, vectors of too many numbers,
/// results of too high numbers, and `array<index: ...>`; and names without letters, which it can't
/// print.
pub fn check(text: &str, name: &str) -> Result<(), Error> {
    let mut levels = 0_usize;
    // Operators of the expression so far, and of those around the open brackets.
    let mut operators = 0;
    let mut around = Vec::new();
    let mut aliases = Aliases::default();
    let mut applies = Applies::default();
    let mut tokens = Tokens::new(text).peekable();
    let place = |(line, column)| Place { file: name.to_owned(), line, column };
    let mut at = (1, 1);
    // The two tokens before.
    let mut before = ["", ""];
    while let Some(token) = tokens.next() {
        let kind = token.kind;
        at = (token.line, token.column);
        let error = |message: String| Err(Error::new(place(at), message));
        if let Err(message) = applies.next(&token) {
            return error(message);
        }
        if before == ["vector", "<"] && !is_short_vector(token.text) {
            return error(format!("a vector has at most {MAX_VECTOR} numbers; use a memref"));
        }
        if kind == Kind::Value && !is_short_result(token.text) {
            return error(format!("a value has no result of a number beyond {MAX_RESULTS}"));
        }
        let names = before[1] == "@" || before == ["sym_name", "="];
        if names && token.text == "\"\"" {
            return error(
                "a name is empty, which MLIR prints as no text; give it letters".to_owned(),
            );
        }
        before = [before[1], token.text];
        let outermost = around.is_empty();
        match kind {
            Kind::Open => {
                levels += 1;
                around.push(std::mem::take(&mut operators));
            }
            Kind::Close => {
                levels = levels.saturating_sub(1 + operators);
                operators = around.pop().unwrap_or(0);
            }
            Kind::Operator => {
                levels += 1;
                operators += 1;
            }
            Kind::Word => {}
            Kind::Other | Kind::Text | Kind::Alias | Kind::Value => {
                levels -= std::mem::take(&mut operators)
            }
            Kind::IndexArray => {
                return error(
                    "MLIR 22 can't read an array of index; write array<i64: ...>".to_owned(),
                );
            }
        }
        let defines =
            kind == Kind::Alias && outermost && tokens.peek().is_some_and(|next| next.text == "=");
        let depth = match aliases.next(&token, outermost, defines, levels) {
            Ok(depth) => depth,
            Err(message) => return error(message),
        };
        if depth > MAX_NESTING {
            return error(format!(
                "the IR is nested more than {MAX_NESTING} levels deep; brackets are levels, and \
                 the operators of an affine expression, also those that an alias stands for"
            ));
        }
    }
    applies.end().map_err(|message| Error::new(place(at), message))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Open,
    Close,
    /// An operator of an affine expression.
    Operator,
    /// A word or a number, which an affine expression is made of beside operators and brackets.
    Word,
    /// `array<index`.
    IndexArray,
    /// A string.
    Text,
    /// `#name` or `!name`: an alias, or an attribute or type of a dialect.
    Alias,
    /// `%name`, or `%name#1`, one of several results.
    Value,
    /// A token that ends an affine expression, because none holds it.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token<'t> {
    kind: Kind,
    text: &'t str,
    line: usize,
    column: usize,
}

/// The tokens of a text, less blanks and comments.
struct Tokens<'t> {
    rest: &'t str,
    line: usize,
    column: usize,
}

impl<'t> Tokens<'t> {
    fn new(text: &'t str) -> Self {
        Self { rest: text, line: 1, column: 1 }
    }

    /// Takes some bytes off the text, which end at the end of a character.
    fn skip(&mut self, bytes: usize) -> &'t str {
        let (gone, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.line += gone.matches('\n').count();
        self.column = match gone.rsplit_once('\n') {
            Some((_, last)) => last.chars().count() + 1,
            None => self.column + gone.chars().count(),
        };
        self.rest = rest;
        gone
    }

    /// Bytes of what lies between tokens at the head of the text.
    fn gap(&self) -> usize {
        if self.rest.starts_with("//") {
            self.rest.find('\n').unwrap_or(self.rest.len())
        } else {
            self.rest.len() - self.rest.trim_start().len()
        }
    }

    /// Bytes of the string, the alias or the value at the head of the text, if one is there.
    fn long(&self) -> Option<(Kind, usize)> {
        if let Some(string) = self.rest.strip_prefix('"') {
            let mut escaped = false;
            let end = string.find(|letter| {
                let ends = !escaped && (letter == '"' || letter == '\n');
                escaped = !escaped && letter == '\\';
                ends
            });
            return Some((Kind::Text, end.map_or(self.rest.len(), |end| end + 2)));
        }
        if let Some(value) = self.rest.strip_prefix('%') {
            let length = suffix_identifier(value);
            let rest = value.get(length..).unwrap_or_default();
            let number = rest.strip_prefix('#').map_or(0, |rest| 1 + digits(rest));
            return (length > 0).then_some((Kind::Value, 1 + length + number));
        }
        let length = suffix_identifier(self.rest.strip_prefix(['#', '!'])?);
        (length > 0).then_some((Kind::Alias, 1 + length))
    }
}

/// Bytes of the number or the name at the head of a text, which MLIR calls a suffix identifier.
fn suffix_identifier(text: &str) -> usize {
    match digits(text) {
        0 => {
            let ends = |c: char| !c.is_ascii_alphanumeric() && !"$._-".contains(c);
            text.find(ends).unwrap_or(text.len())
        }
        number => number,
    }
}

fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        loop {
            match self.gap() {
                0 => break,
                bytes => self.skip(bytes),
            };
        }
        let first = self.rest.chars().next()?;
        let index_array = self
            .rest
            .strip_prefix("array<")
            .is_some_and(|rest| rest.trim_start().starts_with("index"));
        let (kind, bytes) = match first {
            // An arrow and a comparison are no brackets.
            _ if ["->", ">=", "<="].iter().any(|sign| self.rest.starts_with(sign)) => {
                (Kind::Other, 2)
            }
            _ if index_array => (Kind::IndexArray, 6),
            '(' | '[' | '{' | '<' => (Kind::Open, 1),
            ')' | ']' | '}' | '>' => (Kind::Close, 1),
            '+' | '-' | '*' => (Kind::Operator, 1),
            _ if is_word(first) => {
                let end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
                let word = self.rest.get(..end).unwrap_or_default();
                let is_operator = ["floordiv", "ceildiv", "mod"].contains(&word);
                (if is_operator { Kind::Operator } else { Kind::Word }, end)
            }
            _ => self.long().unwrap_or((Kind::Other, first.len_utf8())),
        };
        let (line, column) = (self.line, self.column);
        Some(Token { kind, text: self.skip(bytes), line, column })
    }
}

/// Whether the extents of a vector's shape, as in `4x8xf32`, make at most [`MAX_VECTOR`] numbers.
fn is_short_vector(shape: &str) -> bool {
    let mut numbers = 1_u64;
    for extent in shape.split('x') {
        if extent.starts_with(|letter: char| !letter.is_ascii_digit()) {
            break; // The type of the numbers.
        }
        numbers = numbers.saturating_mul(extent.parse().unwrap_or(u64::MAX));
    }
    numbers <= MAX_VECTOR
}

/// Whether the number of a result is small, where a value has one.
fn is_short_result(value: &str) -> bool {
    value
        .split_once('#')
        .is_none_or(|(_, number)| number.parse::<u64>().is_ok_and(|number| number <= MAX_RESULTS))
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> Option<(usize, usize, String)> {
        check(text, "t").err().map(|error| (error.place.line, error.place.column, error.message))
    }

    #[test]
    fn nesting_is_bounded_for_every_bracket() {
        let deep = |open: &str, close: &str, levels: usize| {
            format!("x\n {}{}", open.repeat(levels), close.repeat(levels))
        };
        for (open, close) in [("[", "]"), ("(", ")"), ("{", "}"), ("tuple<", ">"), ("- ", "")] {
            assert_eq!(fault(&deep(open, close, MAX_NESTING)), None, "{open}");
            let (line, column, message) =
                fault(&deep(open, close, MAX_NESTING + 1)).unwrap_or_default();
            let last = open.trim_end().chars().count() - 1;
            assert_eq!((line, column), (2, 2 + open.len() * MAX_NESTING + last), "{open}");
            assert!(message.starts_with("the IR is nested more than 400 levels deep"), "{message}");
        }
    }

    #[test]
    fn operators_of_an_affine_expression_are_levels() {
        for operator in ["+", "-", "*", "floordiv", "ceildiv", "mod"] {
            let sum = |terms: usize| {
                let terms = vec!["s0"; terms];
                format!("affine_map<()[s0] -> ({})>", terms.join(&format!(" {operator} ")))
            };
            // Two brackets are open.
            assert_eq!(fault(&sum(MAX_NESTING - 1)), None, "{operator}");
            assert!(fault(&sum(MAX_NESTING)).is_some(), "{operator}");
        }
        // Around brackets they count too; what a comma or another sign parts does not add up.
        let nested = "(s0 + ".repeat(MAX_NESTING / 2 + 1);
        assert!(fault(&nested).is_some());
        let many = MAX_NESTING + 1;
        assert_eq!(fault(&format!("({})", "s0 - 1, ".repeat(many))), None);
        assert_eq!(fault(&"(s0 + 1) * 2, ".repeat(many)), None);
        assert_eq!(fault(&"%c-1 = arith.constant -1 : i32\n".repeat(many)), None);
        assert_eq!(fault(&format!("(s0 {}{}", "+ 1".repeat(9), ")".repeat(many))), None);
    }

    #[test]
    fn brackets_of_strings_comments_and_arrows_do_not_count() {
        let many = MAX_NESTING + 1;
        assert_eq!(fault(&format!("\"{}\"", "[".repeat(many))), None);
        assert_eq!(fault(&format!("\"\\\"{}\"", "[".repeat(many))), None);
        assert_eq!(fault(&format!("// {}\n", "[".repeat(many))), None);
        assert_eq!(fault(&"() -> ".repeat(many)), None);
        assert_eq!(fault(&"(d0 - 1 >= 0) ".repeat(many)), None);
        // What stands behind a string or a comment does count.
        assert!(fault(&format!("\"[\" // [\n{}", "[".repeat(many))).is_some());
    }

    #[test]
    fn empty_names_are_refused_where_they_name() {
        for text in ["module @\"\" {}", "\"a.b\"() {sym_name = \"\"} : () -> ()", "call @\"\"()"] {
            assert!(
                fault(text).is_some_and(|(_, _, text)| text.contains("a name is empty")),
                "{text}"
            );
        }
        assert_eq!(fault("x = \"\", @a, @\"b\", {sym_name = \"c\"}"), None);
    }

    #[test]
    fn results_of_too_high_numbers_are_refused() {
        for short in ["%0#0", "%a#65536", "%0:2 = f() %0#1", "%0"] {
            assert_eq!(fault(short), None, "{short}");
        }
        for long in ["%0#65537", "%0#2147483648", "%0#99999999999999999999999"] {
            let (_, _, message) = fault(long).unwrap_or_default();
            assert!(message.contains("beyond 65536"), "{long}: {message}");
        }
    }

    #[test]
    fn vectors_of_too_many_numbers_are_refused() {
        for short in ["4xf32", "1024x1024xf32", "f32", "0x5000000xi8", "[4]xf32"] {
            assert_eq!(fault(&format!("vector<{short}>")), None, "{short}");
        }
        for long in ["1048577xf32", "1024x1025xf32", "99999999999999999999xf32"] {
            let found = fault(&format!("x : vector< {long}>"));
            let message = "a vector has at most 1048576 numbers; use a memref".to_owned();
            assert_eq!(found, Some((1, 13, message)), "{long}");
        }
        assert_eq!(fault("memref<5000000000xf32>"), None);
    }

    #[test]
    fn an_array_of_index_is_refused_outside_of_strings() {
        let message = "MLIR 22 can't read an array of index; write array<i64: ...>".to_owned();
        assert_eq!(fault("a =\n  array< index: 1>"), Some((2, 3, message)));
        assert_eq!(fault("\"array<index: 1>\" // array<index: 1>"), None);
        assert_eq!(fault("array<i64: 1>, myarray<index>"), None);
    }
}
