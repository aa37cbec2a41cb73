//! Tiles, cells a lane and pyramid heights of the strategy `relay`, where none are asked for.
//!
//! Blocks have four warps, so that two of them share a multiprocessor: while the warps of one wait
//! for each other, those of the other work. For each number of steps a warp, a lane has as many
//! cells as registers allow.

use super::chain::{WARPS, is_chain};
use super::registers::{budget, estimate};
use crate::analysis::index_width::constant_extents;
use crate::kernel::lanes::{self, WARP, WIDEST};
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::Candidates;
use crate::strategies::stream::pipeline;
use crate::strategies::stream::schedule::graph_of;
use crate::subject::Subject;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::Apply;
use stencil_dialects::tiled::{Halo, Schedule};
use stencil_runtime::device::Device;
use stencil_runtime::model;

/// Cells of a lane that are tried. With an odd number no banks of shared memory conflict.
const WIDTHS: [i64; 10] = [25, 23, 21, 19, 17, 15, 13, 11, 9, 7];

/// The most steps of a warp that are tried.
const MOST_STEPS: i64 = 8;

/// Accesses with which a thread loads its part of a row, at most: with a third `box2d2r` is slower.
const ACCESSES: i64 = 2;

/// Rows of a tile where the grid's are not known at compile time.
const ROWS: i64 = 1024;

/// Rows per tile that are tried where the grid's size is known.
const TRIED_ROWS: std::ops::RangeInclusive<i64> = 64..=2048;

/// How much longer a row takes with checks of rows, and with those of columns alone, than without:
/// by their instructions.
const SLOWNESS: [f64; 2] = [2.5, 1.2];

/// The part of a tile's time that counts against launches which overlap. Fitted on an H200 to tiles
/// of 600 to 1,400 rows: the longer ones were up to 3 per cent faster.
const LIFE: f64 = 0.7;

/// Rows of a launch for each block that the device runs at once, below which a stream is as fast:
/// at 8,192 x 8,192 there are some 700, and at 16,384 x 16,384 some 2,800 (decision 047).
const LARGE: i64 = 1500;

/// Cells a lane and steps of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fit {
    width: i64,
    steps: i64,
}

/// The widest lanes for each number of steps of a warp.
fn fits(subject: &Subject, applies: &[&Apply]) -> Result<Vec<Fit>, Error> {
    let mut found = Vec::new();
    if !is_chain(subject.program, applies)? {
        return Ok(found);
    }
    for steps in 1..=MOST_STEPS {
        for width in WIDTHS {
            let whole = |_: &Apply| Ok(Vec::new());
            let graph = match graph_of(subject, applies, (&[1, width], steps), whole) {
                Err(error) if error.is_decline() => continue,
                graph => graph?,
            };
            let words = graph.values.first().map_or(1, |value| value.words);
            if width > ACCESSES * WARPS * WIDEST / (4 * words) {
                continue;
            }
            let pipeline = pipeline::of(&graph, subject.device);
            if estimate(&pipeline, (width, words)) <= budget(words) {
                found.push(Fit { width, steps });
                break;
            }
        }
    }
    Ok(found)
}

/// The usual number of cells a lane.
pub fn width(subject: &Subject, applies: &[&Apply]) -> Result<i64, Error> {
    let [.., narrowest] = WIDTHS;
    Ok(usual(subject, applies)?.map_or(narrowest, |fit| fit.width))
}

/// The most steps whose lanes are not narrow: narrow rows have much halo.
fn usual(subject: &Subject, applies: &[&Apply]) -> Result<Option<Fit>, Error> {
    let fits = fits(subject, applies)?;
    let wide = |fit: &&Fit| fit.width >= 11;
    Ok(fits.iter().rev().find(wide).or(fits.first()).copied())
}

/// The steps of a launch for lanes of some cells; at least 1.
pub fn pyramid_height(
    subject: &Subject,
    applies: &[&Apply],
    per_thread: &[i64],
) -> Result<i64, Error> {
    let width = per_thread.last().copied().unwrap_or(1);
    let fits = fits(subject, applies)?;
    let steps = fits.iter().filter(|fit| fit.width >= width).map(|fit| fit.steps).max();
    Ok(steps.map_or(1, |steps| steps * WARPS))
}

/// The schedules to try: the widest lanes for each number of steps.
pub fn candidates(subject: &Subject) -> Result<Vec<Candidates>, Error> {
    let applies: Vec<_> = subject.program.applies.iter().collect();
    let candidates = |fit: Fit| Candidates {
        tile: None,
        per_thread: Some(vec![1, fit.width]),
        pyramid_heights: vec![Some(fit.steps * WARPS)],
    };
    Ok(fits(subject, &applies)?.into_iter().map(candidates).collect())
}

