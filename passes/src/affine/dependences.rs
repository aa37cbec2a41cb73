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
use stencil_dialects::inequalities::infeasible_within;

/// For each shared loop, outer ones first, how the source's counter compares with the target's.
pub type Directions = Vec<Ordering>;

/// What the directions of a pair of accesses follow from: shared loops, counters around the source,
/// and inequalities.
type Question<'n> = (&'n [usize], usize, Vec<Linear>);

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

/// Coefficients of inequalities looked at for a nest at most, so that each nest compiles within
/// seconds.
const MOST_EFFORT: usize = 1 << 26;

/// All dependences of a nest, each once. None where they take too long to find.
pub fn of(nest: &Nest) -> Option<Vec<Dependence>> {
    let mut found = Vec::new();
    let mut effort = MOST_EFFORT;
    // Many pairs of accesses have the same inequalities.
    let mut known: BTreeMap<Question, Vec<Directions>> = BTreeMap::new();
    for (source, first) in nest.statements.iter().enumerate() {
        for (target, second) in nest.statements.iter().enumerate() {
            let (shared, around) = (shared(first, second), first.loops.len());
            for (one, other) in pairs(first, second) {
                let rows = rows(nest, [(first, one), (second, other)]);
                let all = match known.entry((shared, around, rows)) {
                    Entry::Occupied(kept) => kept.into_mut(),
                    Entry::Vacant(open) => {
                        let mut search = Search {
                            nest,
                            around,
                            rows: open.key().2.clone(),
                            effort,
                            found: Vec::new(),
                        };
                        search.directions(shared, &mut Vec::new())?;
                        effort = search.effort;
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
/// sizes, the counters around the source, and those around the target. A row that leaves 64 bits is
/// left out, which proves less.
fn rows(nest: &Nest, [source, target]: [(&Statement, &Reference); 2]) -> Vec<Linear> {
    let [before, behind] = [source, target].map(|(statement, _)| vec![0; statement.loops.len()]);
    let placed = |of: &Linear, (statement, _): (&Statement, &Reference), second: bool| {
        let sizes = of.coefficients.get(..nest.sizes).unwrap_or_default();
        let factor = |at: &usize| of.coefficients.get(nest.sizes + at).copied().unwrap_or(0);
        let own: Vec<i64> = statement.loops.iter().map(factor).collect();
        debug_assert_eq!(of.coefficients.len(), nest.sizes + nest.loops.len());
        let coefficients = match second {
            false => [sizes, &own, &behind].concat(),
            true => [sizes, &before, &own].concat(),
        };
        Linear { constant: of.constant, coefficients }
    };
    let mut rows = Vec::new();
    for (at, second) in [(source, false), (target, true)] {
        for around in at.0.loops.iter().filter_map(|around| nest.loops.get(*around)) {
            rows.extend(around.bounds.iter().map(|bound| placed(bound, at, second)));
        }
    }
    for (a, b) in source.1.indices.iter().zip(&target.1.indices) {
        let (a, b) = (placed(a, source, false), placed(b, target, true));
        rows.extend([a.minus(&b), b.minus(&a)].into_iter().flatten());
    }
    rows
}

/// The directions in which two instances fulfil inequalities.
struct Search<'n> {
    nest: &'n Nest,
    /// Counters around the source.
    around: usize,
    rows: Vec<Linear>,
    /// What is left of the effort.
    effort: usize,
    found: Vec<Directions>,
}

impl Search<'_> {
    /// None where the effort is used up.
    fn directions(&mut self, open: &[usize], chosen: &mut Directions) -> Option<()> {
        if infeasible_within(&self.rows, &mut self.effort)? {
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
            let source = self.nest.sizes + chosen.len();
            self.rows.extend(self.ordered(source, source + self.around, direction));
            chosen.push(direction);
            self.directions(rest, chosen)?;
            chosen.pop();
            self.rows.truncate(before);
        }
        Some(())
    }

    fn ordered(&self, source: usize, target: usize, direction: Ordering) -> Vec<Linear> {
        let unknowns = self.rows.first().map_or(0, |row| row.coefficients.len());
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
