//! Integer expressions in the run-time sizes, written as text: `(N + 63) floordiv 64`.
//!
//! Names, integers, `+ - *`, `floordiv`, `ceildiv`, `mod`, `min(a, b)`, `max(a, b)`, parentheses
//! and unary minus; the words are those of MLIR's affine expressions, and so is the rule that a
//! divisor must be positive. Arithmetic is in 64 bits and checked: nothing wraps.

mod parse;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::ops;
use thiserror::Error;

/// The values of the names: sizes and `steps`.
pub type Sizes = BTreeMap<String, i64>;

/// An integer expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A constant.
    Int(i64),
    /// A run-time size, or `steps`.
    Name(String),
    /// The negative.
    Neg(Box<Expr>),
    /// An operation on two.
    Binary(Op, Box<Expr>, Box<Expr>),
}

/// An operation on two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a floordiv b`, rounded down; `b` must be positive.
    FloorDiv,
    /// `a ceildiv b`, rounded up; `b` must be positive.
    CeilDiv,
    /// `a mod b`, from 0 to `b - 1`; `b` must be positive.
    Mod,
    /// `min(a, b)`
    Min,
    /// `max(a, b)`
    Max,
}

/// Why an expression has no value, or a text is no expression.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExprError {
    /// The value does not fit.
    #[error("size overflow: `{expr}` does not fit in 64 bits; use smaller sizes")]
    Overflow {
        /// The part that overflowed.
        expr: String,
    },
    /// A name without a value.
    #[error("`{name}` has no value; give one with --size {name}=...")]
    Unknown {
        /// The name.
        name: String,
    },
    /// A divisor that is zero or negative.
    #[error("the divisor in `{expr}` is {value}; it must be positive")]
    Divisor {
        /// The division.
        expr: String,
        /// The divisor's value.
        value: i64,
    },
    /// The text is no expression.
    #[error("`{text}` is no size expression: {message} at character {place}")]
    Syntax {
        /// The text.
        text: String,
        /// Where reading stopped, from 1.
        place: usize,
        /// The fault.
        message: String,
    },
}

impl Expr {
    /// A constant.
    pub fn int(value: i64) -> Expr {
        Expr::Int(value)
    }

    /// A run-time size, or `steps`.
    pub fn name(name: impl Into<String>) -> Expr {
        Expr::Name(name.into())
    }

    /// `self floordiv other`, constants folded.
    pub fn floor_div(self, other: impl Into<Expr>) -> Expr {
        build(Op::FloorDiv, self, other.into())
    }

    /// `self ceildiv other`, constants folded.
    pub fn ceil_div(self, other: impl Into<Expr>) -> Expr {
        build(Op::CeilDiv, self, other.into())
    }

    /// `self mod other`, constants folded.
    pub fn modulo(self, other: impl Into<Expr>) -> Expr {
        build(Op::Mod, self, other.into())
    }

    /// `min(self, other)`, constants folded.
    pub fn min(self, other: impl Into<Expr>) -> Expr {
        build(Op::Min, self, other.into())
    }

    /// `max(self, other)`, constants folded.
    pub fn max(self, other: impl Into<Expr>) -> Expr {
        build(Op::Max, self, other.into())
    }

    /// The value of a constant; `None` for all else.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Expr::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The value.
    ///
    /// # Errors
    /// On overflow, on a name without a value, on a divisor that is not positive.
    pub fn evaluate(&self, sizes: &Sizes) -> Result<i64, ExprError> {
        match self {
            Expr::Int(value) => Ok(*value),
            Expr::Name(name) => {
                sizes.get(name).copied().ok_or_else(|| ExprError::Unknown { name: name.clone() })
            }
            Expr::Neg(inner) => inner
                .evaluate(sizes)?
                .checked_neg()
                .ok_or_else(|| ExprError::Overflow { expr: self.to_string() }),
            Expr::Binary(op, left, right) => {
                let (a, b) = (left.evaluate(sizes)?, right.evaluate(sizes)?);
                if op.divides() && b <= 0 {
                    return Err(ExprError::Divisor { expr: self.to_string(), value: b });
                }
                op.apply(a, b).ok_or_else(|| ExprError::Overflow { expr: self.to_string() })
            }
        }
    }

    /// Calls `visit` with every name in the expression, from left to right.
    pub fn for_each_name<'a>(&'a self, visit: &mut impl FnMut(&'a str)) {
        match self {
            Expr::Int(_) => {}
            Expr::Name(name) => visit(name),
            Expr::Neg(inner) => inner.for_each_name(visit),
            Expr::Binary(_, left, right) => {
                left.for_each_name(visit);
                right.for_each_name(visit);
            }
        }
    }

    /// The expression as `sum(coefficient * name) + constant`, where it is that simple: sums,
    /// differences and products with constants.
    pub fn affine(&self) -> Option<Affine> {
        match self {
            Expr::Int(value) => Some(Affine { terms: BTreeMap::new(), constant: *value }),
            Expr::Name(name) => {
                Some(Affine { terms: BTreeMap::from([(name.clone(), 1)]), constant: 0 })
            }
            Expr::Neg(inner) => inner.affine()?.scale(-1),
            Expr::Binary(Op::Add, left, right) => left.affine()?.add(&right.affine()?),
            Expr::Binary(Op::Sub, left, right) => left.affine()?.add(&right.affine()?.scale(-1)?),
            Expr::Binary(Op::Mul, left, right) => {
                let (left, right) = (left.affine()?, right.affine()?);
                if left.terms.is_empty() {
                    right.scale(left.constant)
                } else if right.terms.is_empty() {
                    left.scale(right.constant)
                } else {
                    None
                }
            }
            Expr::Binary(..) => None,
        }
    }
}

