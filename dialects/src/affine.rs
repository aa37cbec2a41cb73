//! Affine expressions over the run-time sizes, as plain data that can be compared.

use melior::Context;
use melior::ir::{AffineExpr, AffineMap};
use num_integer::gcd;
use std::collections::BTreeSet;
use std::fmt::Write;

/// `constant + sum of coefficient * symbol`, one coefficient a symbol.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Linear {
    /// The constant term.
    pub constant: i64,
    /// One coefficient per symbol of the map.
    pub coefficients: Vec<i64>,
}

impl Linear {
    /// The linear form of an expression in symbols; none if it divides, has dimensions or
    /// overflows.
    pub fn of(expression: AffineExpr, symbols: usize) -> Option<Self> {
        let zero = || Self { constant: 0, coefficients: vec![0; symbols] };
        if expression.is_constant() {
            return Some(Self { constant: expression.constant_value(), ..zero() });
        }
        if expression.is_symbol() {
            let mut linear = zero();
            *linear.coefficients.get_mut(expression.symbol_position())? = 1;
            return Some(linear);
        }
        if !expression.is_binary() {
            return None;
        }
        let (left, right) =
            (Self::of(expression.lhs(), symbols)?, Self::of(expression.rhs(), symbols)?);
        if expression.is_add() {
            left.plus(&right)
        } else if expression.is_mul() {
            if right.is_constant() {
                left.times(right.constant)
            } else if left.is_constant() {
                right.times(left.constant)
            } else {
                None
            }
        } else {
            None
        }
    }

    /// The linear forms of a map's results; none if any of them has none.
    pub fn of_map(map: AffineMap) -> Option<Vec<Self>> {
        (0..map.result_count())
            .map(|index| Self::of(map.result(index).ok()?, map.symbol_count()))
            .collect()
    }

    /// A map with these results.
    pub fn map<'c>(context: &'c Context, symbols: usize, results: &[Self]) -> AffineMap<'c> {
        let constant = |value| AffineExpr::constant(context, value);
        let expression = |linear: &Self| {
            let terms = linear
                .coefficients
                .iter()
                .enumerate()
                .filter(|(_, coefficient)| **coefficient != 0);
            let terms = terms
                .map(|(symbol, factor)| AffineExpr::symbol(context, symbol) * constant(*factor));
            terms.reduce(|sum, term| sum + term).map_or_else(
                || constant(linear.constant),
                |sum| if linear.constant == 0 { sum } else { sum + constant(linear.constant) },
            )
        };
        symbolic(context, symbols, &results.iter().map(expression).collect::<Vec<_>>())
    }

    /// Joins the constants, and the coefficients of each symbol. Both must have the same symbols.
    pub fn each(&self, other: &Self, join: impl Fn(i64, i64) -> i64) -> Self {
        let pairs = self.coefficients.iter().zip(&other.coefficients);
        let coefficients = pairs.map(|(a, b)| join(*a, *b)).collect();
        Self { constant: join(self.constant, other.constant), coefficients }
    }

    /// The sum; none where it leaves 64 bits. Both must have the same symbols.
    pub fn plus(&self, other: &Self) -> Option<Self> {
        let coefficients = self
            .coefficients
            .iter()
            .zip(&other.coefficients)
            .map(|(a, b)| a.checked_add(*b))
            .collect::<Option<_>>()?;
        Some(Self { constant: self.constant.checked_add(other.constant)?, coefficients })
    }

    /// The product with a number; none where it leaves 64 bits.
    pub fn times(&self, factor: i64) -> Option<Self> {
        let coefficients =
            self.coefficients.iter().map(|a| a.checked_mul(factor)).collect::<Option<_>>()?;
        Some(Self { constant: self.constant.checked_mul(factor)?, coefficients })
    }

    /// The difference; none where it leaves 64 bits. Both must have the same symbols.
    pub fn minus(&self, other: &Self) -> Option<Self> {
        self.plus(&other.times(-1)?)
    }

    /// Whether no symbol occurs.
    pub fn is_constant(&self) -> bool {
        self.coefficients.iter().all(|coefficient| *coefficient == 0)
    }

    /// Whether the value is negative for no sizes at all (every size is at least 0).
    pub fn is_never_negative(&self) -> bool {
        self.constant >= 0 && self.coefficients.iter().all(|coefficient| *coefficient >= 0)
    }

    /// Whether the value is not negative wherever the known values are not ([`Facts::imply`]).
    pub fn follows_from(&self, known: &[Self]) -> bool {
        self.is_never_negative() || known.iter().collect::<Facts>().imply(self)
    }

    /// The same condition `self >= 0` over the integers, without a common divisor of the
    /// coefficients.
    fn tightened(&self) -> Self {
        let divisor =
            self.coefficients.iter().fold(0_u64, |divisor, c| gcd(divisor, c.unsigned_abs()));
        match i64::try_from(divisor) {
            Ok(divisor) if divisor > 1 => Self {
                constant: self.constant.div_euclid(divisor),
                coefficients: self.coefficients.iter().map(|c| c / divisor).collect(),
            },
            _ => self.clone(),
        }
    }

    /// The value without a multiple of another; none where it leaves 64 bits.
    fn less(&self, fact: &Self, factor: i64) -> Option<Self> {
        let less = |own: i64, other: i64| own.checked_sub(other.checked_mul(factor)?);
        let pairs = self.coefficients.iter().zip(&fact.coefficients);
        let coefficients = pairs.map(|(own, other)| less(*own, *other)).collect::<Option<_>>()?;
        Some(Self { constant: less(self.constant, fact.constant)?, coefficients })
    }

    /// Whether a multiple of `fact` may be all that this value lacks: it is negative wherever this
    /// value is. With many facts, almost all are told apart by this.
    fn may_lack(&self, fact: &Self) -> bool {
        let pairs = self.coefficients.iter().zip(&fact.coefficients);
        pairs.chain([(&self.constant, &fact.constant)]).all(|(own, other)| *own >= 0 || *other < 0)
    }

    /// Factors that may take some coefficient of `fact` off this value, or its constant.
    fn ratios(&self, fact: &Self) -> BTreeSet<i64> {
        let pairs = self
            .coefficients
            .iter()
            .zip(&fact.coefficients)
            .chain([(&self.constant, &fact.constant)]);
        let quotients = pairs.filter_map(|(own, other)| {
            Some((own.checked_div(*other)?, own.checked_rem(*other)? != 0))
        });
        let around = quotients
            .flat_map(|(quotient, cut)| [quotient, quotient.saturating_add(i64::from(cut))]);
        around.filter(|factor| *factor > 0).collect()
    }

    /// Whether the value is negative for all sizes (every size is at least 0).
    pub fn is_always_negative(&self) -> bool {
        self.constant < 0 && self.coefficients.iter().all(|coefficient| *coefficient <= 0)
    }
}

