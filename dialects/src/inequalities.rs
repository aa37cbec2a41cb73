//! What follows from linear inequalities over the run-time sizes, by Fourier-Motzkin elimination.
//!
//! Stronger than [`Linear::follows_from`] and slower: it joins any number of known values, and
//! brings each sum of them to integers again. It finds what the checker of the language finds, so
//! that the verifier refuses no program that the checker accepts. The checker has a prover of its
//! own, `driver/frontend/src/check/prove.rs`, whose head says why there are two.

use crate::affine::Linear;
use num_integer::gcd;
use std::collections::{BTreeMap, BTreeSet};

/// More inequalities than this are not pursued.
const MOST_ROWS: usize = 200;

/// `coefficients * sizes + constant >= 0`.
type Row = (Vec<i128>, i128);

/// Inequalities. The one with the smallest constant implies all others with its coefficients, and
/// is the only one kept.
#[derive(Default)]
struct Rows(BTreeMap<Vec<i128>, i128>);

impl Rows {
    fn insert(&mut self, (coefficients, constant): Row) {
        let kept = self.0.entry(coefficients).or_insert(constant);
        *kept = constant.min(*kept);
    }

    /// The row that makes this one an equation.
    fn opposite(&self, coefficients: &[i128], constant: i128) -> Option<Row> {
        let opposite: Vec<i128> = coefficients.iter().map(|c| -c).collect();
        (self.0.get(&opposite) == Some(&-constant)).then_some((opposite, -constant))
    }

    /// Removes the rows of unknowns that all rows have with one sign: large values of these satisfy
    /// them, so no contradiction needs them.
    fn remove_satisfied(&mut self, unknowns: usize) {
        loop {
            let mut signs = vec![(false, false); unknowns];
            for row in self.0.keys() {
                for (factor, (above, below)) in row.iter().zip(&mut signs) {
                    *above |= *factor > 0;
                    *below |= *factor < 0;
                }
            }
            let satisfied = |row: &[i128]| {
                let mut both = row.iter().zip(&signs);
                both.any(|(factor, (above, below))| *factor != 0 && above != below)
            };
            let before = self.0.len();
            self.0.retain(|row, _| !satisfied(row));
            if self.0.len() == before {
                return;
            }
        }
    }

    /// The open unknown whose elimination makes the fewest new rows.
    fn cheapest(&self, open: &BTreeSet<usize>, unknowns: usize) -> Option<usize> {
        let mut counts = vec![(0_usize, 0_usize, false); unknowns];
        for (coefficients, constant) in &self.0 {
            let first = coefficients.iter().find(|factor| **factor != 0);
            let equation = first.is_some_and(|first| *first > 0)
                && self.opposite(coefficients, *constant).is_some();
            for (factor, (above, below, equations)) in coefficients.iter().zip(&mut counts) {
                *above += usize::from(*factor > 0);
                *below += usize::from(*factor < 0);
                *equations |= equation && *factor != 0;
            }
        }
        let made = |at: &usize| match counts.get(*at) {
            Some((above, below, true)) => (above * below).min(above + below),
            Some((above, below, false)) => above * below,
            None => 0,
        };
        open.iter().copied().min_by_key(made)
    }

    /// Two rows that together are an equation with a size, first the one in which its coefficient
    /// is positive. The smallest such coefficient is taken.
    fn equation(&self, size: usize) -> Option<[Row; 2]> {
        let positive = self.0.iter().filter(|(row, _)| coefficient(row, size) > 0);
        let equations = positive.filter_map(|row| Some((row, self.opposite(row.0, *row.1)?)));
        let (row, opposite) = equations.min_by_key(|((row, _), _)| coefficient(row, size))?;
        Some([(row.0.clone(), *row.1), opposite])
    }
}

impl FromIterator<Row> for Rows {
    fn from_iter<T: IntoIterator<Item = Row>>(rows: T) -> Self {
        let mut result = Self::default();
        rows.into_iter().for_each(|row| result.insert(row));
        result
    }
}

