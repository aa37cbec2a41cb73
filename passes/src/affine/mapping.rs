//! Which loops of a nest are steps in time and which are threads, so that neighbouring threads
//! access neighbouring elements.
//!
//! Source: Baskaran et al., A Compiler Framework for Optimization of Affine Loop Nests for General
//! Purpose Computations on GPUs, section 5.2, algorithm 1. A schedule makes some loops of a nest
//! time and the others space, one of which, `x`, numbers the threads of a warp. It preserves each
//! dependence (equation 2): time carries it, or both instances are of one thread in the order of
//! the text, or they lie in loops that follow each other within a step of time.
//!
//! References to buffers without reuse should be coalesced. A buffer has higher-order reuse where
//! the rank of an access matrix is less than the number of loops around it (equation 1), and
//! constant reuse where references differ by constants alone. Instances that access neighbouring
//! elements must have the same time (equation 3) and be neighbours in space (equation 4). The
//! access matrix of a buffer without reuse has full rank, so that its neighbouring elements are one
//! vector of iterations apart. With loops as time and space, both equations hold exactly if this
//! vector is the unit of `x`: the matrix times the unit of `x` is `(0, ..., 0, 1)`.
//!
//! Schedules are sets of loops; combinations of counters (skewed schedules) are not tried. All
//! subsets of the references are tried at once: for each schedule, the largest subset that it
//! coalesces is counted. Where no schedule coalesces any, the one with the fewest loops in time is
//! left (the fallback).

use super::dependences::{Dependence, shared};
use super::nest::{Nest, Reference};
use num_integer::gcd;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use stencil_dialects::affine::Linear;

/// Up to this many loops, all subsets are tried. A nest with more loops has at most one in space.
pub const MOST_LOOPS: usize = 12;

/// What the analysis can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// References that differ by constants alone, from which a buffer counts as reused.
    pub constant_reuse: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { constant_reuse: 2 }
    }
}

/// A reference by its statement and its place there.
pub type Site = (usize, usize);

/// A legal schedule of an outermost loop with all that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The loops that run in order, outer ones first.
    pub time: Vec<usize>,
    /// The loops that become threads, outer ones first.
    pub space: Vec<usize>,
    /// The loops in space that number the threads of a warp: one for all statements that share a
    /// loop in space.
    pub x: Vec<usize>,
    /// Whether a dependence leads from one thread to another, so that all threads must meet after
    /// each step of time.
    pub communicates: bool,
    /// References to buffers without reuse that neighbouring threads make to neighbouring elements.
    pub coalesced: Vec<Site>,
    /// What becomes of each buffer that the loops access, by its number.
    pub buffers: Vec<Buffer>,
}

/// A buffer under a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its number.
    pub array: usize,
    /// It is reused, or a reference to it is not coalesced: copy what a block needs of it to shared
    /// memory.
    pub copied: bool,
    /// It is only read, and all threads read the same element: constant memory may hold it (section
    /// 5.4).
    pub constant: bool,
    /// All references have the same index, which depends on the thread alone: a register may hold
    /// the element (section 5.4).
    pub register: bool,
}

/// The legal schedules of some statements within one iteration of the `fixed` outermost loops,
/// which they share. The best is the first. Loops in more than
/// [`MOST_LOOPS`] have only one schedule, the order of the text.
pub fn of_part(
    nest: &Nest,
    dependences: &[Dependence],
    statements: Vec<usize>,
    fixed: usize,
    settings: Settings,
) -> Vec<Mapping> {
    Group::new(nest, statements, fixed, settings).all(dependences)
}

/// An outermost loop with what it holds.
struct Group<'n> {
    nest: &'n Nest,
    /// Outermost loops of which one iteration is looked at.
    fixed: usize,
    statements: Vec<usize>,
    loops: Vec<usize>,
    reused: BTreeSet<usize>,
}

impl<'n> Group<'n> {
    fn new(nest: &'n Nest, statements: Vec<usize>, fixed: usize, settings: Settings) -> Self {
        let (loops, reused) = (Vec::new(), BTreeSet::new());
        let mut group = Self { nest, fixed, statements, loops, reused };
        let loops: BTreeSet<usize> =
            group.sites().flat_map(|(site, _)| group.around(site.0)).copied().collect();
        group.loops = loops.into_iter().collect();
        group.reused = group.sites().map(|(_, reference)| reference.array).collect();
        group.reused =
            group.reused.iter().copied().filter(|a| group.reuses(*a, settings)).collect();
        group
    }