/// Values that are known not to be negative. A value that is never negative proves nothing, and is
/// left out. The smallest of the values with the same coefficients implies the others, which are
/// left out too.
#[derive(Clone, Debug, Default)]
pub struct Facts(Vec<Linear>);

impl Facts {
    /// One more value.
    pub fn add(&mut self, value: &Linear) {
        if value.is_never_negative() {
            return;
        }
        let value = value.tightened();
        match self.0.iter_mut().find(|kept| kept.coefficients == value.coefficients) {
            Some(kept) => kept.constant = kept.constant.min(value.constant),
            None => self.0.push(value),
        }
    }

    /// Whether a value is not negative either: it is a sum of multiples of at most two of the
    /// values, brought to integers, and of what is never negative. `false` means that no such sum
    /// was found.
    pub fn imply(&self, value: &Linear) -> bool {
        self.imply_by(value, 2)
    }

    fn imply_by(&self, value: &Linear, terms: u32) -> bool {
        value.is_never_negative()
            || terms > 0
                && self.0.iter().filter(|fact| terms > 1 || value.may_lack(fact)).any(|fact| {
                    let ratios = value.ratios(fact).into_iter();
                    let mut rests = ratios.filter_map(|factor| value.less(fact, factor));
                    rests.any(|rest| self.imply_by(&rest, terms - 1))
                })
    }
}

impl<'v> FromIterator<&'v Linear> for Facts {
    fn from_iter<I: IntoIterator<Item = &'v Linear>>(values: I) -> Self {
        let mut facts = Self::default();
        values.into_iter().for_each(|value| facts.add(value));
        facts
    }
}

/// A map of symbols only with the given results.
pub fn symbolic<'c>(
    context: &'c Context,
    symbols: usize,
    results: &[AffineExpr<'c>],
) -> AffineMap<'c> {
    AffineMap::new(context, 0, symbols, results)
}

