//! Dependences between the statements of a nest, as directions over the loops that they share.
//!
//! Two accesses to one buffer depend on each other if one of them stores, both statements run, and
//! the indices are equal, with the source before the target. Each combination of directions is
//! tested by Fourier-Motzkin elimination (`stencil_dialects::inequalities`); one that can't be
//! refuted counts. Buffers are distinct, and the iterations of a parallel loop are independent.

use super::nest::{Nest, Reference, Statement};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use stencil_dialects::affine::Linear;
use stencil_dialects::inequalities::infeasible;

/// For each shared loop, outer ones first, how the source's counter compares with the target's.
pub type Directions = Vec<Ordering>;

/// An ordered pair of statements whose instances may touch the same element.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependence {
    /// The statement that runs first.
    pub source: usize,
    /// The one that depends on it.
    pub target: usize,
    /// See [`Directions`].
    pub directions: Directions,
}

/// The loops that two statements share.
pub fn shared<'n>(one: &'n Statement, other: &Statement) -> &'n [usize] {
    let same = one.loops.iter().zip(&other.loops).take_while(|(a, b)| a == b).count();
    one.loops.get(..same).unwrap_or_default()
}

/// Systems of inequalities tested for a nest at most, so that each nest compiles within seconds.
const MOST_TESTS: usize = 1 << 15;

/// All dependences of a nest, each once. None where they take more than [`MOST_TESTS`] to find.
pub fn of(nest: &Nest) -> Option<Vec<Dependence>> {
    let mut found = Vec::new();
    let mut tests = MOST_TESTS;
    // Many pairs of accesses differ by nothing that their inequalities show.
    let mut known: BTreeMap<(&[usize], Vec<Linear>), Vec<Directions>> = BTreeMap::new();
    for (source, first) in nest.statements.iter().enumerate() {
        for (target, second) in nest.statements.iter().enumerate() {
            let shared = shared(first, second);
            for (one, other) in pairs(first, second) {
                let rows = rows(nest, [(first, one), (second, other)]);
                let all = match known.entry((shared, rows)) {
                    Entry::Occupied(kept) => kept.into_mut(),
                    Entry::Vacant(open) => {
                        let mut search =
                            Search { nest, rows: open.key().1.clone(), tests, found: Vec::new() };
                        search.directions(shared, &mut Vec::new())?;
                        tests = search.tests;
                        open.insert(search.found)
                    }
                };
                let after = |way: &&Directions| source < target || way.iter().any(|at| at.is_ne());
                let of = |way: &Directions| Dependence { source, target, directions: way.clone() };
                found.extend(all.iter().filter(after).map(of));
            }
        }
    }
    found.sort();
    found.dedup();
    Some(found)
}

/// Accesses to the same buffer of which one stores.
fn pairs<'s>(
    first: &'s Statement,
    second: &'s Statement,
) -> impl Iterator<Item = (&'s Reference, &'s Reference)> {
    let all = first.references.iter().flat_map(|a| second.references.iter().map(move |b| (a, b)));
    all.filter(|(a, b)| a.array == b.array && (a.write || b.write))
}

/// The inequalities under which two instances run and touch the same element. The unknowns are the
/// sizes, the source's counters and the target's. A row that leaves 64 bits is left out, which
/// proves less.
fn rows(nest: &Nest, [source, target]: [(&Statement, &Reference); 2]) -> Vec<Linear> {
    let mut rows = Vec::new();
    for (statement, second) in [(source.0, false), (target.0, true)] {
        for at in statement.loops.iter().filter_map(|at| nest.loops.get(*at)) {
            rows.extend(at.bounds.iter().map(|bound| placed(nest, bound, second)));
        }
    }
    for (a, b) in source.1.indices.iter().zip(&target.1.indices) {
        let (a, b) = (placed(nest, a, false), placed(nest, b, true));
        rows.extend([a.minus(&b), b.minus(&a)].into_iter().flatten());
    }
    rows
}

/// A linear form of one of the two instances over the unknowns of both.
fn placed(nest: &Nest, of: &Linear, second: bool) -> Linear {
    let loops = nest.loops.len();
    let mut coefficients = vec![0; nest.sizes + 2 * loops];
    for (place, coefficient) in of.coefficients.iter().enumerate() {
        let moved = if second && place >= nest.sizes { place + loops } else { place };
        if let Some(slot) = coefficients.get_mut(moved) {
            *slot = *coefficient;
        }
    }
    Linear { constant: of.constant, coefficients }
}

/// The directions in which two instances fulfil inequalities.
struct Search<'n> {
    nest: &'n Nest,
    rows: Vec<Linear>,
    /// How many tests are left.
    tests: usize,
    found: Vec<Directions>,
}

impl Search<'_> {
    /// None where no tests are left.
    fn directions(&mut self, open: &[usize], chosen: &mut Directions) -> Option<()> {
        self.tests = self.tests.checked_sub(1)?;
        if infeasible(&self.rows) {
            return Some(());
        }
        let Some((at, rest)) = open.split_first() else {
            self.found.push(chosen.clone());
            return Some(());
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
            self.directions(rest, chosen)?;
            chosen.pop();
            self.rows.truncate(before);
        }
        Some(())
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
