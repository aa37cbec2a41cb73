//! Expressions, by precedence climbing. See `ast::precedence` for the table.

use super::{Failed, Parsed, Parser};
use crate::ast::*;
use crate::diagnostics::Diagnostic;
use crate::lexer::{Keyword, TokenKind};
use crate::limits;
use crate::source::Span;

/// An expression and the depth of its tree.
struct Deep(Expr, usize);

impl Parser<'_> {
    /// Any expression.
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.expr_above(0)
    }

    /// An expression whose infix operators all bind tighter than `floor`.
    pub(super) fn expr_above(&mut self, floor: u8) -> Parsed<Expr> {
        self.climb(floor).map(|Deep(expr, _)| expr)
    }

    fn climb(&mut self, floor: u8) -> Parsed<Deep> {
        let first = self.prefix()?;
        self.infix(first, floor)
    }

    fn infix(&mut self, mut left: Deep, floor: u8) -> Parsed<Deep> {
        let mut compared: Option<Span> = None;
        // The precedence of the last operators, and how many terms they have.
        let mut row = (0, 1);
        while let Some(op) = self.infix_operator() {
            let own = precedence(op);
            if own <= floor {
                break;
            }
            let span = self.span();
            if own == COMPARISON
                && let Some(first) = compared
            {
                let error = Diagnostic::error("comparisons cannot be chained", span, "second one")
                    .see(first, "first one")
                    .help("join two comparisons with `&&`, as in `a < b && b < c`");
                return Err(self.fail(error));
            }
            compared = (own == COMPARISON).then_some(span);
            row = (own, if row.0 == own { row.1 + 1 } else { 2 });
            if row.1 > limits::TERMS {
                let message = format!("more than {} terms in a row", limits::TERMS);
                return Err(self.too_deep(message, span));
            }
            self.bump();
            let span = if op.is_shift() { span.to(self.span()) } else { span };
            if op.is_shift() {
                self.bump();
            }
            let right = self.nested(|parser| parser.climb(own))?;
            let whole = left.0.span.to(right.0.span);
            let depth = left.1.max(right.1);
            let kind =
                ExprKind::Binary(Spanned::new(op, span), Box::new(left.0), Box::new(right.0));
            left = self.deeper(kind, whole, depth)?;
        }
        Ok(left)
    }

    fn infix_operator(&self) -> Option<BinaryOp> {
        let TokenKind::Mark(mark) = self.peek() else {
            return None;
        };
        // A shift is two marks without a space between them.
        let joined = || self.peek_at(1) == self.peek() && self.touches_next();
        match *mark {
            "<" if joined() => Some(BinaryOp::Shl),
            ">" if joined() => Some(BinaryOp::Shr),
            mark => BINARY_OPS.into_iter().find(|op| symbol(*op) == mark),
        }
    }

    fn prefix(&mut self) -> Parsed<Deep> {
        let start = self.span();
        let op = match self.peek() {
            TokenKind::Mark("-") => UnaryOp::Neg,
            TokenKind::Mark("!") => UnaryOp::Not,
            TokenKind::Mark("~") => UnaryOp::Inverse,
            _ => {
                let first = self.primary()?;
                return self.postfix(first);
            }
        };
        self.bump();
        let Deep(value, depth) = self.nested(Self::prefix)?;
        let span = start.to(value.span);
        self.deeper(ExprKind::Unary(op, Box::new(value)), span, depth)
    }

    /// `.name` and `.0`
    fn postfix(&mut self, mut value: Deep) -> Parsed<Deep> {
        while self.eat(".") {
            let span = self.span();
            let Deep(inner, depth) = value;
            let whole = inner.span.to(span);
            let kind = match self.peek() {
                TokenKind::Int(lane) => {
                    self.bump();
                    ExprKind::Lane(Box::new(inner), Spanned::new(*lane, span))
                }
                _ => ExprKind::Member(Box::new(inner), self.name("a member's name or a lane")?),
            };
            value = self.deeper(kind, whole, depth)?;
        }
        Ok(value)
    }

    fn primary(&mut self) -> Parsed<Deep> {
        let start = self.span();
        match self.peek() {
            TokenKind::Int(value) => {
                self.bump();
                Ok(Deep(Expr::new(ExprKind::Int(*value), start), 1))
            }
            TokenKind::Float(text) => {
                self.bump();
                Ok(Deep(Expr::new(ExprKind::Float(text.clone()), start), 1))
            }
            TokenKind::Name(_) => self.named(),
            TokenKind::Keyword(Keyword::If) => self.nested(Self::conditional),
            TokenKind::Mark("(") => self.bracketed(")", Self::parenthesized),
            TokenKind::Mark("{") => self.bracketed("}", Self::block),
            _ => Err(self.expected("an expression")),
        }
    }

    /// A name alone, an access, a call, or a struct literal.
    fn named(&mut self) -> Parsed<Deep> {
        let name = self.name("a name")?;
        let start = name.span;
        let primed = self.is("'");
        let access = self.is("[") && !(self.in_pieces && self.brackets == 0 && self.starts_piece());
        if primed {
            self.bump();
        }
        let open = self.at;
        let ranged = self.is("(")
            && matches!(self.peek_at(1), TokenKind::Name(_))
            && *self.peek_at(2) == TokenKind::Keyword(Keyword::In);
        if ranged {
            return self.nested(|parser| parser.fold(name));
        }
        if primed && !self.is("[") {
            let error = Diagnostic::error("a primed read has offsets", self.span(), "");
            let help = format!("values of the same sweep are read beside: `{}'[-1]`", name.node);
            return Err(self.fail(error.help(help)));
        }
        let kind = if primed || access {
            let offsets = self.list("[", "]", Self::expr);
            offsets.map(|offsets| ExprKind::Access { field: name, primed, offsets })
        } else if self.is("(") {
            let arguments = self.list("(", ")", Self::expr);
            arguments.map(|arguments| ExprKind::Call { name, arguments })
        } else if self.is("{") && !self.before_list {
            let members = self.list("{", "}", |parser| {
                let name = parser.name("a member's name")?;
                parser.expect(":", "and the member's value")?;
                Ok((name, parser.expr()?))
            });
            members.map(|members| ExprKind::Struct { name, members })
        } else {
            Ok(ExprKind::Name(name.node))
        };
        let kind = kind.or_else(|Failed| self.resume_behind(open))?;
        let span = start.to(self.last_span());
        self.measured(kind, span)
    }

    /// `(NAME in LOWER..UPPER) BODY`, which reaches as far as it can.
    fn fold(&mut self, operation: Name) -> Parsed<Deep> {
        let (start, open) = (operation.span, self.at);
        self.bump();
        let variable = self.name("a name for the numbers")?;
        self.keyword(Keyword::In)?;
        let lower = self.expr()?;
        self.expect("..", "and the last number, as in `(k in -2..2)`")?;
        let upper = self.expr()?;
        if !self.eat(")") {
            return Err(self.unclosed("`)`", open));
        }
        let body = self.climb(0)?;
        let span = start.to(body.0.span);
        let fold = Fold { operation, variable, lower, upper, body: body.0 };
        self.deeper(ExprKind::Fold(Box::new(fold)), span, body.1)
    }

    /// `if c then a else b`; the last part reaches as far as it can.
    fn conditional(&mut self) -> Parsed<Deep> {
        let start = self.span();
        self.keyword(Keyword::If)?;
        let condition = self.climb(0)?;
        self.keyword(Keyword::Then)?;
        let yes = self.climb(0)?;
        if *self.peek() != TokenKind::Keyword(Keyword::Else) {
            let message = format!("expected `else`, found {}", self.peek().describe());
            let error = Diagnostic::error(message, self.span(), "");
            let error = error.see(start, "an `if` gives a value in both cases");
            return Err(self.fail(error.help("keep the old value with `else A[0]`")));
        }
        self.bump();
        let no = self.climb(0)?;
        let depth = condition.1.max(yes.1).max(no.1);
        let span = start.to(no.0.span);
        let kind = ExprKind::If(Box::new(condition.0), Box::new(yes.0), Box::new(no.0));
        self.deeper(kind, span, depth)
    }

    /// What stands between `{` and `}`.
    fn block(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let lets = self.lets()?;
        let body = self.expr()?;
        self.no_semicolon()?;
        let span = start.to(body.span);
        Ok(Expr::new(ExprKind::Block(lets, Box::new(body)), span))
    }

    /// `let x = e;` as often as it stands there.
    pub(super) fn lets(&mut self) -> Parsed<Vec<(Name, Expr)>> {
        let mut lets = Vec::new();
        while *self.peek() == TokenKind::Keyword(Keyword::Let) {
            self.bump();
            let name = self.name("a name for the value")?;
            self.expect("=", "and the value")?;
            let value = self.expr()?;
            self.expect(";", "to end the `let`")?;
            lets.push((name, value));
        }
        Ok(lets)
    }

    /// A block's value ends without `;`.
    pub(super) fn no_semicolon(&mut self) -> Parsed<()> {
        if !self.is(";") {
            return Ok(());
        }
        let error = Diagnostic::error("expected `}`, found `;`", self.span(), "");
        Err(self.fail(error.help("the last expression is the block's value and takes no `;`")))
    }

    /// `(EXPR)`
    fn parenthesized(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let value = self.expr()?;
        if !self.is(",") {
            return Ok(value);
        }
        let error = Diagnostic::error("several values where one is needed", self.span(), "");
        let error = error.see(start.to(value.span), "the first value");
        let help = "write a vec as `vec(a, b)`; a function of two fields has its two values \
                    behind the box, `= (a, b)`, or at the end of the block there, \
                    `= { let s = ...; (a, b) }`";
        Err(self.fail(error.help(help)))
    }

    /// Something in brackets. Where it is broken, the reading goes on behind them.
    fn bracketed(
        &mut self,
        close: &'static str,
        inner: impl FnOnce(&mut Self) -> Parsed<Expr>,
    ) -> Parsed<Deep> {
        let (open, start) = (self.at, self.span());
        self.bump();
        let outcome = self.nested(|parser| {
            parser.brackets += 1;
            let expr = inner(parser)?;
            match parser.eat(close) {
                true => Ok(expr),
                false => Err(parser.unclosed(&format!("`{close}`"), open)),
            }
        });
        self.brackets = self.brackets.saturating_sub(1);
        let kind = match outcome {
            Ok(expr) => expr.node,
            Err(Failed) => self.resume_behind(open)?,
        };
        let span = start.to(self.last_span());
        self.measured(kind, span)
    }

    /// An expression whose parts were not counted.
    fn measured(&mut self, kind: ExprKind, span: Span) -> Parsed<Deep> {
        let expr = Expr::new(kind, span);
        let depth = depth(&expr);
        self.deeper(expr.node, span, depth - 1)
    }

    /// An expression that begins with one whose parts were not counted.
    pub(super) fn begun(&mut self, kind: ExprKind, span: Span) -> Parsed<Expr> {
        let first = self.measured(kind, span)?;
        let first = self.postfix(first)?;
        self.infix(first, 0).map(|Deep(expr, _)| expr)
    }

    fn deeper(&mut self, kind: ExprKind, span: Span, depth: usize) -> Parsed<Deep> {
        if depth < limits::DEPTH {
            return Ok(Deep(Expr::new(kind, span), depth + 1));
        }
        let message =
            format!("an expression of more than {} operations within each other", limits::DEPTH);
        Err(self.too_deep(message, self.last_span()))
    }

    fn too_deep(&mut self, message: String, span: Span) -> Failed {
        let error = Diagnostic::error(message, span, "one too many");
        self.fail(error.help("bracket a long sum in halves, or keep a part in a temp field"))
    }
}

