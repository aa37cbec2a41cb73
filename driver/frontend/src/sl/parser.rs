//! Tokens of SL to a tree: the keys of a file and their values.
//!
//! Never fails: after a fault in a value the parser goes on at the next key. `statements.rs` has
//! the blocks, `expressions.rs` what stands in them.

use super::lexer::{Token, TokenKind, tokenize};
use super::tree::{Block, File};
use super::types;
use crate::ast::{Name, Spanned};
use crate::diagnostics::Diagnostic;
use crate::lexer::shorten;
use crate::source::{Source, Span};
use crate::suggest;
use stencil_runtime::array::Element;

/// A fault that is reported already.
pub(super) struct Failed;

pub(super) type Parsed<T> = Result<T, Failed>;

/// The keys, in the order of the paper, and two of our own.
pub const KEYS: [&str; 9] = [
    "NumDimensions",
    "StencilSize",
    "DataType",
    "FunctionName",
    "ScalarVariables",
    "CellValue",
    "EdgeValue",
    "Converged",
    "ConvergedEvery",
];

/// Reads a source.
pub fn parse(source: &Source) -> (File, Vec<Diagnostic>) {
    let (tokens, errors) = tokenize(source);
    let mut parser = Parser { tokens: &tokens, at: 0, errors, nesting: 0, operators: 0 };
    let mut file = File::default();
    while *parser.peek() != TokenKind::End {
        let start = parser.at;
        if parser.pair(&mut file).is_err() {
            parser.skip_to_next_key(start);
        }
    }
    (file, parser.errors)
}

