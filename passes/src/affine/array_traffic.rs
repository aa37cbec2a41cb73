//! Bytes that the launches of affine loops move for an array, by the order of its dimensions.
//!
//! Source: Baskaran et al., A Compiler Framework for Optimization of Affine Loop Nests for General
//! Purpose Computations on GPUs, section 5.2 (threads of a warp should access neighbouring
//! elements). The bytes are those of [`stencil_runtime::model::relayout`], which pass between the
//! level 1 caches and the rest of the memory, added up over all iterations:
//!
//! - Neighbouring threads access elements `c` apart along the fastest dimension: `c` elements
//!   count, at most a sector.
//! - A load, where the innermost loop in time that moves it goes along the fastest dimension: the
//!   same with the `c` of this loop, because a cache keeps the sector.
//! - Any other access whose element depends on the thread: a sector.
//! - All threads of a warp access one element: nothing.
//!
//! A loop in time that moves no index, around the access alone, does not count: registers and
//! caches keep the element. A size that is not known counts as [`LARGE`], and a loop with bounds
//! that depend on others as if these were in their middle.

use super::arguments::Kind;
use super::launches::{Function, Launch, Phase};
use super::nest::{Access, Reference};
use super::shared_tiles::factor;
use stencil_dialects::affine::Linear;
use stencil_dialects::mlir::{self, Op};
use stencil_runtime::model::relayout::SECTOR;

/// The value of a size that is not known.
pub const LARGE: f64 = 1024.0;

/// The traffic of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// The array, by its place among those of the nest.
    pub array: usize,
    /// Bytes of an element.
    pub bytes: i64,
    /// Its elements.
    pub cells: f64,
    /// Bytes of a run by the order of its dimensions. The first is the order of the text.
    pub orders: Vec<(Vec<usize>, f64)>,
}

/// The arrays of several dimensions that launches access.
pub fn of(function: &Function, phases: &[Phase]) -> Vec<Traffic> {
    let trips = Trips::of(function);
    let arrays = function.text.arrays.iter().enumerate();
    let several = arrays.filter_map(|(array, memref)| {
        let all = &function.declared.arguments;
        let kind = &all.iter().find(|argument| argument.value == *memref)?.kind;
        let Kind::Array { element, extents } = kind else { return None };
        let bytes = i64::from(mlir::bit_width(*element)?) / 8;
        let cells = extents.iter().map(|extent| large(&function.declared.cells(extent)).max(0.0));
        (extents.len() > 1).then(|| Traffic {
            array,
            bytes,
            cells: cells.product(),
            orders: orders(extents.len()).into_iter().map(|order| (order, 0.0)).collect(),
        })
    });
    let mut several: Vec<Traffic> = several.collect();
    for phase in phases {
        let host_loop = phase.host_loop.as_ref().map(|found| found.at);
        for launch in &phase.launches {
            let ops = launch.ops.iter().chain(&launch.before);
            let inside: Vec<Op> = ops.flat_map(|op| mlir::walk(*op)).collect();
            for access in function.text.accesses.iter().filter(|at| inside.contains(&at.op)) {
                let array = access.reference.array;
                let Some(found) = several.iter_mut().find(|of| of.array == array) else { continue };
                let counted = Counted::of(function, launch, host_loop, access, &trips);
                for (order, sum) in &mut found.orders {
                    *sum += counted.bytes(function, order, found.bytes);
                }
            }
        }
    }
    several
}

