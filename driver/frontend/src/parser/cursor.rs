//! The parser's place in the tokens, faults, and where to go on after one.

use super::{Failed, Parsed, Parser};
use crate::ast::{Name, Until};
use crate::diagnostics::Diagnostic;
use crate::lexer::{Keyword, TokenKind};
use crate::source::Span;

impl<'a> Parser<'a> {
    // Tokens.

    pub(super) fn peek(&self) -> &'a TokenKind {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> &'a TokenKind {
        self.tokens.get(self.at + ahead).map_or(&TokenKind::End, |token| &token.kind)
    }

    pub(super) fn span(&self) -> Span {
        self.tokens.get(self.at).map_or_else(|| self.last_span(), |token| token.span)
    }

    /// The span of the token before the present one.
    pub(super) fn last_span(&self) -> Span {
        let last = self.at.checked_sub(1).and_then(|index| self.tokens.get(index));
        last.map_or(Span::default(), |token| token.span)
    }

    /// Whether nothing stands between the present token and the next one.
    pub(super) fn touches_next(&self) -> bool {
        self.tokens.get(self.at + 1).is_some_and(|next| next.span.start == self.span().end)
    }

    pub(super) fn bump(&mut self) {
        if *self.peek() != TokenKind::End {
            self.at += 1;
        }
    }

    pub(super) fn is(&self, mark: &'static str) -> bool {
        *self.peek() == TokenKind::Mark(mark)
    }

    pub(super) fn eat(&mut self, mark: &'static str) -> bool {
        let found = self.is(mark);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn expect(&mut self, mark: &'static str, why: &str) -> Parsed<()> {
        match self.eat(mark) {
            true => Ok(()),
            false => Err(self.expected(format!("`{mark}` {why}").trim_end())),
        }
    }

    /// A word that is reserved at this place alone.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), TokenKind::Name(name) if name == word);
        if found {
            self.bump();
        }
        found
    }

    /// What follows `until`.
    pub(super) fn until(&mut self) -> Parsed<Until> {
        let condition = self.expr()?;
        let every = self.eat_word("every").then(|| self.expr()).transpose()?;
        Ok(Until { condition, every })
    }

    pub(super) fn keyword(&mut self, keyword: Keyword) -> Parsed<()> {
        if *self.peek() != TokenKind::Keyword(keyword) {
            return Err(self.expected(&format!("`{}`", keyword.text())));
        }
        self.bump();
        Ok(())
    }

    pub(super) fn name(&mut self, what: &str) -> Parsed<Name> {
        let span = self.span();
        match self.peek() {
            TokenKind::Name(name) => {
                self.bump();
                Ok(Name::new(name.clone(), span))
            }
            TokenKind::Keyword(keyword) => {
                let message = format!("expected {what}, found the keyword `{}`", keyword.text());
                let error = Diagnostic::error(message, span, "");
                let help = format!("`{}` is reserved; another name is needed", keyword.text());
                Err(self.fail(error.help(help)))
            }
            _ => Err(self.expected(what)),
        }
    }

    pub(super) fn at_item(&self) -> bool {
        matches!(self.peek(), TokenKind::Keyword(keyword) if keyword.starts_item())
            || super::is_function(self.tokens, self.at)
    }

    // Faults.

