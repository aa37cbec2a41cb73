//! Dependences between the statements of a nest, as directions over the loops that they share.
//!
//! Two accesses to one buffer depend on each other if one of them stores, both statements run, and
//! the indices are equal, with the source before the target. Each combination of directions is
//! tested by Fourier-Motzkin elimination (`stencil_dialects::inequalities`); one that can't be
//! refuted counts. Buffers are distinct, and the iterations of a parallel loop are independent.

use super::nest::{Nest, Reference, Statement};
use std::cmp::Ordering;
use stencil_dialects::affine::Linear;
use stencil_dialects::inequalities::infeasible;

/// An ordered pair of statements whose instances may touch the same element.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependence {
    /// The statement that runs first.
    pub source: usize,
    /// The one that depends on it.
    pub target: usize,
    /// For each shared loop, outer ones first, how the source's counter compares with the target's.
    pub directions: Vec<Ordering>,
}

/// The loops that two statements share.
pub fn shared<'n>(one: &'n Statement, other: &Statement) -> &'n [usize] {
    let same = one.loops.iter().zip(&other.loops).take_while(|(a, b)| a == b).count();
    one.loops.get(..same).unwrap_or_default()
}

/// All dependences of a nest, each once.
pub fn of(nest: &Nest) -> Vec<Dependence> {
    let mut found = Vec::new();
    for (source, first) in nest.statements.iter().enumerate() {
        for (target, second) in nest.statements.iter().enumerate() {
            for (one, other) in pairs(first, second) {
                let mut pair = Pair { nest, source, target, rows: Vec::new(), found: &mut found };
                pair.start(one, other);
                pair.directions(shared(first, second), &mut Vec::new());
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Accesses to the same buffer of which one stores.
fn pairs<'s>(
    first: &'s Statement,
    second: &'s Statement,
) -> impl Iterator<Item = (&'s Reference, &'s Reference)> {
    let all = first.references.iter().flat_map(|a| second.references.iter().map(move |b| (a, b)));
    all.filter(|(a, b)| a.array == b.array && (a.write || b.write))
}

struct Pair<'n> {
    nest: &'n Nest,
    source: usize,
    target: usize,
    /// Each is at least 0 where both instances run and touch the same element. The unknowns are the
    /// sizes, the source's counters and the target's.
    rows: Vec<Linear>,
    found: &'n mut Vec<Dependence>,
}

impl Pair<'_> {
    /// Collects the rows. One that leaves 64 bits is left out, which proves less.
    fn start(&mut self, one: &Reference, other: &Reference) {
        for (statement, second) in [(self.source, false), (self.target, true)] {
            let around = self.nest.statements.get(statement).map(|found| found.loops.as_slice());
            let around = around.unwrap_or_default().iter();
            for at in around.filter_map(|at| self.nest.loops.get(*at)) {
                let bounds = at.bounds.iter().map(|bound| self.placed(bound, second));
                self.rows.extend(bounds.collect::<Vec<_>>());
            }
        }
        for (a, b) in one.indices.iter().zip(&other.indices) {
            let (a, b) = (self.placed(a, false), self.placed(b, true));
            self.rows.extend([a.minus(&b), b.minus(&a)].into_iter().flatten());
        }
    }

    /// A linear form of one of the two instances over the unknowns of both.
    fn placed(&self, of: &Linear, second: bool) -> Linear {
        let loops = self.nest.loops.len();
        let mut coefficients = vec![0; self.nest.sizes + 2 * loops];
        for (place, coefficient) in of.coefficients.iter().enumerate() {
            let moved = if second && place >= self.nest.sizes { place + loops } else { place };
            if let Some(slot) = coefficients.get_mut(moved) {
                *slot = *coefficient;
            }
        }
        Linear { constant: of.constant, coefficients }
    }

    fn directions(&mut self, open: &[usize], chosen: &mut Vec<Ordering>) {
        if infeasible(&self.rows) {
            return;
        }
        let Some((at, rest)) = open.split_first() else {
            let carried = chosen.iter().any(|direction| direction.is_ne());
            if carried || self.source < self.target {
                let (source, target) = (self.source, self.target);
                let dependence = Dependence { source, target, directions: chosen.clone() };
                self.found.push(dependence);
            }
            return;
        };
        let leads = chosen.iter().all(|direction| direction.is_eq());
        let parallel = self.nest.loops.get(*at).is_some_and(|at| at.parallel);
        for direction in [Ordering::Less, Ordering::Equal, Ordering::Greater] {
            // The source comes first, and nothing is carried by a parallel loop.
            if leads && (direction.is_gt() || direction.is_lt() && parallel) {
                continue;
            }
            let before = self.rows.len();
            let source = self.nest.sizes + at;
            let target = source + self.nest.loops.len();
            self.rows.extend(self.ordered(source, target, direction));
            chosen.push(direction);
            self.directions(rest, chosen);
            chosen.pop();
            self.rows.truncate(before);
        }
    }

    fn ordered(&self, source: usize, target: usize, direction: Ordering) -> Vec<Linear> {
        let unknowns = self.nest.sizes + 2 * self.nest.loops.len();
        let difference = |plus: usize, minus: usize, constant: i64| {
            let coefficient = |at: usize| i64::from(at == plus) - i64::from(at == minus);
            Linear { constant, coefficients: (0..unknowns).map(coefficient).collect() }
        };
        match direction {
            Ordering::Less => vec![difference(target, source, -1)],
            Ordering::Equal => vec![difference(target, source, 0), difference(source, target, 0)],
            Ordering::Greater => vec![difference(source, target, -1)],
        }
    }
}