/// Whether a value is not negative wherever the known values and the sizes are not. `false` says
/// that no proof was found.
pub fn imply(known: &[Linear], value: &Linear) -> bool {
    // No integers satisfy `value <= -1` beside the others.
    let Some(opposite) =
        value.times(-1).and_then(|no| Some(Linear { constant: no.constant.checked_sub(1)?, ..no }))
    else {
        return false;
    };
    let sizes = value.coefficients.len();
    let unit = |size| ((0..sizes).map(|other| i128::from(other == size)).collect(), 0);
    let rows = known.iter().chain([&opposite]).map(row).chain((0..sizes).map(unit));
    let mut unbounded = usize::MAX;
    contradict(rows, sizes, &mut unbounded).unwrap_or(false)
}

/// Whether no integers make all values at least 0; unknowns may be negative. `false` says that no
/// proof was found.
pub fn infeasible(values: &[Linear]) -> bool {
    let mut unbounded = usize::MAX;
    infeasible_within(values, &mut unbounded).unwrap_or(false)
}

/// The same within some effort, in coefficients looked at, which is used up; none where it is not
/// enough. The time of an answer is proportional to its effort.
pub fn infeasible_within(values: &[Linear], effort: &mut usize) -> Option<bool> {
    let unknowns = values.first().map_or(0, |value| value.coefficients.len());
    contradict(values.iter().map(row), unknowns, effort)
}

/// Projects the inequalities `value >= 0` onto the first `kept` unknowns, by Fourier-Motzkin
/// elimination. The result is exact over the rationals. None where it gets out of hand.
pub fn projected(values: &[Linear], kept: usize) -> Option<Vec<Linear>> {
    let unknowns = values.first().map_or(0, |value| value.coefficients.len());
    let mut rows: Rows = values.iter().map(row).collect();
    let mut open: BTreeSet<usize> = (kept..unknowns).collect();
    while let Some(next) = rows.cheapest(&open, unknowns) {
        open.remove(&next);
        rows = eliminated(rows, next, &mut 0)?;
    }
    let linear = |(coefficients, constant): (Vec<i128>, i128)| {
        let number = |number: i128| i64::try_from(number).ok();
        let coefficients = coefficients.into_iter().take(kept).map(number).collect::<Option<_>>();
        Some(Linear { constant: number(constant)?, coefficients: coefficients? })
    };
    rows.0.into_iter().map(linear).collect()
}

fn row(linear: &Linear) -> Row {
    let coefficients = linear.coefficients.iter().map(|c| i128::from(*c)).collect();
    tightened((coefficients, linear.constant.into()))
}

/// None where the effort was not enough.
fn contradict(
    rows: impl Iterator<Item = Row>,
    unknowns: usize,
    effort: &mut usize,
) -> Option<bool> {
    let mut rows: Rows = rows.collect();
    let mut open: BTreeSet<usize> = (0..unknowns).collect();
    let zeros = vec![0; unknowns];
    loop {
        if rows.0.get(&zeros).is_some_and(|constant| *constant < 0) {
            return Some(true);
        }
        let mut joins = rows.0.len() + 1;
        rows.remove_satisfied(unknowns);
        let Some(size) = rows.cheapest(&open, unknowns) else { return Some(false) };
        open.remove(&size);
        let next = eliminated(rows, size, &mut joins);
        *effort = effort.checked_sub(joins * unknowns)?;
        match next {
            Some(next) => rows = next,
            None => return Some(false),
        }
    }
}

fn coefficient(coefficients: &[i128], size: usize) -> i128 {
    coefficients.get(size).copied().unwrap_or(0)
}

/// The consequences without one size; none where they get out of hand. Adds the joins of rows.
fn eliminated(rows: Rows, size: usize, joins: &mut usize) -> Option<Rows> {
    // An equation gives the size, and each other row needs to be joined with it alone.
    let equation = rows.equation(size);
    let (with, without): (Vec<Row>, Vec<Row>) =
        rows.0.into_iter().partition(|row| coefficient(&row.0, size) != 0);
    let mut result: Rows = without.into_iter().collect();
    let [known, opposite] = equation.map_or([None, None], |equation| equation.map(Some));
    for above in with.iter().filter(|row| coefficient(&row.0, size) > 0) {
        for below in with.iter().filter(|row| coefficient(&row.0, size) < 0) {
            let gives = known.as_ref().is_none_or(|known| known == above);
            if !gives && opposite.as_ref() != Some(below) {
                continue;
            }
            *joins += 1;
            let (p, q) = (coefficient(&above.0, size), -coefficient(&below.0, size));
            let join = |a: i128, b: i128| a.checked_mul(q)?.checked_add(b.checked_mul(p)?);
            let both = above.0.iter().zip(&below.0);
            let coefficients = both.map(|(a, b)| join(*a, *b)).collect::<Option<_>>()?;
            result.insert(tightened((coefficients, join(above.1, below.1)?)));
            if result.0.len() > MOST_ROWS {
                return None;
            }
        }
    }
    Some(result)
}

