//! Text of SL to tokens: those of C, as far as SL has them.
//!
//! Never fails: a run of what is no token is reported once. The last token is [`TokenKind::End`].

use crate::diagnostics::Diagnostic;
use crate::lexer::shorten;
use crate::limits;
use crate::source::{Source, Span};
use stencil_runtime::array::Element;

/// A token and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Where it stands.
    pub span: Span,
}

/// The tokens of SL.
#[derive(Clone, Debug, PartialEq)]
pub enum TokenKind {
    /// A name or a word of the language.
    Word(String),
    /// An integer literal and its type.
    Int(u64, Element),
    /// A floating-point literal without its suffix, and its type.
    Float(String, Element),
    /// Punctuation.
    Mark(&'static str),
    /// Something that is no part of the language; already reported.
    Unknown,
    /// The end of the text.
    End,
}

/// Longest first.
const MARKS: [&str; 46] = [
    "<<=", ">>=", "...", "==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "+=", "-=", "*=", "/=",
    "%=", "&=", "|=", "^=", "++", "--", "->", "::", "(", ")", "[", "]", "{", "}", ",", ";", ":",
    "?", ".", "=", "+", "-", "*", "/", "%", "<", ">", "!", "&", "|", "^",
];

impl TokenKind {
    /// What to call the token in a message.
    pub fn describe(&self) -> String {
        match self {
            Self::Word(word) => format!("`{}`", shorten(word)),
            Self::Int(value, _) => format!("`{value}`"),
            Self::Float(text, _) => format!("`{}`", shorten(text)),
            Self::Mark(mark) => format!("`{mark}`"),
            Self::Unknown => "something unknown".into(),
            Self::End => "the end of the file".into(),
        }
    }
}

/// All tokens of a source, with what was found wrong on the way.
pub fn tokenize(source: &Source) -> (Vec<Token>, Vec<Diagnostic>) {
    let mut lexer = Lexer { text: &source.text, at: 0, tokens: Vec::new(), errors: Vec::new() };
    if source.text.len() > limits::TEXT {
        lexer.text = "";
        lexer.errors.push(Diagnostic::error_without_place(format!(
            "the file has {} bytes; a program has at most {}",
            source.text.len(),
            limits::TEXT
        )));
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
    /// Reads one token or skips something else; false after the end.
    fn step(&mut self) -> bool {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            self.push(TokenKind::End, 0);
            return false;
        };
        let after_dot = rest.strip_prefix('.').is_some_and(starts_with_digit);
        if first.is_whitespace() || first == '\u{feff}' {
            self.at += first.len_utf8();
        } else if rest.starts_with("//") {
            self.at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            self.comment();
        } else if first.is_ascii_alphabetic() || first == '_' {
            self.word();
        } else if first.is_ascii_digit() || after_dot {
            self.number();
        } else if first == '~' {
            self.push(TokenKind::Mark("~"), 1);
        } else if let Some(mark) = MARKS.into_iter().find(|mark| rest.starts_with(mark)) {
            self.push(TokenKind::Mark(mark), mark.len());
        } else {
            self.unknown();
        }
        true
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

    fn comment(&mut self) {
        let rest = self.rest();
        let end = rest.get(2..).and_then(|inner| inner.find("*/"));
        if end.is_none() {
            let error = Diagnostic::error("this comment has no end", self.span(2), "");
            self.errors.push(error.help("end it by `*/`"));
        }
        self.at += end.map_or(rest.len(), |end| end + 4);
    }

    fn word(&mut self) {
        let word = take(self.rest(), is_word);
        if word.len() > limits::NAME {
            let message = format!("a name has at most {} characters", limits::NAME);
            let remark = format!("{} characters", word.len());
            self.errors.push(Diagnostic::error(message, self.span(word.len()), remark));
        }
        let name = word.get(..limits::NAME).unwrap_or(word);
        self.push(TokenKind::Word(name.into()), word.len());
    }

    /// `12`, `0x1f`, `12u`, `12LL`, `0.5`, `.5`, `2.`, `1e-4`, `0.5f`.
    fn number(&mut self) {
        let rest = self.rest();
        let hexadecimal = ["0x", "0X"].iter().any(|prefix| rest.starts_with(prefix));
        let mut float = false;
        let length = if hexadecimal {
            2 + take(rest.get(2..).unwrap_or(""), |c| c.is_ascii_hexdigit()).len()
        } else {
            let mut length = take(rest, |c| c.is_ascii_digit()).len();
            if rest.get(length..).unwrap_or("").starts_with('.') {
                float = true;
                length += 1;
                length += take(rest.get(length..).unwrap_or(""), |c| c.is_ascii_digit()).len();
            }
            let exponent = exponent(rest.get(length..).unwrap_or(""));
            float |= exponent > 0;
            length + exponent
        };
        let text = rest.get(..length).unwrap_or("");
        let suffix = take(rest.get(length..).unwrap_or(""), is_word);
        let whole = self.span(length + suffix.len());
        let kind =
            if float { self.float(text, suffix, whole) } else { self.integer(text, suffix, whole) };
        self.push(kind, length + suffix.len());
    }

    fn float(&mut self, text: &str, suffix: &str, span: Span) -> TokenKind {
        let element = match suffix {
            "" => Element::F64,
            "f" | "F" => Element::F32,
            _ => return self.bad_suffix(text, suffix, span),
        };
        let value = match element {
            Element::F32 => text.parse::<f32>().map(f64::from),
            _ => text.parse::<f64>(),
        };
        let digits = text.split(['e', 'E']).next().unwrap_or_default();
        let is_zero = !digits.contains(|digit: char| ('1'..='9').contains(&digit));
        match value {
            Ok(value) if value.is_finite() && (value != 0.0 || is_zero) => {
                TokenKind::Float(text.into(), element)
            }
            value => {
                let how = if value.is_ok_and(|value| value == 0.0) { "small" } else { "large" };
                let ty = if element == Element::F32 { "float" } else { "double" };
                let message = format!("this number is too {how} for {ty}");
                self.errors.push(Diagnostic::error(message, span, ""));
                TokenKind::Float("0.0".into(), element)
            }
        }
    }

    /// The type is the first of `int`, `int64` and their unsigned forms that holds the value, as in
    /// C.
    fn integer(&mut self, text: &str, suffix: &str, span: Span) -> TokenKind {
        let lower = suffix.to_ascii_lowercase();
        let (unsigned, wide) = match lower.as_str() {
            "" => (false, false),
            "u" => (true, false),
            "l" | "ll" => (false, true),
            "ul" | "ull" | "lu" | "llu" => (true, true),
            _ => return self.bad_suffix(text, suffix, span),
        };
        let digits = text.strip_prefix("0x").or(text.strip_prefix("0X"));
        let octal = digits.is_none() && text.len() > 1 && text.starts_with('0');
        if octal {
            let message = format!("`{}` is octal in C, and SL has no octal numbers", shorten(text));
            let error = Diagnostic::error(message, span, "");
            self.errors.push(error.help("write it in decimal, without zeros in front"));
            return TokenKind::Int(0, Element::I32);
        }
        let value = match digits {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        let Ok(value) = value else {
            let error = Diagnostic::error("this integer does not fit 64 bits", span, "");
            self.errors.push(error.help("write a double, as in `1e20`, or a smaller number"));
            return TokenKind::Int(0, Element::I32);
        };
        let hexadecimal = digits.is_some();
        let element = match (unsigned, wide) {
            (false, false) if i32::try_from(value).is_ok() => Element::I32,
            (true, false) if u32::try_from(value).is_ok() => Element::U32,
            (false, false) if hexadecimal && u32::try_from(value).is_ok() => Element::U32,
            (false, _) if i64::try_from(value).is_ok() => Element::I64,
            _ => Element::U64,
        };
        TokenKind::Int(value, element)
    }

    fn bad_suffix(&mut self, text: &str, suffix: &str, span: Span) -> TokenKind {
        let message = format!("the number `{}` runs into `{}`", shorten(text), shorten(suffix));
        let error = Diagnostic::error(message, span, "");
        self.errors.push(error.help(
            "suffixes are `u`, `l`, `ll` and `ul`, and `f` of a number with a point or an exponent",
        ));
        TokenKind::Int(0, Element::I32)
    }

    /// One error for a run of characters that start no token.
    fn unknown(&mut self) {
        let run = take(self.rest(), |c| {
            !c.is_whitespace()
                && !c.is_ascii_alphanumeric()
                && !"_()[]{},;:.=+-*/%<>!&|^~?".contains(c)
        });
        let length = run.len().max(self.rest().chars().next().map_or(1, char::len_utf8));
        let quote = |letter: &char| matches!(letter, '"' | '\'');
        let escaped = |letter: char| match Some(letter).filter(quote) {
            Some(quote) => quote.to_string(),
            None => letter.escape_debug().collect(),
        };
        let shown: String = shorten(run).chars().map(escaped).collect();
        let message = format!("`{shown}` is not part of SL");
        let error = Diagnostic::error(message, self.span(length), "");
        let error = match run.chars().next() {
            Some('#') => error.help("SL has no preprocessor; a comment starts with `//`"),
            Some('"' | '\'') => error.help("SL has no strings and no characters"),
            Some('\u{2212}' | '\u{2013}' | '\u{2014}') => error.help("write the minus sign as `-`"),
            _ => error.help("names use the letters a-z, A-Z, digits and `_`"),
        };
        self.errors.push(error);
        self.push(TokenKind::Unknown, length);
    }
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
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
    use super::TokenKind::{End, Float, Int, Mark, Word};
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        let (tokens, errors) = tokenize(&Source::new("t.sl", text));
        assert_eq!(errors, [], "{text}");
        tokens.into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn numbers_have_the_types_of_c() {
        assert_eq!(kinds("7"), [Int(7, Element::I32), End]);
        assert_eq!(kinds("2147483648"), [Int(1 << 31, Element::I64), End]);
        assert_eq!(kinds("0x80000000"), [Int(1 << 31, Element::U32), End]);
        assert_eq!(kinds("7u 7LL"), [Int(7, Element::U32), Int(7, Element::I64), End]);
        assert_eq!(
            kinds(".5f 1e3"),
            [Float(".5".into(), Element::F32), Float("1e3".into(), Element::F64), End]
        );
        assert_eq!(
            kinds("a/*b*/+=//c\n2."),
            [Word("a".into()), Mark("+="), Float("2.".into(), Element::F64), End]
        );
    }

    #[test]
    fn what_is_no_token_is_reported_once() {
        let (tokens, errors) = tokenize(&Source::new("t", "a $$\u{2212} 010 1f 1e99f 3.x /*"));
        assert_eq!(errors.len(), 6, "{errors:?}");
        assert_eq!(tokens.len(), 7);
    }
}
