//! Rust code as rules look at it: a flat list of tokens with their lines, comments left out.

use std::str::FromStr;

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// A Rust file.
pub struct Source {
    /// Its path from the tree's root.
    pub name: String,
    /// All of its text.
    pub text: String,
    /// Its tokens in order; doc comments are none.
    pub tokens: Vec<Token>,
    /// Its doc comments, a line each.
    pub docs: Vec<Token>,
}

/// A token of code.
#[derive(Debug)]
pub struct Token {
    /// Its kind.
    pub kind: Kind,
    /// How it is written, a string without its quotes.
    pub text: String,
    /// The line in which it begins, counted from 1.
    pub line: usize,
    /// The line in which it ends.
    pub last_line: usize,
    /// Whether it stands in an item that only tests compile.
    pub is_test: bool,
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A keyword or a name.
    Word,
    /// A string literal.
    Text,
    /// A string literal without escapes.
    RawText,
    /// Any other literal.
    Literal,
    /// Punctuation; `::` is one token.
    Mark,
    /// An opening parenthesis, bracket or brace.
    Open,
    /// A closing one.
    Close,
    /// A doc comment.
    Doc,
}

/// A function with a body.
pub struct Function<'a> {
    /// Its name.
    pub name: &'a str,
    /// The line of `fn`.
    pub line: usize,
    /// The line of its last brace.
    pub last_line: usize,
}

impl Source {
    /// Reads a file's text.
    ///
    /// # Errors
    /// When the text is no Rust code.
    pub fn read(name: &str, text: &str) -> Result<Self> {
        let stream = TokenStream::from_str(text).map_err(|error| anyhow!("{error}"))?;
        let mut tokens = Vec::new();
        flatten(stream, false, &mut tokens);
        let (docs, tokens) = tokens.into_iter().partition(|token| token.kind == Kind::Doc);
        Ok(Self { name: name.to_owned(), text: text.to_owned(), tokens, docs })
    }

    /// All functions that have a body, those inside of others too.
    pub fn functions(&self) -> Vec<Function<'_>> {
        let mut functions = Vec::new();
        for (at, pair) in self.tokens.windows(2).enumerate() {
            let [keyword, name] = pair else { continue };
            if !keyword.is(Kind::Word, "fn") || name.kind != Kind::Word {
                continue;
            }
            if let Some(last_line) = body_end(&self.tokens[at..]) {
                functions.push(Function { name: &name.text, line: keyword.line, last_line });
            }
        }
        functions
    }
}

impl Token {
    /// Whether the token is this one.
    pub fn is(&self, kind: Kind, text: &str) -> bool {
        self.kind == kind && self.text == text
    }
}

/// The line in which the body of the function at the start of `tokens` ends, if it has one.
fn body_end(tokens: &[Token]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut in_body = false;
    for token in tokens {
        match token.kind {
            Kind::Open => {
                in_body |= depth == 0 && token.text == "{";
                depth += 1;
            }
            Kind::Close => {
                depth = depth.checked_sub(1)?;
                if depth == 0 && in_body {
                    return Some(token.line);
                }
            }
            Kind::Mark if depth == 0 && token.text == ";" => return None,
            _ => (),
        }
    }
    None
}

fn flatten(stream: TokenStream, is_test: bool, tokens: &mut Vec<Token>) {
    let mut trees = stream.into_iter().peekable();
    // An item that only tests compile ends with its braces or its semicolon.
    let mut in_test_item = false;
    while let Some(tree) = trees.next() {
        let span = tree.span();
        let (mut line, mut last_line) = (span.start().line, span.end().line);
        let test = is_test || in_test_item;
        let (kind, text) = match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::None => ("", ""),
                };
                let edge = |kind, text: &str, line, tokens: &mut Vec<Token>| {
                    let text = text.to_owned();
                    tokens.push(Token { kind, text, line, last_line: line, is_test: test });
                };
                edge(Kind::Open, open, line, tokens);
                flatten(group.stream(), test, tokens);
                edge(Kind::Close, close, last_line, tokens);
                in_test_item &= group.delimiter() != Delimiter::Brace;
                continue;
            }
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                let inner =
                    trees.next_if(|t| matches!(t, TokenTree::Punct(p) if p.as_char() == '!'));
                if let Some(attribute) = trees.peek().and_then(attribute) {
                    if let Some(written) = attribute.strip_prefix("doc =") {
                        trees.next();
                        let text = literal_token(written.trim().to_owned()).1;
                        tokens.push(Token {
                            kind: Kind::Doc,
                            text,
                            line,
                            last_line,
                            is_test: test,
                        });
                        continue;
                    }
                    in_test_item |= inner.is_none() && is_for_tests(&attribute);
                }
                (Kind::Mark, "#".to_owned())
            }
            TokenTree::Punct(mark) => {
                let is_path = mark.as_char() == ':'
                    && mark.spacing() == Spacing::Joint
                    && trees
                        .next_if(|t| matches!(t, TokenTree::Punct(p) if p.as_char() == ':'))
                        .is_some();
                in_test_item &= mark.as_char() != ';';
                (Kind::Mark, if is_path { "::".to_owned() } else { mark.to_string() })
            }
            TokenTree::Ident(word) => (Kind::Word, word.to_string()),
            TokenTree::Literal(literal) => {
                (line, last_line) = (literal.span().start().line, literal.span().end().line);
                literal_token(literal.to_string())
            }
        };
        tokens.push(Token { kind, text, line, last_line, is_test: test });
    }
}

