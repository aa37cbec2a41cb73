//! Tokens to the syntax tree: items. Pieces are in `parser/pieces.rs`, expressions in
//! `parser/expr.rs`, tokens and recovery in `parser/cursor.rs`.
//!
//! Never fails. A fault is reported once and the reading goes on behind the innermost bracket,
//! piece or item that it lies in; what was lost there becomes a `Broken` node, so that later
//! stages keep quiet about it. Nesting and the depth of a tree are bounded (`limits.rs`), so that
//! later stages may recurse.

mod cursor;
pub(crate) mod expr;
mod pieces;

use crate::ast::*;
use crate::diagnostics::{self, Diagnostic};
use crate::lexer::{self, KEYWORDS, Keyword, Token, TokenKind};
use crate::limits;
use crate::source::Source;
use crate::suggest;

/// Reads a source. The diagnostics are sorted by place; without any, the tree has no broken node.
pub fn parse(source: &Source) -> (File, Vec<Diagnostic>) {
    let (tokens, errors) = lexer::tokenize(source);
    let partner = partners(&tokens);
    let mut parser = Parser {
        tokens: &tokens,
        partner,
        at: 0,
        errors,
        nesting: 0,
        brackets: 0,
        in_pieces: false,
        before_list: false,
        repeats: 0,
    };
    let file = parser.file();
    let mut errors = parser.errors;
    diagnostics::sort(&mut errors);
    (file, errors)
}

/// The fault has been reported; whoever can recover does.
struct Failed;

type Parsed<T> = Result<T, Failed>;

struct Parser<'a> {
    tokens: &'a [Token],
    /// For every opening bracket the index of the one that closes it.
    partner: Vec<Option<usize>>,
    at: usize,
    errors: Vec<Diagnostic>,
    nesting: usize,
    /// How many brackets of the present piece's value are open.
    brackets: usize,
    /// Whether the present piece stands in a list of pieces.
    in_pieces: bool,
    /// Whether a `{` behind a name opens a list of items, and no literal of a struct.
    before_list: bool,
    /// How many `repeat`s the present item stands in.
    repeats: usize,
}

/// Matches brackets. They never match across the start of an item.
fn partners(tokens: &[Token]) -> Vec<Option<usize>> {
    let mut partner = vec![None; tokens.len()];
    let mut open: Vec<(usize, &str)> = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        match &token.kind {
            TokenKind::Keyword(keyword) if keyword.starts_item() => open.clear(),
            TokenKind::Keyword(Keyword::Let) if is_function(tokens, index) => open.clear(),
            TokenKind::Mark("(") => open.push((index, ")")),
            TokenKind::Mark("[") => open.push((index, "]")),
            TokenKind::Mark("{") => open.push((index, "}")),
            TokenKind::Mark(mark @ (")" | "]" | "}")) => {
                // A closing bracket without an opening one is left for the parser to report. At
                // most two kinds can hide the right one, so looking for it further up would let
                // one slip cost the whole item.
                if let Some(depth) = open.iter().rposition(|(_, close)| close == mark)
                    && open.len() - depth <= 2
                {
                    if let Some(slot) =
                        open.get(depth).and_then(|(index, _)| partner.get_mut(*index))
                    {
                        *slot = Some(index);
                    }
                    open.truncate(depth);
                }
            }
            _ => {}
        }
    }
    partner
}

/// Whether `let NAME (` stands there: an item, as no `let` of a block does.
fn is_function(tokens: &[Token], at: usize) -> bool {
    let kinds = tokens.get(at..at + 3).unwrap_or_default().iter().map(|token| &token.kind);
    let kinds: Vec<&TokenKind> = kinds.collect();
    matches!(
        kinds.as_slice(),
        [TokenKind::Keyword(Keyword::Let), TokenKind::Name(_), TokenKind::Mark("(")]
    )
}