/// Whether a program may be faster than as a stream: it updates one field of 64-bit cells, and its
/// grid is large. In `f32` the best relay of `star2d1r` is 2 per cent slower than its stream.
pub fn pays(subject: &Subject) -> Result<bool, Error> {
    let program = subject.program;
    let applies: Vec<_> = program.applies.iter().collect();
    let field = applies.first().and_then(|apply| apply.updates.first());
    let (Some(field), true) = (field, is_chain(program, &applies)?) else { return Ok(false) };
    let grid = program.grid_of(field)?;
    let extents = constant_extents(grid.lower, grid.upper);
    let extents = extents.map(|extents| subject.devices.part(&extents));
    let Some(&[rows, columns]) = extents.as_deref() else { return Ok(false) };
    let wide = lanes::words(program.field(field)?.element) > 1;
    let strips = columns / (WARP * width(subject, &applies)?);
    Ok(wide && rows.saturating_mul(strips) >= LARGE * slots(subject.device))
}

/// Blocks that a device runs at once.
fn slots(device: &Device) -> i64 {
    let warps = i64::from(model::resident_warps(device.registers_per_thread, device));
    i64::from(device.multiprocessors) * (warps / WARPS).max(1)
}

/// The tile of a kernel whose loads and applies reach over some halos.
pub fn tile(
    subject: &Subject,
    group: &Group,
    schedule: &Schedule,
    halos: &[&Halo],
) -> Result<Vec<i64>, Error> {
    let width = schedule.per_thread.last().copied().unwrap_or(1);
    let halo = halos.iter().fold(Halo::none(2), |all, halo| all.hull(halo));
    let (([north, west], [south, east]), mut sector) = (
        match (halo.lower.as_slice(), halo.upper.as_slice()) {
            ([north, west], [south, east]) => ([-north, -west], [*south, *east]),
            _ => ([0, 0], [0, 0]),
        },
        1,
    );
    for field in group.applies.iter().flat_map(|apply| &apply.updates) {
        let element = subject.program.field(field)?.element;
        sector = sector.max(i64::try_from(lanes::cells_of_a_sector(element)).unwrap_or(1));
    }
    let columns = WARP * width - lanes::whole(west, sector) - east;
    // Wide cells of whole sectors, where there is room for one.
    let columns = if columns >= sector { columns / sector * sector } else { columns.max(1) };
    let extents = constant_extents(group.hull.lower, group.hull.upper);
    let extents = extents.map(|extents| subject.devices.part(&extents));
    let Some([all_rows, all_columns]) = extents.as_deref() else {
        return Ok(vec![ROWS, columns]);
    };
    let fit = Rows {
        all: *all_rows,
        strips: (*all_columns + columns - 1) / columns,
        above: north,
        fill: north + south + WARPS,
        slots: slots(subject.device) as f64,
    };
    Ok(vec![fit.best(), columns])
}

/// What the rows of a tile are fitted to.
struct Rows {
    /// Those of the grid.
    all: i64,
    /// Tiles side by side.
    strips: i64,
    /// Rows of the halo above a tile.
    above: i64,
    /// Rows beside its own that a tile computes.
    fill: i64,
    /// Blocks that the device runs at once.
    slots: f64,
}

impl Rows {
    /// The rows with which a launch takes the least time.
    fn best(&self) -> i64 {
        let cost = |rows: i64| {
            let first = self.above.max(1);
            let own = (self.all - first).max(0);
            let (whole, last) = (own / rows, own % rows);
            // A last tile that is too small leaves the one before it at the rim too.
            let (whole, last) =
                if last < first { ((whole - 1).max(0), last + rows) } else { (whole, last) };
            let [at_rows, at_columns] = SLOWNESS;
            let rim = at_rows * (last + self.fill) as f64;
            let inner = (rows + self.fill) as f64;
            let strips = self.strips as f64;
            let columns = 2.0_f64.min(strips);
            let beside = strips - columns + at_columns * columns;
            let ends = rim + at_rows * (first + self.fill - self.above) as f64;
            let work = whole as f64 * inner * beside + strips * ends;
            model::overlapped(work / self.slots, LIFE * rim.max(inner))
        };
        let tried = TRIED_ROWS.map(|rows| (cost(rows), rows));
        tried.min_by(|(a, _), (b, _)| a.total_cmp(b)).map_or(ROWS, |(_, rows)| rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_end_with_a_short_row() {
        // 52 strips of 16,384 rows, a halo of 16, 264 blocks at once.
        let fit = Rows { all: 16_384, strips: 52, above: 16, fill: 36, slots: 264.0 };
        let rows = fit.best();
        let last = (16_384 - 16) % rows;
        assert!((600..=1500).contains(&rows) && (16..64).contains(&last), "{rows} {last}");
        // A grid that is smaller than all tiles.
        let small = Rows { all: 40, strips: 1, above: 16, fill: 36, slots: 264.0 };
        assert!(TRIED_ROWS.contains(&small.best()));
    }
}