    fn around(&self, statement: usize) -> &'n [usize] {
        let all = self.nest.statements.get(statement).map_or(&[][..], |found| &found.loops);
        all.get(self.fixed..).unwrap_or_default()
    }

    fn sites(&self) -> impl Iterator<Item = (Site, &'n Reference)> {
        let nest = self.nest;
        self.statements.iter().flat_map(move |at| {
            let references = nest.statements.get(*at).map(|found| found.references.iter());
            references.into_iter().flatten().enumerate().map(move |(place, r)| ((*at, place), r))
        })
    }

    fn of_array(&self, array: usize) -> impl Iterator<Item = (Site, &'n Reference)> {
        self.sites().filter(move |(_, reference)| reference.array == array)
    }

    fn matrix(&self, site: Site, reference: &Reference) -> Vec<Vec<i64>> {
        let Some(statement) = self.nest.statements.get(site.0) else { return Vec::new() };
        let mut matrix = self.nest.matrix(statement, reference);
        matrix.iter_mut().for_each(|row| drop(row.drain(..self.fixed.min(row.len()))));
        matrix
    }

    /// Whether a buffer has reuse by any of its references.
    fn reuses(&self, array: usize, settings: Settings) -> bool {
        let higher = self.of_array(array).any(|(site, reference)| {
            rank(self.matrix(site, reference)) < self.around(site.0).len()
        });
        // The same element twice in one statement is one access.
        let alike = |one: &Reference, other: &Reference| {
            let pairs = one.indices.iter().zip(&other.indices);
            pairs.into_iter().all(|(a, b)| a.coefficients == b.coefficients)
        };
        higher
            || self.of_array(array).any(|(_, one)| {
                let others = self.of_array(array).filter(|(_, other)| alike(one, other));
                let constants: BTreeSet<Vec<i64>> = others
                    .map(|(_, other)| other.indices.iter().map(|index| index.constant).collect())
                    .collect();
                constants.len() >= settings.constant_reuse.max(2)
            })
    }

    fn all(&self, dependences: &[Dependence]) -> Vec<Mapping> {
        let inside = |dependence: &&Dependence| {
            self.statements.contains(&dependence.source)
                && self.statements.contains(&dependence.target)
                && dependence.directions.iter().take(self.fixed).all(|at| at.is_eq())
        };
        let dependences: Vec<&Dependence> = dependences.iter().filter(inside).collect();
        let count = self.loops.len();
        let sets: Vec<Vec<bool>> = match count > MOST_LOOPS {
            false => (0..1_usize << count)
                .map(|set| (0..count).map(|place| set >> place & 1 == 1).collect())
                .collect(),
            // All in time, or all but one.
            true => {
                (0..=count).map(|space| (0..count).map(|place| place != space).collect()).collect()
            }
        };
        let mut found = Vec::new();
        for set in sets {
            let timed = |(place, _): &(usize, &usize)| set.get(*place).copied().unwrap_or(true);
            let (time, space): (Vec<_>, Vec<_>) = self.loops.iter().enumerate().partition(timed);
            let [time, space] = [time, space]
                .map(|part| part.into_iter().map(|(_, at)| *at).collect::<Vec<usize>>());
            if let Some(communicates) = self.legal(&time, &space, &dependences) {
                found.push(self.mapping(&time, &space, communicates));
            }
        }
        found.sort_by_key(|mapping| {
            let beside = self.beside(&mapping.x).count();
            let (coalesced, steps) = (mapping.coalesced.len(), mapping.time.len());
            (Reverse(coalesced), steps, mapping.communicates, Reverse(beside))
        });
        found
    }

    /// Whether a schedule preserves all dependences, and whether any leads to another thread.
    fn legal(&self, time: &[usize], space: &[usize], all: &[&Dependence]) -> Option<bool> {
        let mut communicates = false;
        for dependence in all {
            let [source, target] =
                [dependence.source, dependence.target].map(|at| self.nest.statements.get(at));
            let (source, target) = (source?, target?);
            let loops = shared(source, target);
            let directions = || loops.iter().zip(&dependence.directions);
            let in_space = |at: &usize| space.contains(at);
            let elsewhere = leads_elsewhere(self.nest, space, dependence);
            let mut steps = directions().filter(|(at, _)| time.contains(at));
            // All threads finish one loop before they begin the next loop of a step of time.
            let follows = dependence.source != dependence.target && !loops.iter().any(in_space);
            match steps.find(|(_, direction)| direction.is_ne()) {
                Some((_, direction)) if direction.is_gt() => return None,
                None if elsewhere && !follows => return None,
                _ => communicates |= elsewhere,
            }
        }
        Some(communicates)
    }

    /// The loops in space that number the threads of a warp: of those that statements share, the
    /// one along which most references without reuse are coalesced, then most of all, then the
    /// innermost.
    fn warps(&self, space: &[usize]) -> Vec<usize> {
        let mut parts: Vec<BTreeSet<usize>> = Vec::new();
        for statement in &self.statements {
            let around = self.around(*statement).iter().copied().filter(|at| space.contains(at));
            let mut part: BTreeSet<usize> = around.collect();
            let (joined, apart) = parts.into_iter().partition(|other| !other.is_disjoint(&part));
            parts = apart;
            let joined: Vec<BTreeSet<usize>> = joined;
            part.extend(joined.into_iter().flatten());
            parts.push(part);
        }
        let best = |part: BTreeSet<usize>| {
            part.into_iter().max_by_key(|x| {
                let unused = |(_, r): &(Site, &Reference)| !self.reused.contains(&r.array);
                (self.beside(&[*x]).filter(unused).count(), self.beside(&[*x]).count(), *x)
            })
        };
        parts.into_iter().filter_map(best).collect()
    }

    /// The references that neighbouring threads make to neighbouring elements.
    fn beside<'s>(&'s self, x: &'s [usize]) -> impl Iterator<Item = (Site, &'n Reference)> + 's {
        self.sites().filter(move |(site, r)| x.iter().any(|x| self.adjacent(*site, r, *x)))
    }

    fn mapping(&self, time: &[usize], space: &[usize], communicates: bool) -> Mapping {
        let mut x = self.warps(space);
        x.sort_unstable();
        let coalesced = self.beside(&x).filter(|(_, r)| !self.reused.contains(&r.array));
        let coalesced: Vec<Site> = coalesced.map(|(site, _)| site).collect();
        let arrays: BTreeSet<usize> = self.sites().map(|(_, reference)| reference.array).collect();
        let buffer = |array: usize| {
            let still = |loops: &[usize]| {
                self.of_array(array).all(|(_, reference)| {
                    let moves = |at: &usize| {
                        let counter = self.nest.sizes + at;
                        let coefficient = |i: &Linear| i.coefficients.get(counter).copied();
                        reference.indices.iter().any(|i| coefficient(i).unwrap_or(0) != 0)
                    };
                    !loops.iter().any(moves)
                })
            };
            let mut references = self.of_array(array).map(|(_, reference)| &reference.indices);
            let first = references.next();
            let one = references.all(|indices| Some(indices) == first);
            let all_coalesced = self.of_array(array).all(|(site, _)| coalesced.contains(&site));
            let read_only = self.of_array(array).all(|(_, reference)| !reference.write);
            Buffer {
                array,
                copied: !all_coalesced,
                constant: read_only && !space.is_empty() && still(space),
                register: !space.is_empty() && one && still(time),
            }
        };
        let buffers = arrays.into_iter().map(buffer).collect();
        Mapping { time: time.to_vec(), space: space.to_vec(), x, communicates, coalesced, buffers }
    }

    /// Whether a step of a loop leads to the next element of the fastest dimension.
    fn adjacent(&self, site: Site, reference: &Reference, x: usize) -> bool {
        let place = self.around(site.0).iter().position(|at| *at == x);
        let Some(place) = place else { return false };
        let matrix = self.matrix(site, reference);
        let steps: Vec<i64> = matrix.iter().filter_map(|row| row.get(place).copied()).collect();
        matches!(steps.split_last(), Some((1, slower)) if slower.iter().all(|step| *step == 0))
    }
}

