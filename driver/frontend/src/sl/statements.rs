//! Statements of a block.

use super::lexer::TokenKind;
use super::parser::{KEYS, Parsed, Parser};
use super::tree::{Declarator, Expr, ExprKind, Statement, StatementKind};
use super::types;
use crate::ast::Spanned;
use crate::diagnostics::Diagnostic;
use crate::limits;
use crate::program::BinaryOp;
use stencil_runtime::array::Element;

/// Assignment operators with their operation.
const ASSIGNMENTS: [(&str, Option<BinaryOp>); 11] = [
    ("=", None),
    ("+=", Some(BinaryOp::Add)),
    ("-=", Some(BinaryOp::Sub)),
    ("*=", Some(BinaryOp::Mul)),
    ("/=", Some(BinaryOp::Div)),
    ("%=", Some(BinaryOp::Rem)),
    ("&=", Some(BinaryOp::BitAnd)),
    ("|=", Some(BinaryOp::BitOr)),
    ("^=", Some(BinaryOp::BitXor)),
    ("<<=", Some(BinaryOp::Shl)),
    (">>=", Some(BinaryOp::Shr)),
];

impl Parser<'_> {
    /// A statement; after a fault the rest of it is skipped.
    pub(super) fn statement_or_skip(&mut self, statements: &mut Vec<Statement>) {
        let (start, nesting) = (self.at, self.nesting);
        let span = self.span();
        match self.statement() {
            Ok(Some(statement)) => statements.push(statement),
            Ok(None) => {}
            Err(_) => {
                self.nesting = nesting;
                self.skip_statement(start);
                statements.push(Statement::new(StatementKind::Broken, self.since(span)));
            }
        }
    }

    /// Goes on behind the next `;` or block, or at the `}` of the block around it.
    fn skip_statement(&mut self, start: usize) {
        let mut depth = 0_i64;
        // The head of a loop has semicolons of its own.
        let in_head = self.is_word_at(start, "for");
        let mut open = 0_i64;
        if in_head {
            self.at = start;
        }
        while self.at <= start || !matches!(self.peek(), TokenKind::End) {
            match self.peek() {
                TokenKind::End => return,
                TokenKind::Mark("(") if in_head => open += 1,
                TokenKind::Mark(")") if in_head => open -= 1,
                TokenKind::Mark(";") if depth == 0 && open <= 0 => return self.bump(),
                TokenKind::Mark("{") => depth += 1,
                TokenKind::Mark("}") if depth == 0 => return,
                TokenKind::Mark("}") => {
                    depth -= 1;
                    if depth == 0 {
                        return self.bump();
                    }
                }
                TokenKind::Word(word) if KEYS.contains(&&**word) => return,
                _ => {}
            }
            self.bump();
        }
    }

    /// A statement; none for a lone `;`.
    fn statement(&mut self) -> Parsed<Option<Statement>> {
        let start = self.span();
        if self.eat(";") {
            return Ok(None);
        }
        self.deeper()?;
        self.operators = 0;
        let kind = self.statement_kind()?;
        self.nesting -= 1;
        Ok(Some(Statement::new(kind, self.since(start))))
    }

    /// One level deeper; an error beyond the limit.
    pub(super) fn deeper(&mut self) -> Parsed<()> {
        self.nesting += 1;
        if self.nesting <= limits::NESTING {
            return Ok(());
        }
        let most = limits::NESTING;
        let message = format!("more than {most} brackets and statements within each other");
        let error = Diagnostic::error(message, self.span(), "");
        Err(self.report(error.help("name parts of it by variables")))
    }

    fn statement_kind(&mut self) -> Parsed<StatementKind> {
        if self.eat("{") {
            return Ok(StatementKind::Block(self.rest_of_block()?));
        }
        if self.eat_word("if") {
            return self.conditional();
        }
        if self.eat_word("for") {
            return self.repetition();
        }
        if self.eat_word("return") {
            let value = self.expr()?;
            self.expect(";", "after the value")?;
            return Ok(StatementKind::Return(value));
        }
        let kind = self.simple()?;
        self.expect(";", "after the statement")?;
        Ok(kind)
    }

    fn rest_of_block(&mut self) -> Parsed<Vec<Statement>> {
        let mut statements = Vec::new();
        while !self.eat("}") {
            let at_key = matches!(self.peek(), TokenKind::Word(word) if KEYS.contains(&&**word));
            if at_key || *self.peek() == TokenKind::End {
                return Err(self.expected("`}` at the end of the statements"));
            }
            self.statement_or_skip(&mut statements);
        }
        Ok(statements)
    }

    /// The statement that a condition or a loop governs.
    fn governed(&mut self) -> Parsed<Vec<Statement>> {
        if self.at_declaration() {
            let error = Diagnostic::error("a declaration alone is no branch", self.span(), "");
            return Err(self.report(error.help("declare the variable before, or write `{ ... }`")));
        }
        Ok(match self.statement()? {
            Some(Statement { node: StatementKind::Block(statements), .. }) => statements,
            Some(statement) => vec![statement],
            None => Vec::new(),
        })
    }

    fn conditional(&mut self) -> Parsed<StatementKind> {
        self.expect("(", "after `if`")?;
        let condition = self.expr()?;
        self.expect(")", "after the condition")?;
        let yes = self.governed()?;
        let no = if self.eat_word("else") { self.governed()? } else { Vec::new() };
        Ok(StatementKind::If { condition, yes, no })
    }

    fn repetition(&mut self) -> Parsed<StatementKind> {
        self.expect("(", "after `for`")?;
        let part = |parser: &mut Self, end: &'static str| -> Parsed<Option<Box<Statement>>> {
            if parser.eat(end) {
                return Ok(None);
            }
            let start = parser.span();
            let kind = parser.simple()?;
            let statement = Statement::new(kind, parser.since(start));
            parser.expect(end, "in the head of the loop")?;
            Ok(Some(Box::new(statement)))
        };
        let start = part(self, ";")?;
        if self.is(";") {
            let error = Diagnostic::error("this loop has no end", self.span(), "no condition");
            return Err(self.report(error.help("write a condition, as in `k < 3`")));
        }
        let condition = self.expr()?;
        self.expect(";", "in the head of the loop")?;
        let advance = part(self, ")")?;
        let body = self.governed()?;
        Ok(StatementKind::For { start, condition, advance, body })
    }

    fn at_declaration(&self) -> bool {
        self.at_type() || self.is_word("const")
    }

    /// A declaration or an assignment, without what ends it.
    fn simple(&mut self) -> Parsed<StatementKind> {
        if self.at_declaration() {
            return self.declaration();
        }
        let start = self.span();
        for (mark, op) in [("++", BinaryOp::Add), ("--", BinaryOp::Sub)] {
            if self.eat(mark) {
                return self.step(None, Spanned::new(op, start));
            }
        }
        if let TokenKind::Word(word) = self.peek()
            && let Some(help) = types::refused_statement(word)
        {
            let error = Diagnostic::error(format!("SL has no `{word}`"), start, "");
            return Err(self.report(error.help(help)));
        }
        if let (TokenKind::Word(word), TokenKind::Word(_)) = (self.peek(), self.peek_at(1))
            && !types::is_reserved(word)
        {
            // As in `Float a;`.
            self.element()?;
        }
        let target = self.prefix_expr()?;
        let here = self.span();
        for (mark, op) in [("++", BinaryOp::Add), ("--", BinaryOp::Sub)] {
            if self.eat(mark) {
                return self.step(Some(target), Spanned::new(op, here));
            }
        }
        let found = ASSIGNMENTS.into_iter().find(|(mark, _)| self.is(mark));
        let Some((_, op)) = found else {
            let (place, text) = (target.span, "this statement does nothing");
            let at_end = self.is(";") || self.is("}");
            let error = match at_end {
                true => Diagnostic::error(text, place, "no assignment")
                    .help("assign the value to a variable, or `return` it"),
                false => return Err(self.expected("an assignment, as in `a = 1`")),
            };
            return Err(self.report(error));
        };
        self.bump();
        let value = self.expr()?;
        self.assignment(target, op.map(|op| Spanned::new(op, here)), value)
    }

    /// `k++` and `++k`.
    fn step(&mut self, target: Option<Expr>, op: Spanned<BinaryOp>) -> Parsed<StatementKind> {
        let one = Expr::new(ExprKind::Int { value: 1, element: Element::I32 }, op.span);
        let target = match target {
            Some(target) => target,
            None => self.prefix_expr()?,
        };
        self.assignment(target, Some(op), one)
    }

    fn assignment(
        &mut self,
        target: Expr,
        op: Option<Spanned<BinaryOp>>,
        value: Expr,
    ) -> Parsed<StatementKind> {
        match target.node {
            ExprKind::Name(name) => {
                let name = Spanned::new(name, target.span);
                Ok(StatementKind::Assign { name, index: None, op, value })
            }
            ExprKind::Index(name, index) => {
                Ok(StatementKind::Assign { name, index: Some(*index), op, value })
            }
            _ => {
                let message = "only a variable or an element of an array can be assigned to";
                let error = Diagnostic::error(message, target.span, "");
                Err(self.report(error))
            }
        }
    }

    fn declaration(&mut self) -> Parsed<StatementKind> {
        let mut constant = self.eat_word("const");
        let element = self.element()?;
        constant |= self.eat_word("const");
        let mut variables = Vec::new();
        loop {
            if self.is("*") {
                let error = Diagnostic::error("SL has no pointers", self.span(), "");
                return Err(self.report(error.help("use a local array, as in `float w[3];`")));
            }
            let name = self.name("the name of a variable")?;
            let mut length = None;
            if self.eat("[") {
                if self.is("]") {
                    let message = "an array needs its number of elements";
                    let error = Diagnostic::error(message, self.span(), "");
                    return Err(self.report(error.help("write it, as in `float w[3]`")));
                }
                length = Some(self.expr()?);
                self.expect("]", "after the number of elements")?;
                if self.is("[") {
                    let message = "an array has one dimension";
                    let error = Diagnostic::error(message, self.span(), "");
                    return Err(self.report(error.help("compute the place, as in `w[3*j + i]`")));
                }
            }
            let values = if self.eat("=") { Some(self.initial(length.is_some())?) } else { None };
            variables.push(Declarator { name, length, values });
            if !self.eat(",") {
                break;
            }
        }
        Ok(StatementKind::Declare { element, constant, variables })
    }

    /// `e`, or `{a, b, c}` of an array.
    fn initial(&mut self, array: bool) -> Parsed<Vec<Expr>> {
        let span = self.span();
        if self.is("{") != array {
            let error = match array {
                true => Diagnostic::error("an array begins with a list of values", span, "")
                    .help("write it as in `float w[3] = {1, 2, 1};`"),
                false => Diagnostic::error("a variable begins with one value", span, "")
                    .help("leave the braces out, or declare an array, as in `float w[3]`"),
            };
            return Err(self.report(error));
        }
        if !array {
            return Ok(vec![self.expr()?]);
        }
        self.bump();
        let mut values = Vec::new();
        while !self.is("}") {
            values.push(self.expr()?);
            if !self.eat(",") {
                break;
            }
        }
        self.expect("}", "after the values")?;
        Ok(values)
    }
}
