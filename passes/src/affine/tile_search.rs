//! The tiles that a search for the fastest one begins with, and the elements that each moves.
//!
//! Source: Baskaran et al., A Compiler Framework for Optimization of Affine Loop Nests for General
//! Purpose Computations on GPUs, sections 5.6 (the model of memory traffic) and 7 (the search).
//!
//! The tiles have numbers of threads that the caller names, each split over the axes in all ways by
//! powers of two, with copiers where there is one axis; powers of two of cells per thread; and
//! powers of two of iterations that share a copy. The compiler's own tile comes first. Those that
//! do not fit a block of the device are left out.

use super::launches::{Function, Launch};
use super::lower_affine_nest::with_launches;
use super::shared_tiles::{self, Copy, Home, Tileable, TimeLoop};
use super::tile_shape::{self, Fitted};
use crate::target::Target;
use melior::ir::Module;
use std::collections::BTreeMap;
use stencil_dialects::error::Error;
use stencil_dialects::tiled::{self, NestTile};
use stencil_runtime::device::Device;

/// Threads along x at least, where a block has several axes: fewer share no line of memory.
const FEWEST_ALONG_X: i64 = 8;

/// Iterations of a loop in time that share a copy at least, unless the loop has fewer.
const FEWEST_TIMES: i64 = 4;

/// Cells of a thread along an axis at most.
const MOST_CELLS: i64 = 8;

/// A tile with what it moves.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// The tile.
    pub tile: NestTile,
    /// Whether it is one that the compiler takes without a search.
    pub own: bool,
    /// Elements that are loaded from global memory and stored to it for each iteration of the
    /// loops in time, added up over launches and loops. Elements in registers count once for a
    /// loop, which has 1,024 iterations where its length is not known.
    pub moved: f64,
}

/// The tiles of the launches with most axes that can be tiled, in the order of `threads`. Launches
/// that state their tile are left alone.
///
/// # Errors
/// What `lower-affine-nest` refuses.
pub fn shapes(module: &Module, threads: &[i64]) -> Result<Vec<Shape>, Error> {
    let device = Target::of(module)?.device;
    with_launches(module, |function, phases| {
        let launches = phases.iter().flat_map(|phase| &phase.launches);
        let mut tiled: Vec<(&Launch, Tileable)> = Vec::new();
        for launch in launches {
            let [op] = launch.ops[..] else { continue };
            if tiled::nest_tile(op)?.is_none()
                && let Ok(tileable) = shared_tiles::of(function, launch)
            {
                tiled.push((launch, tileable));
            }
        }
        let axes = tiled.iter().map(|(launch, _)| launch.axis_count()).max().unwrap_or(0);
        let tiled: Vec<_> = tiled.iter().filter(|(of, _)| of.axis_count() == axes).collect();
        let trips = tiled.iter().flat_map(|(_, of)| &of.loops).map(|of| of.trips(function.nest));
        let longest = trips.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max());
        let longest = longest.unwrap_or(tile_shape::MOST_TIME).clamp(1, tile_shape::MOST_TIME);
        let shape = |tile: NestTile, own: bool| {
            let of_launch = |(launch, tileable): &&(&Launch, Tileable)| {
                moved(function, launch, tileable, &tile, device)
            };
            let all: Option<f64> = tiled.iter().map(of_launch).sum();
            all.map(|moved| Shape { tile: tile.clone(), own, moved })
        };
        let own: Vec<NestTile> = tiled
            .iter()
            .filter_map(|(launch, of)| tile_shape::default(function, launch, of, device).ok())
            .collect();
        let mut all = tiles(axes, longest, threads, device.warp.into());
        all.retain(|tile| !own.contains(tile));
        let others = all.into_iter().filter_map(|tile| shape(tile, false));
        Ok(own.iter().filter_map(|tile| shape(tile.clone(), true)).chain(others).collect())
    })
}

/// Powers of two up to a number.
fn powers(most: i64) -> impl Iterator<Item = i64> + Clone {
    (0..=i64::from(most.max(1).ilog2())).map(|power| 1 << power)
}

