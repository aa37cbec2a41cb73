//! What follows from linear inequalities over sizes.
//!
//! Sizes are integers and at least 0. A goal `a >= 0` is proved by showing that the known facts
//! and `a <= -1` contradict each other, by Fourier-Motzkin elimination: exact over the rationals,
//! tightened to integers by dividing each inequality by the common divisor of its coefficients.
//! Where numbers or the number of inequalities grow too large the answer is "not proved", which
//! is always safe.
//!
//! The verifier of modules has a prover of its own, `dialects/src/inequalities.rs`. The front end
//! reaches no MLIR, so it can't use that one. The verifier does not use this one, because it shall
//! refuse a module where this one proves too much. Its prover is the stronger of the two: it takes
//! equations and values below 0, and projects onto some unknowns.

use crate::program::{Affine, Grid, Region};
use num_integer::gcd;
use std::collections::BTreeSet;

/// More inequalities than this are not pursued.
const LIMIT: usize = 150;

/// A set of inequalities, each `affine >= 0`.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    known: Vec<Affine>,
}

impl Facts {
    /// Adds `larger >= smaller`.
    pub fn add_order(&mut self, smaller: &Affine, larger: &Affine) {
        // An overflow only means one fact less.
        self.known.extend(larger.minus(smaller));
    }

    /// Adds that some values are not negative.
    pub fn add_values(&mut self, values: &[Affine]) {
        self.known.extend_from_slice(values);
    }

    /// Adds that a region holds a point.
    pub fn add_points(&mut self, region: &Region) {
        for (lower, upper) in region.lower.iter().zip(&region.upper) {
            self.add_order(lower, upper);
        }
    }

    /// What holds of the sizes where a piece has a point and lies inside the grids.
    pub fn of_piece(region: &Region, grids: &[Grid]) -> Self {
        let mut facts = Self::default();
        facts.add_points(region);
        for grid in grids {
            facts.add_inside(region, &grid.region);
        }
        facts
    }

    /// Adds that a region lies in another.
    pub fn add_inside(&mut self, region: &Region, whole: &Region) {
        for (first, lower) in whole.lower.iter().zip(&region.lower) {
            self.add_order(first, lower);
        }
        for (upper, last) in region.upper.iter().zip(&whole.upper) {
            self.add_order(upper, last);
        }
    }

    /// Whether `value >= 0` for all sizes that satisfy the facts.
    pub fn prove(&self, value: &Affine) -> bool {
        value.times(-1).and_then(|negated| negated.shifted(-1)).is_some_and(|no| self.refute(&no))
    }

    /// Whether `value >= 0` for no sizes that satisfy the facts.
    pub fn refute(&self, value: &Affine) -> bool {
        let mut all: Vec<&Affine> = self.known.iter().collect();
        all.push(value);
        contradictory(&all)
    }

    /// Whether no sizes satisfy the facts.
    pub fn contradictory(&self) -> bool {
        contradictory(&self.known.iter().collect::<Vec<_>>())
    }
}

/// `coefficients * sizes + constant >= 0`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    coefficients: Vec<i128>,
    constant: i128,
}

fn contradictory(all: &[&Affine]) -> bool {
    let names: BTreeSet<_> = all.iter().flat_map(|a| a.terms.iter().map(|(id, _)| *id)).collect();
    let row = |affine: &&Affine| {
        let coefficient = |id| {
            let term = affine.terms.iter().find(|(other, _)| other == id);
            term.map_or(0, |(_, coefficient)| i128::from(*coefficient))
        };
        let coefficients = names.iter().map(coefficient).collect();
        tighten(Row { coefficients, constant: i128::from(affine.constant) })
    };
    let mut rows: Vec<Row> = all.iter().map(row).collect();
    for size in 0..names.len() {
        let coefficients = (0..names.len()).map(|other| i128::from(other == size)).collect();
        rows.push(Row { coefficients, constant: 0 });
    }
    for size in 0..names.len() {
        match eliminate(rows, size) {
            Some(next) => rows = next,
            None => return false,
        }
        if rows.iter().any(|row| row.constant < 0 && row.coefficients.iter().all(|c| *c == 0)) {
            return true;
        }
    }
    rows.iter().any(|row| row.constant < 0)
}