/// Whether an attribute leaves its item to tests: `test`, `cfg(test)`, `cfg(all(test, ...))`.
fn is_for_tests(attribute: &str) -> bool {
    let mut words = attribute.split(|c: char| !c.is_alphanumeric());
    attribute == "test"
        || attribute.starts_with("cfg (")
            && !attribute.contains("not")
            && words.any(|w| w == "test")
}

/// The words of an attribute's brackets.
fn attribute(tree: &TokenTree) -> Option<String> {
    match tree {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
            Some(group.stream().to_string())
        }
        _ => None,
    }
}

fn literal_token(written: String) -> (Kind, String) {
    let is_text = written.ends_with(['"', '#']) && !written.starts_with(['\'', '#']);
    let quotes = written.find('"').zip(written.rfind('"')).filter(|_| is_text);
    match quotes {
        Some((first, last)) if first < last => {
            let is_raw = written[..first].contains('r');
            let kind = if is_raw { Kind::RawText } else { Kind::Text };
            (kind, written[first + 1..last].to_owned())
        }
        _ => (Kind::Literal, written),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token> {
        Source::read("a.rs", text).unwrap().tokens
    }

    #[test]
    fn literals_are_told_apart_and_comments_left_out() {
        let found =
            tokens("/// \"doc\"\nconst A: X = (\"a\", r#\"b\n\"c\"#, '\"', b\"d\", 1); // \"e\"\n");
        let texts = |kind| {
            let of_kind = found.iter().filter(move |token| token.kind == kind);
            of_kind
                .map(|token| (token.text.as_str(), token.line, token.last_line))
                .collect::<Vec<_>>()
        };
        assert_eq!(texts(Kind::Text), [("a", 2, 2), ("d", 3, 3)]);
        assert_eq!(texts(Kind::RawText), [("b\n\"c", 2, 3)]);
        assert_eq!(texts(Kind::Literal), [("'\"'", 3, 3), ("1", 3, 3)]);
    }

    #[test]
    fn doc_comments_are_kept_apart() {
        let source = Source::read("a.rs", "/// One \"x\".\n/// Two.\nstruct A;\n").unwrap();
        let docs: Vec<_> = source.docs.iter().map(|doc| (doc.text.as_str(), doc.line)).collect();
        assert_eq!(docs, [(" One \\\"x\\\".", 1), (" Two.", 2)]);
        assert!(source.tokens.iter().all(|token| token.kind != Kind::Doc));
    }

    #[test]
    fn items_of_tests_are_known() {
        let code = "use a::b;\n#[cfg(test)]\nuse c::d;\n#[test]\nfn e() { f(); }\n\
                    #[cfg(unix)]\nfn g() {}\n";
        let test =
            |word| tokens(code).iter().find(|token| token.is(Kind::Word, word)).unwrap().is_test;
        assert!(test("c") && test("d") && test("e") && test("f"));
        assert!(!test("a") && !test("g"));
    }

    #[test]
    fn functions_end_with_their_bodies() {
        let code = "fn a(f: fn(u8) -> u8) -> [u8; 2] where A: B {\n    fn b() {}\n    c\n}\n";
        let source = Source::read("a.rs", code).unwrap();
        let found: Vec<_> =
            source.functions().iter().map(|f| (f.name, f.line, f.last_line)).collect();
        assert_eq!(found, [("a", 1, 4), ("b", 2, 2)]);
    }

    #[test]
    fn text_that_is_no_code_is_refused() {
        assert!(Source::read("a.rs", "fn a( {").is_err());
    }
}