    pub(super) fn expected(&mut self, what: &str) -> Failed {
        let message = format!("expected {what}, found {}", self.peek().describe());
        let error = Diagnostic::error(message, self.span(), "");
        let error = match self.peek() {
            TokenKind::Name(word) if word == "until" => {
                error.help("`until` belongs to `steps`, as in `steps 100 until worst < 1`")
            }
            TokenKind::Mark("=") if what == "`then`" => error.help("equality is written `==`"),
            TokenKind::Name(word) if what == "`then`" => error.help(match word.as_str() {
                "and" | "or" | "not" => "write `&&`, `||` and `!`",
                _ => "write `if c then a else b`",
            }),
            TokenKind::Mark("*") if what == "an expression" && self.behind("*") => {
                error.help("write a power as `pow(a, b)`, a square as `a * a`")
            }
            TokenKind::Mark("}") if what == "an expression" => {
                error.help("a block ends with its value: `{ let x = A[0]; x * x }`")
            }
            TokenKind::Mark(mark @ ("+" | "-" | "*" | "/")) if what.starts_with("`=` and") => {
                error.help(format!("write the value out, as in `= A[0] {mark} ...`"))
            }
            TokenKind::Keyword(Keyword::Temp | Keyword::Const) if what == "`field`" => {
                error.help("a field is `const` or `temp`, not both")
            }
            TokenKind::Mark("=") if what == "an expression" => {
                error.help("equality is written `==`; there is no assignment but `let`")
            }
            TokenKind::Mark("+") if what == "an expression" => {
                error.help("there is no sign `+` and no `++`; leave it out")
            }
            TokenKind::Mark(mark @ (">" | "<")) if what == "an expression" => {
                error.help(format!("a shift is written `{mark}{mark}`, without a space"))
            }
            TokenKind::Mark("?") => error.help("write `if c then a else b`"),
            TokenKind::Mark(".") if matches!(self.peek_at(1), TokenKind::Int(_)) => {
                error.help("a number starts with a digit, as in `0.5`")
            }
            _ => error,
        };
        self.fail(error)
    }

    /// Whether the last token was this mark.
    fn behind(&self, mark: &str) -> bool {
        matches!(self.last(), Some(TokenKind::Mark(found)) if *found == mark)
    }

    /// What was read last.
    pub(super) fn last(&self) -> Option<&TokenKind> {
        let last = self.at.checked_sub(1).and_then(|place| self.tokens.get(place));
        last.map(|token| &token.kind)
    }

    pub(super) fn unclosed(&mut self, what: &str, open: usize) -> Failed {
        let message = format!("expected {what}, found {}", self.peek().describe());
        let mut error = Diagnostic::error(message, self.span(), "");
        if let Some(token) = self.tokens.get(open) {
            error = error.see(token.span, "opened here");
        }
        if self.is(":") && what.contains('`') && what.contains(']') {
            error = error.help("a range is written `0..N-1`, and both ends belong to it");
        } else if self.is("=") {
            error = error.help("equality is written `==`");
        }
        self.fail(error)
    }

    pub(super) fn fail(&mut self, error: Diagnostic) -> Failed {
        // What is no token was reported by the lexer, and recovery may stop at a token that was
        // complained about already.
        if *self.peek() != TokenKind::Unknown
            && self.errors.last().and_then(Diagnostic::place) != error.place()
        {
            self.errors.push(error);
        }
        Failed
    }

    // Recovery.

    /// Goes to the next item: a keyword and what must follow it, so that a keyword where a name
    /// was meant does not count.
    pub(super) fn skip_to_item(&mut self) {
        while *self.peek() != TokenKind::End {
            let next = self.peek_at(1);
            let item = match self.peek() {
                TokenKind::Keyword(Keyword::Steps | Keyword::Repeat) => {
                    matches!(next, TokenKind::Int(_) | TokenKind::Name(_))
                }
                TokenKind::Keyword(Keyword::Const | Keyword::Temp) => {
                    *next == TokenKind::Keyword(Keyword::Field)
                }
                TokenKind::Keyword(keyword) if keyword.starts_item() => {
                    matches!(next, TokenKind::Name(_))
                }
                _ => false,
            };
            if item || super::is_function(self.tokens, self.at) {
                return;
            }
            self.bump();
        }
    }

    /// Goes to the next piece of the list that was opened there, to its end, or to the next item.
    pub(super) fn skip_to_piece(&mut self, open: usize) {
        let end = self.partner.get(open).copied().flatten();
        while !self.starts_piece() && Some(self.at) != end && !self.at_item() {
            if *self.peek() == TokenKind::End {
                return;
            }
            self.bump();
        }
    }

    /// Whether `[...] =` follows.
    pub(super) fn starts_piece(&self) -> bool {
        let end = self.partner.get(self.at).copied().flatten();
        let behind = end.and_then(|end| self.tokens.get(end + 1));
        self.is("[") && behind.is_some_and(|token| token.kind == TokenKind::Mark("="))
    }
}