/// Whether a dependence leads from one thread to another, if these loops are in space.
pub fn leads_elsewhere(nest: &Nest, space: &[usize], dependence: &Dependence) -> bool {
    let [source, target] = [dependence.source, dependence.target].map(|at| nest.statements.get(at));
    let (Some(source), Some(target)) = (source, target) else { return true };
    let loops = shared(source, target);
    let in_space = |at: &usize| space.contains(at);
    let mut directions = loops.iter().zip(&dependence.directions);
    // The threads of a loop around one statement alone do not compute the other statement.
    let alone = |around: &[usize]| around.iter().skip(loops.len()).any(in_space);
    directions.any(|(at, direction)| in_space(at) && direction.is_ne())
        || alone(&source.loops)
        || alone(&target.loops)
}

/// The rank of a matrix, by elimination without fractions.
fn rank(matrix: Vec<Vec<i64>>) -> usize {
    let mut rows: Vec<Vec<i128>> =
        matrix.into_iter().map(|row| row.into_iter().map(i128::from).collect()).collect();
    let columns = rows.first().map_or(0, Vec::len);
    let at = |row: &[i128], column: usize| row.get(column).copied().unwrap_or(0);
    let mut found = 0;
    for column in 0..columns {
        let Some(pivot) = rows.iter().skip(found).position(|row| at(row, column) != 0) else {
            continue;
        };
        rows.swap(found, found + pivot);
        let Some(chosen) = rows.get(found).cloned() else { break };
        found += 1;
        for row in rows.iter_mut().skip(found) {
            let (p, q) = (at(&chosen, column), at(row, column));
            for (value, other) in row.iter_mut().zip(&chosen) {
                *value = value.saturating_mul(p).saturating_sub(other.saturating_mul(q));
            }
            let divisor =
                row.iter().fold(0_u128, |divisor, value| gcd(divisor, value.unsigned_abs()));
            if let Ok(divisor @ 2..) = i128::try_from(divisor) {
                row.iter_mut().for_each(|value| *value /= divisor);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