/// How deep the tree is; reads at plain offsets and negative numbers count as one. A block counts
/// its `let`s: they will be nested.
pub(crate) fn depth(expr: &Expr) -> usize {
    match &expr.node {
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Name(_) | ExprKind::Broken => 1,
        ExprKind::Unary(_, value)
            if matches!(value.node, ExprKind::Int(_) | ExprKind::Float(_)) =>
        {
            1
        }
        ExprKind::Access { offsets, .. } => offsets.iter().map(depth).max().unwrap_or(1),
        ExprKind::Call { arguments, .. } => 1 + arguments.iter().map(depth).max().unwrap_or(0),
        ExprKind::Struct { members, .. } => {
            1 + members.iter().map(|(_, value)| depth(value)).max().unwrap_or(0)
        }
        ExprKind::Member(value, _) | ExprKind::Lane(value, _) | ExprKind::Unary(_, value) => {
            1 + depth(value)
        }
        ExprKind::Binary(_, left, right) => {
            // Walk down the left side in a loop: it may be long, and this is called often.
            let (mut deepest, mut above, mut left) = (depth(right) + 1, 1, left);
            while let ExprKind::Binary(_, further, right) = &left.node {
                above += 1;
                deepest = deepest.max(above + depth(right));
                left = further;
            }
            deepest.max(above + depth(left))
        }
        ExprKind::Fold(fold) => 1 + depth(&fold.body),
        ExprKind::If(condition, yes, no) => 1 + depth(condition).max(depth(yes)).max(depth(no)),
        ExprKind::Block(lets, body) => {
            let values = lets.iter().map(|(_, value)| depth(value)).max().unwrap_or(0);
            1 + lets.len() + values.max(depth(body))
        }
    }
}
