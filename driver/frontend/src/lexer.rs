//! Text to tokens.
//!
//! Never fails: a run of what is no token is reported once and becomes [`TokenKind::Unknown`].
//! The last token is always [`TokenKind::End`].

use crate::diagnostics::Diagnostic;
use crate::limits;
use crate::source::{Source, Span};

/// A token and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Where it stands.
    pub span: Span,
}

/// The tokens of the language.
#[derive(Clone, Debug, PartialEq)]
pub enum TokenKind {
    /// A name that is no keyword.
    Name(String),
    /// A reserved word.
    Keyword(Keyword),
    /// An integer literal.
    Int(u64),
    /// A floating-point literal, as written.
    Float(String),
    /// Punctuation, one or two characters.
    Mark(&'static str),
    /// Something that is no part of the language; already reported.
    Unknown,
    /// The end of the text.
    End,
}

/// Reserved words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the word itself")]
pub enum Keyword {
    Param,
    Scalar,
    Struct,
    Grid,
    Field,
    Const,
    Temp,
    Boundary,
    Fn,
    Reduce,
    Repeat,
    Steps,
    On,
    In,
    If,
    Then,
    Else,
    Let,
}

/// Every reserved word with its spelling.
pub const KEYWORDS: [(&str, Keyword); 18] = [
    ("param", Keyword::Param),
    ("scalar", Keyword::Scalar),
    ("struct", Keyword::Struct),
    ("grid", Keyword::Grid),
    ("field", Keyword::Field),
    ("const", Keyword::Const),
    ("temp", Keyword::Temp),
    ("boundary", Keyword::Boundary),
    ("fn", Keyword::Fn),
    ("reduce", Keyword::Reduce),
    ("repeat", Keyword::Repeat),
    ("steps", Keyword::Steps),
    ("on", Keyword::On),
    ("in", Keyword::In),
    ("if", Keyword::If),
    ("then", Keyword::Then),
    ("else", Keyword::Else),
    ("let", Keyword::Let),
];

/// Longest first, so that `<=` is not read as `<` and `=`. A shift is two marks: `>>` also closes
/// the types of `vec<2, vec<2, f32>>`.
const MARKS: [&str; 33] = [
    "..", "->", "==", "!=", "<=", ">=", "&&", "||", "(", ")", "[", "]", "{", "}", ",", ";", ":",
    ".", "=", "+", "-", "*", "/", "%", "<", ">", "!", "'", "&", "|", "^", "~", "?",
];

impl Keyword {
    /// The word itself.
    pub fn text(self) -> &'static str {
        KEYWORDS.iter().find(|(_, keyword)| *keyword == self).map_or("", |(text, _)| text)
    }

    /// Whether an item starts with it.
    pub fn starts_item(self) -> bool {
        !matches!(self, Self::On | Self::In | Self::If | Self::Then | Self::Else | Self::Let)
    }
}

impl TokenKind {
    /// What to call the token in a message.
    pub fn describe(&self) -> String {
        match self {
            Self::Name(name) => format!("`{}`", shorten(name)),
            Self::Keyword(keyword) => format!("the keyword `{}`", keyword.text()),
            Self::Int(value) => format!("`{value}`"),
            Self::Float(text) => format!("`{}`", shorten(text)),
            Self::Mark(mark) => format!("`{mark}`"),
            Self::Unknown => "something unknown".into(),
            Self::End => "the end of the file".into(),
        }
    }
}

/// Cuts text that is too long to be quoted.
pub fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or("")),
        None => text.into(),
    }
}

/// Text as it can be shown in a message: control characters are escaped.
fn shown(text: &str) -> String {
    text.chars()
        .flat_map(|letter| {
            if letter == '"' || letter == '\'' {
                vec![letter]
            } else {
                letter.escape_debug().collect()
            }
        })
        .collect()
}

