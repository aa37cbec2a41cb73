//! Reads expressions: a parser by recursive descent, two levels of precedence and unary minus.

use super::{Expr, ExprError, Op};
use std::str::FromStr;

impl FromStr for Expr {
    type Err = ExprError;

    fn from_str(text: &str) -> Result<Expr, ExprError> {
        let mut parser = Parser { text, at: 0, budget: MOST_PARTS };
        let expr = parser.sum()?;
        parser.space();
        if parser.at < text.len() {
            return parser.fail("an operator or the end was expected");
        }
        Ok(expr)
    }
}

/// Numbers, names, signs and brackets of one expression; more are refused, so that no text can
/// exhaust the stack.
const MOST_PARTS: usize = 1000;

struct Parser<'a> {
    text: &'a str,
    /// Byte position of the next character.
    at: usize,
    budget: usize,
}

impl<'a> Parser<'a> {
    fn sum(&mut self) -> Result<Expr, ExprError> {
        let mut left = self.product()?;
        loop {
            let op = match self.peek() {
                Some('+') => Op::Add,
                Some('-') => Op::Sub,
                _ => return Ok(left),
            };
            self.at += 1;
            left = Expr::Binary(op, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Expr, ExprError> {
        let mut left = self.unary()?;
        loop {
            let op = if self.peek() == Some('*') {
                self.at += 1;
                Op::Mul
            } else {
                let before = self.at;
                match self.word() {
                    "floordiv" => Op::FloorDiv,
                    "ceildiv" => Op::CeilDiv,
                    "mod" => Op::Mod,
                    _ => {
                        self.at = before;
                        return Ok(left);
                    }
                }
            };
            left = Expr::Binary(op, Box::new(left), Box::new(self.unary()?));
        }
    }

    fn unary(&mut self) -> Result<Expr, ExprError> {
        self.budget = match self.budget.checked_sub(1) {
            Some(rest) => rest,
            None => return self.fail("the expression is too long"),
        };
        match self.peek() {
            Some('-') => {
                self.at += 1;
                match self.peek() {
                    Some(c) if c.is_ascii_digit() => self.integer("-"),
                    _ => Ok(Expr::Neg(Box::new(self.unary()?))),
                }
            }
            Some('(') => {
                self.at += 1;
                let inner = self.sum()?;
                self.expect(')')?;
                Ok(inner)
            }
            Some(c) if c.is_ascii_digit() => self.integer(""),
            _ => match self.word() {
                "" => self.fail("a name, a number or `(` was expected"),
                name @ ("min" | "max") if self.peek() == Some('(') => {
                    let op = if name == "min" { Op::Min } else { Op::Max };
                    self.at += 1;
                    let left = self.sum()?;
                    self.expect(',')?;
                    let right = self.sum()?;
                    self.expect(')')?;
                    Ok(Expr::Binary(op, Box::new(left), Box::new(right)))
                }
                name => Ok(Expr::name(name)),
            },
        }
    }

    fn integer(&mut self, sign: &str) -> Result<Expr, ExprError> {
        let digits = self.take(|c| c.is_ascii_digit());
        if self.rest().starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '.') {
            return self.fail("a whole number was expected");
        }
        match format!("{sign}{digits}").parse() {
            Ok(value) => Ok(Expr::Int(value)),
            Err(_) => self.fail("the number does not fit in 64 bits"),
        }
    }

    /// The name or word at this place; empty where there is none.
    fn word(&mut self) -> &'a str {
        self.space();
        if self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return "";
        }
        self.take(|c| c.is_ascii_alphanumeric() || c == '_')
    }

    fn take(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn expect(&mut self, wanted: char) -> Result<(), ExprError> {
        if self.peek() == Some(wanted) {
            self.at += wanted.len_utf8();
            return Ok(());
        }
        self.fail(&format!("`{wanted}` was expected"))
    }

    fn peek(&mut self) -> Option<char> {
        self.space();
        self.rest().chars().next()
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn fail<T>(&self, message: &str) -> Result<T, ExprError> {
        let place = self.text.get(..self.at).unwrap_or_default().chars().count() + 1;
        Err(ExprError::Syntax { text: self.text.to_string(), place, message: message.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_text_is_refused_with_its_place() {
        for (text, place, message) in [
            ("", 1, "a name, a number or `(` was expected"),
            ("N +", 4, "a name, a number or `(` was expected"),
            ("(N", 3, "`)` was expected"),
            ("N 2", 3, "an operator or the end was expected"),
            ("min(N)", 6, "`,` was expected"),
            ("N / 2", 3, "an operator or the end was expected"),
            ("2.5", 2, "a whole number was expected"),
            ("99999999999999999999", 21, "the number does not fit in 64 bits"),
            ("ä", 1, "a name, a number or `(` was expected"),
        ] {
            let error = text.parse::<Expr>().unwrap_err();
            assert_eq!(
                error,
                ExprError::Syntax { text: text.into(), place, message: message.into() }
            );
        }
        let deep = "(".repeat(100_000);
        assert!(deep.parse::<Expr>().unwrap_err().to_string().contains("too long"));
    }
}