/// The same over the integers, without a common divisor of the coefficients.
fn tightened((coefficients, constant): Row) -> Row {
    let divisor = coefficients.iter().fold(0, |divisor, c| gcd(divisor, c.abs()));
    if divisor <= 1 {
        return (coefficients, constant);
    }
    (coefficients.iter().map(|c| c / divisor).collect(), constant.div_euclid(divisor))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(constant: i64, coefficients: [i64; 3]) -> Linear {
        Linear { constant, coefficients: coefficients.to_vec() }
    }

    #[test]
    fn sums_of_many_values_are_brought_to_integers() {
        // 2 M - 1 >= N and N >= 0 give 2 M >= 1, and so M >= 1.
        let known = [value(-1, [-1, 2, 0])];
        assert!(imply(&known, &value(-1, [0, 1, 0])));
        assert!(!imply(&known, &value(-2, [0, 1, 0])));
        assert!(!value(-1, [0, 1, 0]).follows_from(&known));
        // A chain of three: N <= M, M <= K and K <= 4.
        let known = [value(0, [-1, 1, 0]), value(0, [0, -1, 1]), value(4, [0, 0, -1])];
        assert!(imply(&known, &value(4, [-1, 0, 0])));
        assert!(!imply(&known, &value(3, [-1, 0, 0])));
        // From what no sizes satisfy everything follows.
        let known = [value(-5, [1, 0, 0]), value(4, [-1, 0, 0])];
        assert!(imply(&known, &value(-1, [0, 0, 0])));
        assert!(!imply(&[], &value(-1, [0, 0, 0])));
        assert!(imply(&[], &value(0, [1, 0, 2])));
        assert!(!imply(&[], &value(i64::MIN, [i64::MIN, 0, 0])));
    }

    #[test]
    fn an_equation_with_a_larger_factor_gives_its_unknown() {
        // 3 N = 2 M + 1 and N >= 5 give M >= 7.
        let equation = [value(-1, [3, -2, 0]), value(1, [-3, 2, 0]), value(-5, [1, 0, 0])];
        let with = |most| [equation.as_slice(), &[value(most, [0, -1, 0])]].concat();
        assert!(infeasible(&with(6)));
        assert!(!infeasible(&with(7)));
    }

    #[test]
    fn unknowns_of_one_sign_prove_nothing() {
        // K is in no value with the other sign, and N <= 4 contradicts N >= 5 without it.
        let known = [value(0, [1, 0, 1]), value(4, [-1, 0, 0])];
        assert!(!infeasible(&known));
        assert!(infeasible(&[value(-5, [1, 0, 0]), value(4, [-1, 0, 0]), value(9, [1, 1, 1])]));
    }

    #[test]
    fn a_projection_keeps_what_the_other_unknowns_need() {
        // 0 <= i <= N - 1 and i >= M leave N >= 1 and N >= M + 1.
        let values = [value(0, [0, 0, 1]), value(-1, [1, 0, -1]), value(0, [0, -1, 1])];
        let short = |constant, coefficients: [i64; 2]| Linear {
            constant,
            coefficients: coefficients.to_vec(),
        };
        let kept = projected(&values, 2).unwrap();
        assert_eq!(kept, [short(-1, [1, -1]), short(-1, [1, 0])]);
        assert_eq!(projected(&[], 2), Some(Vec::new()));
    }

    #[test]
    fn unknowns_may_be_negative() {
        // N = -3 satisfies N <= -1; nothing lies between 1 and 0.
        assert!(!infeasible(&[value(-1, [-1, 0, 0])]));
        assert!(infeasible(&[value(-1, [1, 0, 0]), value(0, [-1, 0, 0])]));
        // 2 N = 2 M + 1 has no integers.
        assert!(infeasible(&[value(-1, [2, -2, 0]), value(1, [-2, 2, 0])]));
        assert!(!infeasible(&[]));
    }
}