impl<'a> Parser<'a> {
    fn file(&mut self) -> File {
        let mut items = Vec::new();
        loop {
            let start = self.span();
            match self.peek() {
                TokenKind::End => return File { items },
                TokenKind::Keyword(keyword) if keyword.starts_item() => items.push(self.item()),
                TokenKind::Keyword(Keyword::Let) => items.push(self.item()),
                TokenKind::Mark(";") => {
                    self.bump();
                    let error = Diagnostic::error("an item ends without `;`", start, "");
                    self.errors.push(error.help("leave it out"));
                }
                _ => {
                    let names = self.stray_item();
                    self.skip_to_item();
                    items.push(Item::new(ItemKind::Broken { names }, start.to(self.last_span())));
                }
            }
        }
    }

    /// Reports what starts no item; returns the names that it may have meant to declare.
    fn stray_item(&mut self) -> Vec<Name> {
        let words = KEYWORDS.iter().filter(|(_, keyword)| keyword.starts_item());
        let hint = match self.peek() {
            TokenKind::Name(name) => {
                // Words that go on with an item.
                let others = ["until", "every", "initially"];
                suggest::nearest(name, words.map(|(word, _)| *word).chain(others))
            }
            _ => None,
        };
        let error = Diagnostic::error(
            format!("expected an item, found {}", self.peek().describe()),
            self.span(),
            "no item starts like this",
        );
        let word = match self.last() {
            Some(TokenKind::Name(word)) => word.as_str(),
            _ => "",
        };
        self.fail(match (hint, self.peek()) {
            (None, _) if word == "for" => error.help(
                "a box stands for the loops, as in `fn f -> A [i in 0..N-1] = ...`; over a \
                 constant range write `sum(k in -2..2) A[k]`",
            ),
            (None, _) if word == "return" => {
                error.help("leave `return` out: the value is an expression")
            }
            (Some("until" | "every"), TokenKind::Name(found))
                if found == "until" || found == "every" =>
            {
                error.help("it goes on with `steps`, as in `steps 100 until worst < 1 every 10`")
            }
            (Some("initially"), TokenKind::Name(found)) if found == "initially" => {
                error.help("it stands behind the box of a reduction")
            }
            (Some(word), _) => error.help(format!("did you mean `{word}`?")),
            (None, TokenKind::Mark("/")) => error.help("a comment starts with `#`"),
            (None, TokenKind::Mark("?") | TokenKind::Keyword(Keyword::Else)) => {
                error.help("write `if c then a else b`")
            }
            (None, _) => error.note(
                "items are param, scalar, struct, grid, field, boundary, let, fn, reduce, repeat, \
                 steps",
            ),
        });
        self.bump();
        let is_item =
            |word| KEYWORDS.iter().any(|(known, keyword)| *known == word && keyword.starts_item());
        match (hint.filter(|word| is_item(*word)), self.peek()) {
            (Some(_), TokenKind::Name(_)) => self.name("a name").into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn item(&mut self) -> Item {
        let start = self.span();
        let mut names = Vec::new();
        (self.nesting, self.brackets, self.in_pieces) = (0, 0, false);
        let kind = self.item_kind(&mut names).unwrap_or_else(|Failed| {
            self.skip_to_item();
            ItemKind::Broken { names }
        });
        Item::new(kind, start.to(self.last_span()))
    }

    /// Reads an item; what it declares goes to `names` first, for the case that it is broken.
    fn item_kind(&mut self, names: &mut Vec<Name>) -> Parsed<ItemKind> {
        let keyword = match self.peek() {
            TokenKind::Keyword(keyword) => *keyword,
            _ => return Err(self.expected("an item")),
        };
        self.bump();
        let mut declared = |parser: &mut Self, what| {
            let name = parser.name(what)?;
            names.push(name.clone());
            Ok(name)
        };
        Ok(match keyword {
            Keyword::Param => {
                let name = declared(self, "the param's name")?;
                self.param(name)?
            }
            Keyword::Scalar => {
                let name = declared(self, "the scalar's name")?;
                self.expect(":", "and the scalar's type, as in `: f32 = 0.5`")?;
                let ty = self.ty()?;
                let default = self.eat("=").then(|| self.expr()).transpose()?;
                ItemKind::Scalar { name, ty, default }
            }
            Keyword::Struct => {
                let name = declared(self, "the struct's name")?;
                let members = self.list("{", "}", |parser| {
                    let name = parser.name("a member's name")?;
                    parser.expect(":", "and the member's type")?;
                    Ok((name, parser.ty()?))
                })?;
                ItemKind::Struct { name, members }
            }
            Keyword::Grid => {
                let name = declared(self, "the grid's name")?;
                self.expect("=", "and the grid's points, as in `= [0..N-1]`")?;
                ItemKind::Grid { name, region: self.region()? }
            }
            Keyword::Const | Keyword::Temp | Keyword::Field => {
                let role = match keyword {
                    Keyword::Const => FieldRole::Const,
                    Keyword::Temp => FieldRole::Temp,
                    _ => FieldRole::State,
                };
                if role != FieldRole::State {
                    self.keyword(Keyword::Field)?;
                }
                let name = declared(self, "the field's name")?;
                self.field(role, name)?
            }
            Keyword::Boundary => {
                let field = self.name("the name of a field")?;
                self.expect("=", "and a rule: nearest, periodic, reflect, or an expression")?;
                ItemKind::Boundary { field, rule: self.expr()? }
            }
            Keyword::Fn => {
                let name = declared(self, "the function's name")?;
                self.expect("->", "and the field that the function updates")?;
                let updates = match self.is("(") {
                    true => self.list("(", ")", |parser| parser.name("the name of a field"))?,
                    false => vec![self.name("the name of a field")?],
                };
                ItemKind::Function { name, updates, pieces: self.pieces()? }
            }
            Keyword::Let => {
                let name = declared(self, "the function's name")?;
                self.inlined(name)?
            }
            Keyword::Reduce => {
                let name = declared(self, "the reduction's name")?;
                self.reduction(name)?
            }
            Keyword::Repeat => self.repeat()?,
            Keyword::Steps => self.steps()?,
            _ => return Err(self.expected("an item")),
        })
    }

    /// The rest of a param, after its name.
    fn param(&mut self, name: Name) -> Parsed<ItemKind> {
        if self.is(":") {
            let error = Diagnostic::error("a param has no type", self.span(), "");
            let help = "a param is an integer; a number of a type is a `scalar`";
            return Err(self.fail(error.help(help)));
        }
        let value = self.eat("=").then(|| self.expr()).transpose()?;
        Ok(ItemKind::Param { name, value })
    }

    /// What follows `steps`.
    fn steps(&mut self) -> Parsed<ItemKind> {
        if *self.peek() == TokenKind::End || self.at_item() {
            return Err(self.expected("how many steps a run takes, as in `steps 100`"));
        }
        let count = self.expr()?;
        let until = self.eat_word("until").then(|| self.until()).transpose()?;
        Ok(ItemKind::Steps { count, until })
    }

    /// What follows the name of a field.
    fn field(&mut self, role: FieldRole, name: Name) -> Parsed<ItemKind> {
        self.expect(":", "and the type of a cell, as in `: f32`")?;
        let ty = self.ty()?;
        if *self.peek() != TokenKind::Keyword(Keyword::On) {
            return Err(self.expected("`on` and a grid, as in `on G`"));
        }
        self.bump();
        Ok(ItemKind::Field { role, name, ty, grid: self.name("the name of a grid")? })
    }

    /// What follows the name of a function by `let`.
    fn inlined(&mut self, name: Name) -> Parsed<ItemKind> {
        if !self.is("(") {
            let message = format!("expected `(`, found {}", self.peek().describe());
            let error = Diagnostic::error(message, self.span(), "");
            let help = "a function has parameters, as in `let square(a) = a * a`; a number is a \
                        `scalar`, an integer a `param`";
            return Err(self.fail(error.help(help)));
        }
        let parameters = self.list("(", ")", |parser| parser.name("a parameter"))?;
        self.expect("=", "and the function's value")?;
        Ok(ItemKind::Let { name, parameters, value: self.expr()? })
    }

    /// What follows the name of a reduction.
    fn reduction(&mut self, name: Name) -> Parsed<ItemKind> {
        self.expect(":", "and the type of the value, as in `: f32`")?;
        let ty = self.ty()?;
        self.expect("=", "and what is reduced, as in `= sum(A[0]) on [0..N-1]`")?;
        let operation = self.name("an operation: sum, min, max, count, any, all")?;
        let arguments = self.list("(", ")", Self::expr)?;
        if *self.peek() != TokenKind::Keyword(Keyword::On) {
            return Err(self.expected("`on` and a box, as in `on [0..N-1]`"));
        }
        self.bump();
        if !self.is("[") {
            return Err(self.expected("a box, as in `on [0..N-1]`"));
        }
        let region = self.region()?;
        let initial = self.eat_word("initially").then(|| self.expr()).transpose()?;
        Ok(ItemKind::Reduce { name, ty, operation, arguments, region, initial })
    }

    /// `[RANGE, ...]`
    fn region(&mut self) -> Parsed<Region> {
        let start = self.span();
        let ranges = self.list("[", "]", |parser| {
            let start = parser.span();
            let named = matches!(
                (parser.peek(), parser.peek_at(1)),
                (TokenKind::Name(_), TokenKind::Keyword(Keyword::In))
            );
            let name = match named {
                true => {
                    let name = parser.name("a coordinate")?;
                    parser.bump();
                    Some(name)
                }
                false => None,
            };
            let lower = parser.expr()?;
            let upper = parser.eat("..").then(|| parser.expr()).transpose()?;
            let span = start.to(parser.last_span());
            Ok(Range::new(RangeKind { name, lower, upper }, span))
        })?;
        Ok(Region::new(ranges, start.to(self.last_span())))
    }

    fn ty(&mut self) -> Parsed<Type> {
        let start = self.span();
        let name = self.name("a type, such as `f32`")?;
        if name.node != "vec" || !self.is("<") {
            return Ok(Type::new(TypeKind::Named(name.node), name.span));
        }
        self.bump();
        let lanes = self.expr_above(COMPARISON)?;
        self.expect(",", "and the type of a lane, as in `vec<4, f32>`")?;
        let ty = self.nested(Self::ty)?;
        self.expect(">", "to close `vec<`")?;
        let kind = TypeKind::Vec(Box::new(lanes), Box::new(ty));
        Ok(Type::new(kind, start.to(self.last_span())))
    }

    /// `OPEN element, element CLOSE`; a comma before the end is allowed.
    fn list<T>(
        &mut self,
        open: &'static str,
        close: &'static str,
        mut element: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        self.expect(open, "")?;
        let opened = self.at - 1;
        self.brackets += 1;
        let elements = self.nested(|parser| {
            let mut elements = Vec::new();
            while !parser.is(close) {
                elements.push(element(parser)?);
                if !parser.eat(",") {
                    break;
                }
            }
            match parser.eat(close) {
                true => Ok(elements),
                false => Err(parser.unclosed(&format!("`,` or `{close}`"), opened)),
            }
        });
        self.brackets = self.brackets.saturating_sub(1);
        elements
    }

    /// After a fault: goes on behind the bracket that closes the one opened there.
    fn resume_behind(&mut self, open: usize) -> Parsed<ExprKind> {
        let end = self.partner.get(open).copied().flatten().ok_or(Failed)?;
        self.at = end + 1;
        Ok(ExprKind::Broken)
    }

    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting >= limits::NESTING {
            let error = Diagnostic::error(
                format!("nested more than {} levels deep", limits::NESTING),
                self.span(),
                "here",
            );
            return Err(self.fail(error.help("name parts of it with `{ let x = ...; ... }`")));
        }
        self.nesting += 1;
        let result = inner(self);
        self.nesting -= 1;
        result
    }
}