/// `sum(coefficient * name) + constant`; no coefficient is zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affine {
    /// The names and their coefficients.
    pub terms: BTreeMap<String, i64>,
    /// The rest.
    pub constant: i64,
}

impl Affine {
    fn scale(&self, factor: i64) -> Option<Affine> {
        let mut terms = BTreeMap::new();
        for (name, coefficient) in &self.terms {
            if factor != 0 {
                terms.insert(name.clone(), coefficient.checked_mul(factor)?);
            }
        }
        Some(Affine { terms, constant: self.constant.checked_mul(factor)? })
    }

    fn add(mut self, other: &Affine) -> Option<Affine> {
        for (name, coefficient) in &other.terms {
            let sum = self.terms.get(name).copied().unwrap_or(0).checked_add(*coefficient)?;
            if sum == 0 {
                self.terms.remove(name);
            } else {
                self.terms.insert(name.clone(), sum);
            }
        }
        self.constant = self.constant.checked_add(other.constant)?;
        Some(self)
    }
}

impl Op {
    fn divides(self) -> bool {
        matches!(self, Op::FloorDiv | Op::CeilDiv | Op::Mod)
    }

    /// The value; `None` on overflow and on a divisor that is not positive.
    fn apply(self, a: i64, b: i64) -> Option<i64> {
        if self.divides() && b <= 0 {
            return None;
        }
        match self {
            Op::Add => a.checked_add(b),
            Op::Sub => a.checked_sub(b),
            Op::Mul => a.checked_mul(b),
            Op::FloorDiv => a.checked_div_euclid(b),
            Op::CeilDiv => {
                let down = a.checked_div_euclid(b)?;
                if a.rem_euclid(b) == 0 { Some(down) } else { down.checked_add(1) }
            }
            Op::Mod => a.checked_rem_euclid(b),
            Op::Min => Some(a.min(b)),
            Op::Max => Some(a.max(b)),
        }
    }

    /// The word between the operands, or before them in the case of `min` and `max`.
    fn word(self) -> &'static str {
        match self {
            Op::Add => "+",
            Op::Sub => "-",
            Op::Mul => "*",
            Op::FloorDiv => "floordiv",
            Op::CeilDiv => "ceildiv",
            Op::Mod => "mod",
            Op::Min => "min",
            Op::Max => "max",
        }
    }

    /// How tightly the operation binds; `None` for those written as calls.
    fn precedence(self) -> Option<u8> {
        match self {
            Op::Add | Op::Sub => Some(1),
            Op::Mul | Op::FloorDiv | Op::CeilDiv | Op::Mod => Some(2),
            Op::Min | Op::Max => None,
        }
    }
}

/// An operation with constants folded and neutral operands dropped, where that can't overflow.
fn build(op: Op, left: Expr, right: Expr) -> Expr {
    match (op, left.as_int(), right.as_int()) {
        (_, Some(a), Some(b)) => {
            if let Some(value) = op.apply(a, b) {
                return Expr::Int(value);
            }
        }
        (Op::Add | Op::Sub, _, Some(0)) | (Op::Mul | Op::FloorDiv | Op::CeilDiv, _, Some(1)) => {
            return left;
        }
        (Op::Add, Some(0), _) | (Op::Mul, Some(1), _) => return right,
        (Op::Add, _, Some(b)) if b < 0 && b != i64::MIN => {
            return Expr::Binary(Op::Sub, Box::new(left), Box::new(Expr::Int(-b)));
        }
        (Op::Sub, _, Some(b)) if b < 0 && b != i64::MIN => {
            return Expr::Binary(Op::Add, Box::new(left), Box::new(Expr::Int(-b)));
        }
        _ => {}
    }
    Expr::Binary(op, Box::new(left), Box::new(right))
}

impl From<i64> for Expr {
    fn from(value: i64) -> Expr {
        Expr::Int(value)
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, $op:expr) => {
        impl<T: Into<Expr>> ops::$trait<T> for Expr {
            type Output = Expr;
            fn $method(self, other: T) -> Expr {
                build($op, self, other.into())
            }
        }
    };
}
operator!(Add, add, Op::Add);
operator!(Sub, sub, Op::Sub);
operator!(Mul, mul, Op::Mul);

impl ops::Neg for Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        match self {
            Expr::Int(value) if value != i64::MIN => Expr::Int(-value),
            Expr::Neg(inner) => *inner,
            other => Expr::Neg(Box::new(other)),
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Int(value) => write!(f, "{value}"),
            Expr::Name(name) => f.write_str(name),
            Expr::Neg(inner) => match **inner {
                Expr::Int(_) => write!(f, "-({inner})"),
                _ => {
                    f.write_str("-")?;
                    operand(f, inner, 3)
                }
            },
            Expr::Binary(op, left, right) => match op.precedence() {
                Some(own) => {
                    operand(f, left, own)?;
                    write!(f, " {} ", op.word())?;
                    operand(f, right, own + 1)
                }
                None => write!(f, "{}({left}, {right})", op.word()),
            },
        }
    }
}

/// Writes an operand, in parentheses if it binds less tightly than `least`.
fn operand(f: &mut fmt::Formatter<'_>, expr: &Expr, least: u8) -> fmt::Result {
    match expr {
        Expr::Binary(op, ..) if op.precedence().is_some_and(|own| own < least) => {
            write!(f, "({expr})")
        }
        _ => write!(f, "{expr}"),
    }
}

impl Serialize for Expr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Expr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Expr, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