/// Every tile of blocks with some axes.
fn tiles(axes: usize, longest: i64, threads: &[i64], warp: i64) -> Vec<NestTile> {
    let mut found = Vec::new();
    for (threads, copiers) in threads.iter().flat_map(|count| splits(axes, *count, warp)) {
        for per_thread in cells(axes) {
            for time in powers(longest).filter(|time| *time >= FEWEST_TIMES || time * 2 > longest) {
                let (threads, per_thread) = (threads.clone(), per_thread.clone());
                found.push(NestTile { threads, copiers, per_thread, blocked: false, time });
            }
        }
    }
    found
}

/// Threads of a block along each axis, slowest first, and the copiers of each.
fn splits(axes: usize, count: i64, warp: i64) -> Vec<(Vec<i64>, i64)> {
    let along_x = || powers(count).filter(move |x| *x >= FEWEST_ALONG_X && count % x == 0);
    match axes {
        0 => Vec::new(),
        // A warp that computes, at least.
        1 => powers(count / warp)
            .filter(|copiers| count % copiers == 0)
            .map(|copiers| (vec![count / copiers], copiers))
            .collect(),
        2 => along_x().map(|x| (vec![count / x, x], 1)).collect(),
        _ => along_x()
            .flat_map(|x| powers(count / x).map(move |y| (vec![count / x / y, y, x], 1)))
            .filter(|(all, _)| all.iter().product::<i64>() == count)
            .collect(),
    }
}

/// Cells of a thread along each axis, slowest first; one along the slowest of three.
fn cells(axes: usize) -> Vec<Vec<i64>> {
    match axes {
        1 => powers(MOST_CELLS).map(|x| vec![x]).collect(),
        _ => powers(MOST_CELLS)
            .flat_map(|y| powers(MOST_CELLS).map(move |x| vec![y, x]))
            .map(|cells| [vec![1; axes.saturating_sub(2)], cells].concat())
            .collect(),
    }
}

/// Elements that a tile moves for each of its iterations; none where it does not fit.
fn moved<'c>(
    function: &Function<'c, '_>,
    launch: &Launch<'c>,
    tileable: &Tileable<'c>,
    tile: &NestTile,
    device: &Device,
) -> Option<f64> {
    let fitted = tile_shape::fit(function, launch, tileable, tile, device).ok()?;
    let cells: i64 = fitted.threads.iter().chain(&fitted.per_thread).product();
    let loops = tileable.loops.iter().enumerate();
    let of_loop = |(at, of): (usize, &TimeLoop)| {
        let trips = of.trips(function.nest).unwrap_or(tile_shape::MOST_TIME).max(1);
        let iterations = (cells * tile.time.min(trips)) as f64;
        let stored = of.registers.iter().filter(|register| register.stored).count();
        let kept = (of.registers.len() + stored) as f64 / trips as f64;
        loaded(function, &fitted, at, of) / iterations + kept
    };
    Some(loops.map(of_loop).sum())
}

/// Elements that a block loads for a tile of a loop: the points of the data that its references
/// reach.
fn loaded(function: &Function, fitted: &Fitted, at: usize, of: &TimeLoop) -> f64 {
    let product = |extents: &[i64]| extents.iter().map(|cells| *cells as f64).product::<f64>();
    let copies = fitted.copies.get(at).into_iter().flatten();
    let copied: f64 = copies.map(|copy| product(&copy.extents)).sum();
    let none = BTreeMap::new();
    let values = fitted.values.get(at).unwrap_or(&none);
    let direct = of.homes.iter().filter(|(_, home)| **home == Home::Memory);
    let direct = direct.filter_map(|(access, _)| {
        let reference = &function.text.accesses.get(*access)?.reference;
        let (array, indices) = (reference.array, reference.indices.clone());
        let reached = Copy { access: *access, array, spread: vec![0; indices.len()], indices };
        let extents =
            reached.extents(function.nest, |at| Some(values.get(&at).copied().unwrap_or(1)));
        extents.map(|extents| product(&extents))
    });
    copied + direct.sum::<f64>()
}
