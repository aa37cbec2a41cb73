//! Expressions of C, as far as SL has them.

use super::lexer::TokenKind;
use super::parser::{Parsed, Parser};
use super::tree::{Expr, ExprKind};
use super::types;
use crate::ast::{Name, Spanned};
use crate::diagnostics::Diagnostic;
use crate::limits;
use crate::program::{BinaryOp, UnaryOp};

/// Infix operators, and how tightly C lets them bind; higher binds tighter.
pub(super) const OPERATORS: [(&str, BinaryOp, u8); 18] = [
    ("||", BinaryOp::Or, 1),
    ("&&", BinaryOp::And, 2),
    ("|", BinaryOp::BitOr, 3),
    ("^", BinaryOp::BitXor, 4),
    ("&", BinaryOp::BitAnd, 5),
    ("==", BinaryOp::Eq, 6),
    ("!=", BinaryOp::Ne, 6),
    ("<=", BinaryOp::Le, 7),
    (">=", BinaryOp::Ge, 7),
    ("<", BinaryOp::Lt, 7),
    (">", BinaryOp::Gt, 7),
    ("<<", BinaryOp::Shl, 8),
    (">>", BinaryOp::Shr, 8),
    ("+", BinaryOp::Add, 9),
    ("-", BinaryOp::Sub, 9),
    ("*", BinaryOp::Mul, 10),
    ("/", BinaryOp::Div, 10),
    ("%", BinaryOp::Rem, 10),
];