/// All tokens of a source, with what was found wrong on the way.
pub fn tokenize(source: &Source) -> (Vec<Token>, Vec<Diagnostic>) {
    let mut lexer = Lexer { text: &source.text, at: 0, tokens: Vec::new(), errors: Vec::new() };
    if source.text.len() > limits::TEXT {
        lexer.text = "";
        lexer.errors.push(
            Diagnostic::error_without_place(format!(
                "the file has {} bytes; a program has at most {}",
                source.text.len(),
                limits::TEXT
            ))
            .help("a stencil program is a few lines; is this the right file?"),
        );
    }
    while lexer.step() {}
    (lexer.tokens, lexer.errors)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    tokens: Vec<Token>,
    errors: Vec<Diagnostic>,
}

impl<'a> Lexer<'a> {
    /// Reads one token or skips one run of something else; false after the end.
    fn step(&mut self) -> bool {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            self.push(TokenKind::End, 0);
            return false;
        };
        if first.is_whitespace() || first == '\u{feff}' {
            self.at += first.len_utf8();
        } else if first == '#' {
            self.at += rest.find('\n').unwrap_or(rest.len());
        } else if first.is_ascii_alphabetic() || first == '_' {
            let word = take(rest, is_word);
            let keyword = KEYWORDS.iter().find(|(text, _)| *text == word);
            let kind = match keyword {
                Some((_, keyword)) => TokenKind::Keyword(*keyword),
                None => TokenKind::Name(self.name(word)),
            };
            self.push(kind, word.len());
        } else if first.is_ascii_digit() {
            self.number();
        } else if let Some(mark) = MARKS.into_iter().find(|mark| rest.starts_with(mark)) {
            self.push(TokenKind::Mark(mark), mark.len());
        } else {
            self.unknown();
        }
        true
    }

    /// A name, cut where it is too long.
    fn name(&mut self, word: &str) -> String {
        if word.len() > limits::NAME {
            let message = format!("a name has at most {} characters", limits::NAME);
            let remark = format!("{} characters", word.len());
            let error = Diagnostic::error(message, self.span(word.len()), remark);
            self.errors.push(error.help("write a shorter one"));
        }
        word.get(..limits::NAME).unwrap_or(word).into()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn push(&mut self, kind: TokenKind, length: usize) {
        let span = self.span(length);
        self.at += length;
        self.tokens.push(Token { kind, span });
    }

    fn span(&self, length: usize) -> Span {
        // `tokenize` has seen to it that offsets fit.
        Span::new(self.at as u32, (self.at + length) as u32)
    }

    /// `12`, `0.5`, `2.`, `1e-4`, `1.5e3`; in `1..N` and after a dot (a lane) digits alone.
    fn number(&mut self) {
        let rest = self.rest();
        let mut length = take(rest, |c| c.is_ascii_digit()).len();
        let after_dot =
            matches!(self.tokens.last(), Some(token) if token.kind == TokenKind::Mark("."));
        let mut float = false;
        if !after_dot {
            let tail = rest.get(length..).unwrap_or("");
            if tail.starts_with('.') && !tail.starts_with("..") {
                float = true;
                length += 1;
                length += take(rest.get(length..).unwrap_or(""), |c| c.is_ascii_digit()).len();
            }
            let exponent = exponent(rest.get(length..).unwrap_or(""));
            float |= exponent > 0;
            length += exponent;
        }
        let suffix = take(rest.get(length..).unwrap_or(""), is_word);
        let text = rest.get(..length).unwrap_or("");
        if !suffix.is_empty() {
            let whole = self.span(length + suffix.len());
            let error = Diagnostic::error(
                format!("the number `{}` runs into `{}`", shorten(text), shorten(suffix)),
                whole,
                "",
            );
            self.errors.push(match suffix {
                "f" | "F" | "f32" | "f64" | "d" | "l" | "L" => {
                    error.help(format!("write `{text}`: a literal takes the type of its context"))
                }
                "x" | "X" => error.help("write the number in decimal"),
                "e" | "E" => error.help(format!("an exponent has digits, as in `{text}e-3`")),
                _ => error.help("put an operator or a space between them"),
            });
        }
        let kind = match (float, text.parse::<u64>(), text.parse::<f64>()) {
            (false, Ok(value), _) => TokenKind::Int(value),
            (false, Err(_), _) => {
                let error =
                    Diagnostic::error("this integer does not fit 64 bits", self.span(length), "");
                self.errors.push(error.help("write a float, as in `1e20`, or a smaller number"));
                TokenKind::Int(0)
            }
            (true, _, Ok(value)) if value == 0.0 && has_digits(text) => {
                let error =
                    Diagnostic::error("this number is too small for f64", self.span(length), "");
                self.errors.push(error.help("the smallest f64 is about 5e-324; write 0"));
                TokenKind::Float("0.0".into())
            }
            (true, _, Ok(value)) if value.is_finite() => TokenKind::Float(text.into()),
            (true, ..) => {
                let error =
                    Diagnostic::error("this number is too large for f64", self.span(length), "");
                self.errors.push(error.help("the largest f64 is about 1.8e308"));
                TokenKind::Float("0.0".into())
            }
        };
        self.push(kind, length);
        self.at += suffix.len();
    }

    /// One error for a run of characters that start no token.
    fn unknown(&mut self) {
        let run = take(self.rest(), |c| {
            !c.is_whitespace()
                && !c.is_ascii_alphanumeric()
                && !"_#()[]{},;:.=+-*/%<>!'&|^~?".contains(c)
        });
        let mut length = run.len().max(self.rest().chars().next().map_or(1, char::len_utf8));
        if run == "\"" {
            // A text in quotes is one error.
            let line = self.rest().lines().next().unwrap_or_default();
            let end = line.get(1..).and_then(|rest| rest.find('"'));
            length = end.map_or(length, |end| end + 2);
        }
        let error = Diagnostic::error(
            format!("`{}` is not part of the language", shown(&shorten(run))),
            self.span(length),
            "",
        );
        let error = match run.chars().next() {
            Some('\u{2212}' | '\u{2013}' | '\u{2014}') => error.help("write the minus sign as `-`"),
            Some('\u{d7}' | '\u{b7}') => error.help("write the product as `*`"),
            Some('"') => error.help("leave the quotes out; a comment starts with `#`"),
            _ => error
                .help("names use the letters a-z, A-Z, digits and `_`; a comment starts with `#`"),
        };
        self.errors.push(error);
        self.push(TokenKind::Unknown, length);
    }
}