pub(super) struct Parser<'a> {
    tokens: &'a [Token],
    pub(super) at: usize,
    pub(super) errors: Vec<Diagnostic>,
    /// Brackets, prefix operators and statements around the present token.
    pub(super) nesting: usize,
    /// Infix operators of the present statement.
    pub(super) operators: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn peek(&self) -> &'a TokenKind {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> &'a TokenKind {
        self.tokens.get(self.at + ahead).map_or(&TokenKind::End, |token| &token.kind)
    }

    pub(super) fn span(&self) -> Span {
        self.tokens.get(self.at).map_or(Span::default(), |token| token.span)
    }

    /// From a place to the end of the token before the present one.
    pub(super) fn since(&self, start: Span) -> Span {
        let last = self.at.checked_sub(1).and_then(|index| self.tokens.get(index));
        last.map_or(start, |token| start.to(token.span))
    }

    pub(super) fn bump(&mut self) {
        if *self.peek() != TokenKind::End {
            self.at += 1;
        }
    }

    pub(super) fn is(&self, mark: &'static str) -> bool {
        *self.peek() == TokenKind::Mark(mark)
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), TokenKind::Word(found) if found == word)
    }

    pub(super) fn is_word_at(&self, place: usize, word: &str) -> bool {
        let token = self.tokens.get(place);
        token.is_some_and(|token| token.kind == TokenKind::Word(word.to_owned()))
    }

    pub(super) fn eat(&mut self, mark: &'static str) -> bool {
        let found = self.is(mark);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn expect(&mut self, mark: &'static str, why: &str) -> Parsed<()> {
        match self.eat(mark) {
            true => Ok(()),
            false if mark == ";" && *self.peek() != TokenKind::Unknown => {
                // It belongs to the end of what stands before.
                let last = self.at.checked_sub(1).and_then(|index| self.tokens.get(index));
                let end = last.map_or(self.span().start, |token| token.span.end);
                let message = format!("expected `;` {why}, found {}", self.peek().describe());
                Err(self.report(Diagnostic::error(message, Span::new(end, end), "")))
            }
            false => Err(self.expected(format!("`{mark}` {why}").trim_end())),
        }
    }

    pub(super) fn report(&mut self, error: Diagnostic) -> Failed {
        self.errors.push(error);
        Failed
    }

    pub(super) fn expected(&mut self, what: &str) -> Failed {
        if *self.peek() == TokenKind::Unknown {
            return Failed; // The lexer has reported it.
        }
        let message = format!("expected {what}, found {}", self.peek().describe());
        let error = Diagnostic::error(message, self.span(), "");
        self.report(error)
    }

    pub(super) fn name(&mut self, what: &str) -> Parsed<Name> {
        let span = self.span();
        let TokenKind::Word(word) = self.peek() else { return Err(self.expected(what)) };
        if types::is_reserved(word) {
            let message = format!("expected {what}, found the word `{word}` of C");
            let error = Diagnostic::error(message, span, "");
            let help = types::refused_statement(word).unwrap_or("choose another name");
            return Err(self.report(error.help(help)));
        }
        self.bump();
        Ok(Name::new(word.clone(), span))
    }

    /// One key and its value.
    fn pair(&mut self, file: &mut File) -> Parsed<()> {
        let span = self.span();
        let TokenKind::Word(key) = self.peek() else {
            let error = self.expected("a key");
            return Err(error);
        };
        self.bump();
        if !KEYS.contains(&key.as_str()) {
            file.unknown = true;
            let message = format!("`{}` is no key of SL", shorten(key));
            let error = Diagnostic::error(message, span, "");
            let error = match suggest::nearest(key, KEYS) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.note(format!("the keys are {}", KEYS.join(", "))),
            };
            return Err(self.report(error));
        }
        let first = file.keys.iter().find(|other| other.node == *key).map(|other| other.span);
        if let Some(first) = first {
            let error = Diagnostic::error(format!("`{key}` is given twice"), span, "again here");
            self.report(error.see(first, "first here").help("leave one of them out"));
        }
        file.keys.push(Name::new(key.clone(), span));
        match key.as_str() {
            "NumDimensions" => file.dimensions = Some(self.integer("a number of dimensions")?),
            "StencilSize" => file.stencil_size = Some(self.sizes()?),
            "DataType" => {
                let start = self.span();
                let element = self.element()?;
                file.data_type = Some(Spanned::new(element, self.since(start)));
            }
            "FunctionName" => file.function_name = Some(self.name("the name of a function")?),
            "ScalarVariables" => self.scalars(&mut file.scalars)?,
            "CellValue" => file.cell_value = Some(self.block(span)?),
            "EdgeValue" => file.edge_value = Some(self.block(span)?),
            "Converged" => file.converged = Some(self.block(span)?),
            _ => file.every = Some(self.integer("a number of iterations")?),
        }
        Ok(())
    }

    /// Goes on at the next key that stands in no brace.
    fn skip_to_next_key(&mut self, start: usize) {
        self.at = self.at.max(start + 1);
        self.nesting = 0;
        let opened = |tokens: &[Token]| {
            tokens.iter().fold(0_i64, |depth, token| match token.kind {
                TokenKind::Mark("{") => depth + 1,
                TokenKind::Mark("}") => (depth - 1).max(0),
                _ => depth,
            })
        };
        let mut depth = opened(self.tokens.get(start..self.at).unwrap_or_default());
        loop {
            match self.peek() {
                TokenKind::End => return,
                TokenKind::Mark("{") => depth += 1,
                TokenKind::Mark("}") => depth = (depth - 1).max(0),
                // A key is no name in C, so it also ends a block whose brace is missing.
                TokenKind::Word(word) if KEYS.contains(&word.as_str()) => return,
                _ => {}
            }
            self.bump();
        }
    }

    fn integer(&mut self, what: &str) -> Parsed<Spanned<u64>> {
        let span = self.span();
        let TokenKind::Int(value, _) = self.peek() else { return Err(self.expected(what)) };
        self.bump();
        Ok(Spanned::new(*value, span))
    }

    /// `(1, 1)`, or `1`.
    fn sizes(&mut self) -> Parsed<Spanned<Vec<Spanned<u64>>>> {
        let start = self.span();
        let mut sizes = Vec::new();
        if self.eat("(") {
            loop {
                sizes.push(self.integer("a size, as in `(1, 1)`")?);
                if !self.eat(",") {
                    break;
                }
            }
            self.expect(")", "after the sizes")?;
        } else {
            sizes.push(self.integer("sizes in parentheses, as in `(1, 1)`")?);
        }
        Ok(Spanned::new(sizes, self.since(start)))
    }

    /// `(float Rx, float Ry)`, or `()`.
    fn scalars(&mut self, scalars: &mut Vec<(Spanned<Element>, Name)>) -> Parsed<()> {
        self.expect("(", "before the variables")?;
        if self.eat(")") {
            return Ok(());
        }
        loop {
            let start = self.span();
            let element = self.element()?;
            let element = Spanned::new(element, self.since(start));
            scalars.push((element, self.name("the name of a variable")?));
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")", "after the variables")
    }

    /// Whether a type stands here.
    pub(super) fn at_type(&self) -> bool {
        matches!(self.peek(), TokenKind::Word(word) if types::starts_type(word))
    }

    /// `int`, `unsigned int64`, `float` and so on.
    pub(super) fn element(&mut self) -> Parsed<Element> {
        let start = self.span();
        let mut words = Vec::new();
        while let TokenKind::Word(word) = self.peek()
            && (types::starts_type(word) || words.is_empty())
            && words.len() < 4
        {
            words.push(word.as_str());
            self.bump();
        }
        if words.is_empty() {
            return Err(self.expected("a type"));
        }
        types::named(&words).ok_or_else(|| {
            let text = words.join(" ");
            let message = format!("`{}` is no type of SL", shorten(&text));
            let error = Diagnostic::error(message, self.since(start), "");
            let error = match text.as_str() {
                "long" | "long long" | "long int" | "int64_t" => error.help("write `int64`"),
                "unsigned long" | "unsigned long long" | "uint64_t" => {
                    error.help("write `unsigned int64`")
                }
                "bool" | "_Bool" => error.help("write `int`: it is 1 where a condition holds"),
                _ => error.note("the types are int, int64, their unsigned forms, float and double"),
            };
            self.report(error)
        })
    }

    /// `{ ... }` of a key.
    fn block(&mut self, key: Span) -> Parsed<Block> {
        self.expect("{", "before the code")?;
        let mut statements = Vec::new();
        loop {
            let end = self.span();
            if self.eat("}") {
                return Ok(Block { key, end, statements });
            }
            let at_key = matches!(self.peek(), TokenKind::Word(word) if KEYS.contains(&&**word));
            if at_key || *self.peek() == TokenKind::End {
                let found = self.peek().describe();
                let message = format!("the block has no end: found {found} before its `}}`");
                let error = Diagnostic::error(message, end, "").see(key, "the block of this key");
                return Err(self.report(error.help("end it by `}`")));
            }
            self.statement_or_skip(&mut statements);
        }
    }
}
