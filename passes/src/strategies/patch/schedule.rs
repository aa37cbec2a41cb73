//! Tiles, cells per thread and pyramid heights of the strategy `patch`, where none are asked for.

use super::layout::of_three;
use super::search::{Fit, Search};
use crate::analysis::index_width::constant_extents;
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::Candidates;
use crate::subject::Subject;
use std::collections::BTreeMap;
use stencil_dialects::error::Error;
use stencil_dialects::tiled::{Halo, Schedule};

/// The schedule of a group, of launches of one round or, where tiles stay `resident`, of several.
/// Where no tile has room, the smallest, which the lowering declines.
pub fn of_group<'c>(
    subject: &Subject<'c, '_>,
    group: &Group<'c, '_>,
    resident: bool,
) -> Result<Fit, Error> {
    let extents = constant_extents(group.hull.lower, group.hull.upper);
    let search = Search::of(subject, &group.applies, (group.hull.rank(), extents), resident)?;
    let fits = search.heights()?.into_iter();
    let best = fits.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, fit)| fit);
    let (tile, per_thread) = (search.of_rank([1, 1, 2]), search.of_rank([1, 1, 2]));
    Ok(best.unwrap_or(Fit { tile, per_thread, steps: 1 }))
}

/// The tile of a kernel whose loads and applies reach over some halos.
pub fn tile<'c>(
    subject: &Subject<'c, '_>,
    group: &Group<'c, '_>,
    schedule: &Schedule,
    (halos, resident): (&[&Halo], bool),
) -> Result<Vec<i64>, Error> {
    let extents = constant_extents(group.hull.lower, group.hull.upper);
    let rank = group.hull.rank();
    let search = Search::of(subject, &group.applies, (rank, extents), resident)?;
    let halo = halos.iter().fold(Halo::none(rank), |all, halo| all.hull(halo));
    if schedule.per_thread.len() != rank {
        return Ok(schedule.tile.clone());
    }
    let each = of_three(&schedule.per_thread, 1)?;
    let found = search.tile((each, search.registers(each)), schedule.steps, &halo)?;
    Ok(found.map_or_else(|| schedule.per_thread.clone(), |(_, tile)| tile))
}

/// The best schedules of some ranges of pyramid heights.
pub fn candidates(
    subject: &Subject,
    rank: usize,
    resident: bool,
) -> Result<Vec<Candidates>, Error> {
    if !(2..=3).contains(&rank) {
        return Ok(Vec::new());
    }
    // Functions of other dimensions are kernels by themselves.
    let mut applies = Vec::new();
    for apply in &subject.program.applies {
        let grids = apply.updates.iter().map(|field| subject.program.grid_of(field));
        let grids = grids.collect::<Result<Vec<_>, _>>()?;
        if grids.iter().all(|grid| grid.rank() == rank) {
            applies.push(apply);
        }
    }
    let mut largest: Option<Vec<i64>> = None;
    for field in applies.iter().flat_map(|apply| &apply.updates) {
        let grid = subject.program.grid_of(field)?;
        let found = constant_extents(grid.lower, grid.upper).filter(|found| found.len() == rank);
        let points = |extents: &Option<Vec<i64>>| {
            let extents = extents.iter().flatten().copied();
            extents.reduce(i64::saturating_mul).unwrap_or(0)
        };
        if points(&found) > points(&largest) {
            largest = found;
        }
    }
    if largest.is_none() {
        return Ok(Vec::new());
    }
    let search = Search::of(subject, &applies, (rank, largest), resident)?;
    let mut by_shape: BTreeMap<Vec<i64>, Vec<Option<i64>>> = BTreeMap::new();
    for (_, fit) in search.heights()? {
        by_shape.entry(fit.per_thread).or_default().push(Some(fit.steps));
    }
    let candidates = |(per_thread, pyramid_heights)| Candidates {
        tile: None,
        per_thread: Some(per_thread),
        pyramid_heights,
    };
    Ok(by_shape.into_iter().map(candidates).collect())
}