/// The first constant in an expression that something is divided by and that is not positive; such
/// an expression has no value.
pub fn wrong_divisor(expression: AffineExpr) -> Option<i64> {
    if !expression.is_binary() {
        return None;
    }
    let (left, right) = (expression.lhs(), expression.rhs());
    let divides = !expression.is_add() && !expression.is_mul();
    if divides && right.is_constant() && right.constant_value() <= 0 {
        return Some(right.constant_value());
    }
    wrong_divisor(left).or_else(|| wrong_divisor(right))
}

/// The expression as text, with names for its symbols: `(N + 63) floordiv 64`. The form is that of
/// the plan's expressions (`stencil_runtime::expr`); a symbol without a name is `s0`, `s1`, ...
pub fn text(expression: AffineExpr, names: &[&str]) -> String {
    let mut out = String::new();
    write_expression(&mut out, expression, names, 0);
    out
}

/// `least` is the level below which an expression needs parentheses: 1 for sums, 2 for products.
fn write_expression(out: &mut String, expression: AffineExpr, names: &[&str], least: u8) {
    if expression.is_constant() {
        let _ = write!(out, "{}", expression.constant_value());
    } else if expression.is_symbol() {
        let position = expression.symbol_position();
        let _ = match names.get(position) {
            Some(name) => write!(out, "{name}"),
            None => write!(out, "s{position}"),
        };
    } else if expression.is_dim() {
        let _ = write!(out, "d{}", expression.dim_position());
    } else {
        let (operator, level) = if expression.is_add() {
            (" + ", 1)
        } else if expression.is_mul() {
            (" * ", 2)
        } else if expression.is_mod() {
            (" mod ", 2)
        } else if expression.is_floor_div() {
            (" floordiv ", 2)
        } else {
            (" ceildiv ", 2)
        };
        let parentheses = level < least;
        if parentheses {
            out.push('(');
        }
        let right = expression.rhs();
        write_expression(out, expression.lhs(), names, level);
        if level == 1 && right.is_constant() && right.constant_value() < 0 {
            let _ = write!(out, " - {}", right.constant_value().unsigned_abs());
        } else {
            out.push_str(operator);
            // A sum within a sum needs none, because nothing is taken from a sum.
            write_expression(out, right, names, if level == 1 { 1 } else { level + 1 });
        }
        if parentheses {
            out.push(')');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use melior::Context;

    #[test]
    fn values_follow_from_multiples_of_others() {
        let value = |constant, coefficients: [i64; 2]| Linear {
            constant,
            coefficients: coefficients.to_vec(),
        };
        // P >= 5 gives 2 P >= 9 and 3 P >= 14, but not 2 P >= 11.
        let known = [value(-5, [1, 0])];
        assert!(value(-9, [2, 0]).follows_from(&known));
        assert!(value(-14, [3, 0]).follows_from(&known));
        assert!(!value(-11, [2, 0]).follows_from(&known));
        // 2 P >= 9 gives P >= 5.
        assert!(value(-10, [2, 0]).follows_from(&[value(-9, [2, 0])]));
        // 2 Q <= P and P <= 7 give 2 Q <= 7 and 4 Q <= 14, which no sum shows to be 2 Q <= 6.
        let known = [value(0, [1, -2]), value(7, [-1, 0])];
        assert!(value(7, [0, -2]).follows_from(&known));
        assert!(value(14, [0, -4]).follows_from(&known));
        assert!(!value(6, [0, -2]).follows_from(&known));
        assert!(!value(-1, [0, 1]).follows_from(&known));
    }

    #[test]
    fn text_keeps_the_grouping() {
        let context = Context::new();
        let (n, m) = (AffineExpr::symbol(&context, 0), AffineExpr::symbol(&context, 1));
        let constant = |value| AffineExpr::constant(&context, value);
        for (expression, wanted) in [
            ((n + constant(1)) * m, "(N + 1) * M"),
            (AffineExpr::ceil_div(n + constant(1), constant(4)), "(N + 1) ceildiv 4"),
            (AffineExpr::ceil_div(n + constant(-1), constant(4)) * m, "(N - 1) ceildiv 4 * M"),
            (
                AffineExpr::modulo(AffineExpr::floor_div(n, constant(2)), constant(3)),
                "N floordiv 2 mod 3",
            ),
            (m * AffineExpr::ceil_div(n, constant(4)), "M * (N ceildiv 4)"),
            (n + (m + constant(-2)), "N + M - 2"),
        ] {
            assert_eq!(text(expression, &["N", "M"]), wanted);
        }
    }
}