/// All orders of some dimensions, the one of the text first.
fn orders(dimensions: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..dimensions {
        let longer = |order: Vec<usize>| {
            let left: Vec<usize> = (0..dimensions).filter(|at| !order.contains(at)).collect();
            left.into_iter().map(move |at| [order.as_slice(), &[at]].concat())
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

/// A form of the params where each is [`LARGE`].
fn large(form: &Linear) -> f64 {
    let factors: i64 = form.coefficients.iter().fold(0, |sum, factor| sum.saturating_add(*factor));
    form.constant as f64 + factors as f64 * LARGE
}

/// The iterations of each loop, and the middle of its counter.
struct Trips(Vec<(f64, f64)>);

impl Trips {
    fn of(function: &Function) -> Self {
        let nest = function.nest;
        let sizes: Vec<f64> = function.sizes.iter().map(large).collect();
        let mut found: Vec<(f64, f64)> = Vec::new();
        for (at, nested) in nest.loops.iter().enumerate() {
            let (mut first, mut last) = (f64::NEG_INFINITY, f64::INFINITY);
            for bound in &nested.bounds {
                let counters = found.iter().map(|(_, middle)| *middle);
                let values = sizes.iter().copied().chain(counters);
                let terms = bound.coefficients.iter().zip(values).map(|(a, b)| *a as f64 * b);
                let rest = bound.constant as f64 + terms.sum::<f64>();
                match factor(nest, bound, at) {
                    1 => first = first.max(-rest),
                    _ => last = last.min(rest),
                }
            }
            let trips = ((last - first) / nested.step.max(1) as f64).floor() + 1.0;
            found.push((trips.max(0.0), (first + last) / 2.0));
        }
        Self(found)
    }
}

/// An access as often as it counts.
struct Counted<'n> {
    reference: &'n Reference,
    /// The loop that numbers the threads of a warp.
    x: Option<usize>,
    /// The innermost loop in time that moves it.
    walk: Option<usize>,
    times: f64,
}

impl<'n> Counted<'n> {
    fn of(
        function: &Function,
        launch: &Launch,
        host_loop: Option<usize>,
        access: &'n Access,
        trips: &Trips,
    ) -> Self {
        let reference = &access.reference;
        let moves =
            |at: usize| reference.indices.iter().any(|index| factor(function.nest, index, at) != 0);
        let in_time = |at: &usize| !launch.axes.contains_key(at) && host_loop != Some(*at);
        let inner = access.loops.iter().rev().copied().filter(in_time);
        let (mut walk, mut still) = (None, Vec::new());
        for at in inner {
            if moves(at) {
                walk = Some(at);
                break;
            }
            still.push(at);
        }
        let counted = access.loops.iter().filter(|at| !still.contains(at));
        let times = counted.filter_map(|at| trips.0.get(*at)).map(|(trips, _)| trips).product();
        let x = access.loops.iter().copied().find(|at| launch.axes.get(at) == Some(&0));
        Self { reference, x, walk, times }
    }

    /// How far a step of a loop leads along the fastest dimension, if along no other.
    fn along(&self, function: &Function, order: &[usize], at: usize) -> Option<i64> {
        let (fastest, others) = order.split_last()?;
        let step = function.nest.loops.get(at)?.step;
        let moved = |dimension: &usize| {
            let index = self.reference.indices.get(*dimension);
            index.map_or(0, |index| factor(function.nest, index, at))
        };
        others.iter().all(|other| moved(other) == 0).then(|| moved(fastest).saturating_mul(step))
    }

    fn bytes(&self, function: &Function, order: &[usize], bytes: i64) -> f64 {
        let along = |at: Option<usize>| self.along(function, order, at?);
        let apart = match along(self.x) {
            // Without a loop along x, one thread accesses the element.
            _ if self.x.is_none() => 0,
            Some(apart) => apart,
            None if self.reference.write => SECTOR,
            None => along(self.walk).filter(|apart| *apart != 0).unwrap_or(SECTOR),
        };
        apart.saturating_abs().saturating_mul(bytes).min(SECTOR) as f64 * self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_begin_with_that_of_the_text() {
        assert_eq!(orders(2), [[0, 1], [1, 0]]);
        let of_three = orders(3);
        assert_eq!(of_three.len(), 6);
        assert_eq!(of_three[..2], [[0, 1, 2], [0, 2, 1]]);
        // Of two orders with the same fastest dimension, the other dimensions keep theirs.
        assert!(
            of_three.iter().position(|at| *at == [1, 2, 0])
                < of_three.iter().position(|at| *at == [2, 1, 0])
        );
    }
}