/// The consequences without one size; `None` where they get out of hand.
fn eliminate(rows: Vec<Row>, size: usize) -> Option<Vec<Row>> {
    let of = |row: &Row| row.coefficients.get(size).copied().unwrap_or(0);
    let (with, without): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|row| of(row) != 0);
    let mut result: BTreeSet<Row> = without.into_iter().collect();
    for above in with.iter().filter(|row| of(row) > 0) {
        for below in with.iter().filter(|row| of(row) < 0) {
            let (p, q) = (of(above), of(below).checked_neg()?);
            let join = |a: i128, b: i128| a.checked_mul(q)?.checked_add(b.checked_mul(p)?);
            let pairs = above.coefficients.iter().zip(&below.coefficients);
            let coefficients = pairs.map(|(a, b)| join(*a, *b)).collect::<Option<_>>()?;
            let constant = join(above.constant, below.constant)?;
            result.insert(tighten(Row { coefficients, constant }));
            if result.len() > LIMIT {
                return None;
            }
        }
    }
    Some(result.into_iter().collect())
}

/// Divides by the common divisor of the coefficients, rounding the constant down.
fn tighten(row: Row) -> Row {
    let divisor = row.coefficients.iter().fold(0, |a, b| gcd(a, b.abs()));
    if divisor <= 1 {
        return row;
    }
    let coefficients = row.coefficients.iter().map(|c| c / divisor).collect();
    Row { coefficients, constant: row.constant.div_euclid(divisor) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::ParamId;
    use cranelift_entity::EntityRef;

    fn affine(constant: i64, terms: &[(usize, i64)]) -> Affine {
        let terms = terms.iter().map(|(id, c)| (ParamId::new(*id), *c)).collect();
        Affine { constant, terms }
    }

    #[test]
    fn sizes_are_not_negative() {
        let facts = Facts::default();
        assert!(facts.prove(&affine(0, &[(0, 1)])));
        assert!(!facts.prove(&affine(-1, &[(0, 1)])));
        assert!(!facts.refute(&affine(-1, &[(0, 1)])));
        assert!(facts.refute(&affine(-1, &[(0, -1)])));
    }

    #[test]
    fn a_point_of_a_piece_bounds_the_sizes() {
        // 1 <= N-2 gives N-3 >= 0 but not N-4 >= 0.
        let mut facts = Facts::default();
        facts.add_order(&affine(1, &[]), &affine(-2, &[(0, 1)]));
        assert!(facts.prove(&affine(-3, &[(0, 1)])));
        assert!(!facts.prove(&affine(-4, &[(0, 1)])));
        // Two sizes: N <= M and M <= 5 give N <= 5.
        facts.add_order(&affine(0, &[(0, 1)]), &affine(0, &[(1, 1)]));
        facts.add_order(&affine(0, &[(1, 1)]), &affine(5, &[]));
        assert!(facts.prove(&affine(5, &[(0, -1)])));
        assert!(!facts.contradictory());
        facts.add_order(&affine(6, &[]), &affine(0, &[(0, 1)]));
        assert!(facts.contradictory());
    }

    #[test]
    fn integers_are_tighter_than_rationals() {
        // 2 N >= 1 and 2 N <= 1 has a rational solution but no integer one.
        let mut facts = Facts::default();
        facts.add_order(&affine(1, &[]), &affine(0, &[(0, 2)]));
        facts.add_order(&affine(0, &[(0, 2), (1, 1)]), &affine(1, &[(1, 1)]));
        assert!(facts.contradictory());
    }
}
