//! `repeat`, and pieces: a box, and one value for each updated field.

use super::{Failed, Parsed, Parser};
use crate::ast::*;
use crate::diagnostics::Diagnostic;
use crate::lexer::{Keyword, TokenKind};
use crate::limits::REPEATS;
use crate::source::Span;

/// What several values share, and the values.
type Values = (Vec<(Name, Expr)>, Vec<Expr>);

/// Stands for a piece that could not be read: it has no range, and its value is broken.
fn broken_piece(span: Span) -> Piece {
    let values = vec![Expr::new(ExprKind::Broken, span)];
    Piece::new(PieceKind { region: Region::new(Vec::new(), span), lets: Vec::new(), values }, span)
}

impl Parser<'_> {
    /// What follows `repeat`.
    pub(super) fn repeat(&mut self) -> Parsed<ItemKind> {
        let start = self.span();
        let count = match self.is("{") {
            true => {
                self.expected("how often each step repeats the functions, as in `repeat 20 {`");
                Expr::new(ExprKind::Broken, start)
            }
            false => self.repetitions()?,
        };
        let open = self.at;
        self.expect("{", "and the functions to repeat")?;
        if self.repeats == REPEATS {
            let error = Diagnostic::error("`repeat` is nested too deep", start, "");
            self.fail(error.help(format!(
                "at most {REPEATS} stand in each other; multiply their numbers where nothing else \
                 stands between"
            )));
            self.skip_braces();
            return Ok(ItemKind::Broken { names: Vec::new() });
        }
        self.repeats += 1;
        let items = self.repeated(open);
        self.repeats -= 1;
        Ok(ItemKind::Repeat { count, items: items? })
    }

    /// The items of a `repeat`, with its `}`.
    fn repeated(&mut self, open: usize) -> Parsed<Vec<Item>> {
        let (start, mut items) = (self.span(), Vec::new());
        while !self.eat("}") {
            match self.peek() {
                TokenKind::Keyword(Keyword::Fn | Keyword::Reduce | Keyword::Repeat) => {
                    items.push(self.item());
                }
                _ if *self.peek() == TokenKind::End => return Err(self.unclosed("`}`", open)),
                _ if self.at_item() && !self.closes(open) => {
                    return Err(self.unclosed("`}`", open));
                }
                _ if self.at_item() => {
                    let message = "a `repeat` holds functions, reductions and other `repeat`s";
                    let error = Diagnostic::error(message, self.span(), "");
                    self.fail(error.help("move this item out of it"));
                    let before = self.errors.len();
                    items.push(self.item());
                    self.errors.truncate(before);
                }
                _ => {
                    self.expected("a function, as in `fn f -> A [0] = 1`, or `}`");
                    while !self.at_item() && !self.is("}") && *self.peek() != TokenKind::End {
                        self.bump();
                    }
                    items.push(Item::new(ItemKind::Broken { names: Vec::new() }, start));
                }
            }
        }
        Ok(items)
    }

    /// Whether a `{` that was read has its `}`.
    fn closes(&self, open: usize) -> bool {
        let mut depth = 0_usize;
        for token in self.tokens.iter().skip(open) {
            match token.kind {
                TokenKind::Mark("{") => depth += 1,
                TokenKind::Mark("}") => depth = depth.saturating_sub(1),
                _ => continue,
            }
            if depth == 0 {
                return true;
            }
        }
        false
    }

    /// Skips what stands before the `}` of a `{` that was read, and that.
    fn skip_braces(&mut self) {
        let mut open = 1;
        while open > 0 && *self.peek() != TokenKind::End {
            open += usize::from(self.is("{"));
            open -= usize::from(self.is("}"));
            self.bump();
        }
    }

    /// The number before the `{` of a `repeat`.
    fn repetitions(&mut self) -> Parsed<Expr> {
        self.before_list = true;
        let count = self.expr();
        self.before_list = false;
        count
    }

    /// `PIECE` or `{ PIECE ... }`
    pub(super) fn pieces(&mut self) -> Parsed<Vec<Piece>> {
        if self.is("[") {
            return Ok(vec![self.piece()?]);
        }
        if !self.is("{") {
            return Err(self.expected("a box such as `[1..N-2]`, or `{` and several pieces"));
        }
        let open = self.at;
        self.bump();
        let mut pieces = Vec::new();
        self.in_pieces = true;
        while !self.eat("}") {
            if self.is("[") {
                let start = self.span();
                pieces.push(self.piece().unwrap_or_else(|Failed| {
                    self.skip_to_piece(open);
                    broken_piece(start)
                }));
            } else if self.at_item() || *self.peek() == TokenKind::End {
                self.in_pieces = false;
                return Err(self.unclosed("`}`", open));
            } else {
                self.expected("a piece, as in `[0] = 1`, or `}`");
                pieces.push(broken_piece(self.span()));
                self.bump();
                self.skip_to_piece(open);
            }
        }
        self.in_pieces = false;
        Ok(pieces)
    }

    fn piece(&mut self) -> Parsed<Piece> {
        let start = self.span();
        (self.nesting, self.brackets) = (0, 0);
        let region = self.region()?;
        self.expect("=", "and the value there")?;
        let (lets, values) = self.values()?;
        Ok(Piece::new(PieceKind { region, lets, values }, start.to(self.last_span())))
    }

    /// One value, several in parentheses, or a block that ends with several.
    fn values(&mut self) -> Parsed<Values> {
        match self.is("{") {
            true => self.nested(Self::block_of_values),
            false => self.listed_values(),
        }
    }

    /// One value, or several in parentheses.
    fn listed_values(&mut self) -> Parsed<Values> {
        if !self.is("(") {
            return Ok((Vec::new(), vec![self.expr()?]));
        }
        let (open, start) = (self.at, self.span());
        let mut values = match self.list("(", ")", Self::expr) {
            Ok(values) => values,
            Err(Failed) => vec![Expr::new(self.resume_behind(open)?, start)],
        };
        match values.pop() {
            // A value that begins with a parenthesis.
            Some(only) if values.is_empty() => {
                Ok((Vec::new(), vec![self.begun(only.node, start.to(self.last_span()))?]))
            }
            last => {
                values.extend(last);
                Ok((Vec::new(), values))
            }
        }
    }

    /// `{ let x = e; ... VALUES }`. With one value it is a block like any other, which an
    /// expression may begin with.
    fn block_of_values(&mut self) -> Parsed<Values> {
        let (open, start) = (self.at, self.span());
        self.bump();
        self.brackets += 1;
        let read = self.values_of_block(open);
        self.brackets = self.brackets.saturating_sub(1);
        let block = match read {
            Ok((lets, values)) if values.len() != 1 => return Ok((lets, values)),
            Ok((lets, mut values)) => match values.pop() {
                Some(only) => ExprKind::Block(lets, Box::new(only)),
                None => ExprKind::Broken,
            },
            Err(Failed) => self.resume_behind(open)?,
        };
        Ok((Vec::new(), vec![self.begun(block, start.to(self.last_span()))?]))
    }

    /// What stands behind the `{` of a block, to its end.
    fn values_of_block(&mut self, open: usize) -> Parsed<Values> {
        let mut lets = self.lets()?;
        let (inner, values) = self.values()?;
        lets.extend(inner);
        self.no_semicolon()?;
        match self.eat("}") {
            true => Ok((lets, values)),
            false => Err(self.unclosed("`}`", open)),
        }
    }
}