/// Whether a number's digits before the exponent are not all 0.
fn has_digits(text: &str) -> bool {
    let digits = text.split(['e', 'E']).next().unwrap_or_default();
    digits.contains(|digit: char| ('1'..='9').contains(&digit))
}

/// The length of `e-12` and the like at the start, or 0.
fn exponent(text: &str) -> usize {
    let Some(rest) = text.strip_prefix(['e', 'E']) else {
        return 0;
    };
    let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    match take(digits, |c| c.is_ascii_digit()).len() {
        0 => 0,
        count => text.len() - digits.len() + count,
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The longest start of a text whose characters all satisfy a condition.
fn take(text: &str, condition: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !condition(c)).unwrap_or(text.len());
    text.get(..end).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        let (tokens, errors) = tokenize(&Source::new("t", text));
        assert_eq!(errors, [], "{text}");
        tokens.into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn ranges_and_floats_are_told_apart() {
        use TokenKind::{End, Float, Int, Mark, Name};
        assert_eq!(kinds("1..2"), [Int(1), Mark(".."), Int(2), End]);
        assert_eq!(kinds("1.5e-3"), [Float("1.5e-3".into()), End]);
        assert_eq!(kinds("2.*x"), [Float("2.".into()), Mark("*"), Name("x".into()), End]);
        assert_eq!(kinds("1e5"), [Float("1e5".into()), End]);
        assert_eq!(kinds("v.0.1"), [Name("v".into()), Mark("."), Int(0), Mark("."), Int(1), End]);
        assert_eq!(kinds("A' # A"), [Name("A".into()), Mark("'"), End]);
    }

    #[test]
    fn what_is_no_token_is_reported_once() {
        let (tokens, errors) =
            tokenize(&Source::new("t", "a $$\u{2212} 0.5f 99999999999999999999 1e999"));
        assert_eq!(errors.len(), 4, "{errors:?}");
        assert_eq!(tokens.len(), 6);
    }
}