impl Parser<'_> {
    /// A whole expression.
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        let value = self.conditional_expr()?;
        let misuse = match self.peek() {
            TokenKind::Mark("=") => {
                Some("compare by `==`; an assignment is a statement of its own and has no value")
            }
            TokenKind::Mark("++" | "--") => Some("write it as a statement of its own"),
            TokenKind::Mark(
                "+=" | "-=" | "*=" | "/=" | "%=" | "&=" | "|=" | "^=" | "<<=" | ">>=",
            ) => Some("write the assignment as a statement of its own"),
            _ => None,
        };
        if let Some(help) = misuse {
            let message = format!("{} can't stand in an expression", self.peek().describe());
            let error = Diagnostic::error(message, self.span(), "");
            return Err(self.report(error.help(help)));
        }
        Ok(value)
    }

    fn conditional_expr(&mut self) -> Parsed<Expr> {
        let condition = self.binary(1)?;
        if !self.eat("?") {
            return Ok(condition);
        }
        self.deeper()?;
        let yes = self.conditional_expr()?;
        self.expect(":", "between the two values of `?`")?;
        let no = self.conditional_expr()?;
        self.nesting -= 1;
        let span = condition.span.to(no.span);
        Ok(Expr::new(ExprKind::If(Box::new(condition), Box::new(yes), Box::new(no)), span))
    }

    /// Operators that bind at least so tightly.
    fn binary(&mut self, least: u8) -> Parsed<Expr> {
        let mut left = self.prefix_expr()?;
        while let TokenKind::Mark(mark) = self.peek()
            && let Some((_, op, binds)) = OPERATORS.iter().find(|(text, ..)| text == mark)
            && *binds >= least
        {
            self.operators += 1;
            if self.operators > limits::SL_OPERATORS {
                let most = limits::SL_OPERATORS;
                let message = format!("a statement has at most {most} operators");
                let error = Diagnostic::error(message, self.span(), "");
                return Err(self.report(error.help("name parts of it by variables")));
            }
            let op = Spanned::new(*op, self.span());
            self.bump();
            let right = self.binary(binds + 1)?;
            let span = left.span.to(right.span);
            left = Expr::new(ExprKind::Binary(op, Box::new(left), Box::new(right)), span);
        }
        Ok(left)
    }

    /// Prefix operators, casts, and what they stand before.
    pub(super) fn prefix_expr(&mut self) -> Parsed<Expr> {
        let start = self.span();
        self.deeper()?;
        let kind = if self.eat("+") {
            ExprKind::Plus(Box::new(self.prefix_expr()?))
        } else if self.eat("-") {
            ExprKind::Unary(UnaryOp::Neg, Box::new(self.prefix_expr()?))
        } else if self.eat("!") {
            ExprKind::Unary(UnaryOp::Not, Box::new(self.prefix_expr()?))
        } else if self.eat("~") {
            ExprKind::Unary(UnaryOp::Inverse, Box::new(self.prefix_expr()?))
        } else if self.is("(")
            && matches!(self.peek_at(1), TokenKind::Word(word) if types::starts_type(word))
        {
            self.bump();
            let element = self.element()?;
            self.expect(")", "after the type")?;
            ExprKind::Cast(element, Box::new(self.prefix_expr()?))
        } else if self.is("&") || self.is("*") {
            let error = Diagnostic::error("SL has no pointers", start, "");
            return Err(self.report(error));
        } else if self.is("++") || self.is("--") {
            let message = format!("{} can't stand in an expression", self.peek().describe());
            let error = Diagnostic::error(message, start, "");
            return Err(self.report(error.help("write it as a statement of its own")));
        } else {
            let value = self.postfix()?;
            self.nesting -= 1;
            return Ok(value);
        };
        self.nesting -= 1;
        Ok(Expr::new(kind, self.since(start)))
    }

    /// A primary expression with its members, indices and arguments.
    fn postfix(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let mut value = self.primary()?;
        loop {
            if self.eat(".") {
                let name = self.name("a member")?;
                let span = self.since(start);
                value = Expr::new(ExprKind::Member(Box::new(value), name), span);
                self.only_one_member(&value)?;
            } else if self.is("[") {
                let ExprKind::Name(name) = &value.node else {
                    let error = Diagnostic::error("only an array has elements", start, "");
                    return Err(self.report(error));
                };
                let name = Name::new(name.clone(), value.span);
                self.bump();
                let index = self.expr()?;
                self.expect("]", "after the index")?;
                value = Expr::new(ExprKind::Index(name, Box::new(index)), self.since(start));
            } else if self.is("->") {
                let error = Diagnostic::error("SL has no pointers", self.span(), "");
                return Err(self.report(error.help("a size is `input_size.x`")));
            } else {
                return Ok(value);
            }
        }
    }

    /// Members of members would nest without a bracket.
    fn only_one_member(&mut self, value: &Expr) -> Parsed<()> {
        match &value.node {
            ExprKind::Member(inner, _) if !matches!(inner.node, ExprKind::Name(_)) => {
                let error = Diagnostic::error("a member has no members", value.span, "");
                Err(self.report(error.help("the only structure is `input_size`")))
            }
            _ => Ok(()),
        }
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let span = self.span();
        let kind = match self.peek() {
            TokenKind::Int(value, element) => ExprKind::Int { value: *value, element: *element },
            TokenKind::Float(text, element) => {
                ExprKind::Float { text: text.clone(), element: *element }
            }
            TokenKind::Mark("(") => {
                self.bump();
                let inner = self.expr()?;
                self.expect(")", "after the expression")?;
                return Ok(Expr::new(inner.node, self.since(span)));
            }
            TokenKind::Word(word) if types::starts_type(word) => {
                let message = format!("the type `{word}` can't stand here");
                let error = Diagnostic::error(message, span, "");
                let help = "a conversion is written `(float) a`, with the type in parentheses";
                return Err(self.report(error.help(help)));
            }
            TokenKind::Word(_) => {
                let name = self.name("an expression")?;
                if !self.is("(") {
                    return Ok(Expr::new(ExprKind::Name(name.node), span));
                }
                let arguments = self.arguments()?;
                return Ok(Expr::new(ExprKind::Call(name, arguments), self.since(span)));
            }
            _ => return Err(self.expected("an expression")),
        };
        self.bump();
        Ok(Expr::new(kind, span))
    }

    fn arguments(&mut self) -> Parsed<Vec<Expr>> {
        self.expect("(", "")?;
        let mut arguments = Vec::new();
        if self.eat(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expr()?);
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")", "after the arguments")?;
        Ok(arguments)
    }
}
