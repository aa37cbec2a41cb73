//! The tile of a stream, where none is asked for: rows and columns as the threads of a block hold
//! them beside the halo, and planes that fill the device evenly.

use super::pipeline::{self, shape};
use super::registers;
use super::schedule::{MANY, THREADS, graph, plane, threads, within};
use crate::analysis::index_width::constant_extents;
use crate::analysis::reductions;
use crate::kernel::lanes::{self, WARP};
use crate::schedule::launch_groups::Group;
use crate::subject::Subject;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{Halo, MOST_CELLS, Schedule};
use stencil_runtime::device::SECTOR;
use stencil_runtime::model;

/// Planes of a tile where the grid's are not known at compile time: the halo's planes cost a few
/// per cent of it, and thousands of tiles fill a device.
pub const PLANES: i64 = 256;

/// Planes per tile that are tried where the grid's size is known. Higher tiles have less halo, but
/// fewer of them share the multiprocessors: 545 rows were 7 to 15 per cent slower than 408 in all
/// programs.
const TRIED_PLANES: std::ops::RangeInclusive<i64> = 32..=420;

/// The start of a block in three dimensions takes as long as this many planes; fitted to tiles of
/// two fields on an H200.
const BEGIN: i64 = 8;

/// The part of a block's life for which the device is not full where a launch overlaps with
/// nothing. Fitted on an H200 to `star2d1r` in tiles of 300 to 620 rows (0.2 to 0.35), and to
/// `srad` in tiles of 64 to 256 (0.45).
const TAIL: f64 = 0.3;

/// How much longer a plane takes with checks than without, by the instructions of `star2d1r`.
const RIM_SLOWNESS: i64 = 2;

/// The tile of a kernel of some steps whose loads and applies reach over some halos.
pub fn tile(
    subject: &Subject,
    group: &Group,
    schedule: &Schedule,
    halos: &[&Halo],
) -> Result<Vec<i64>, Error> {
    let (device, per_thread) = (subject.device, schedule.per_thread.as_slice());
    let graph = graph(subject, &group.applies, per_thread, schedule.steps)?;
    let pipeline = pipeline::of(&graph, device);
    let [.., fewest] = THREADS;
    let threads = threads(per_thread, pipeline.registers, device).unwrap_or(fewest);
    let (rows, mut columns) = within(per_thread, threads, halos);
    if per_thread.len() == 2 && graph.loaded().count() > MANY {
        // Rows are whole sectors: with 24 columns in place of 28, `d2q9` with two steps ran at 88
        // GCells/s on an H200, and at 61 before.
        let widest = graph.values.iter().map(|value| value.words).max().unwrap_or(1);
        let sector = i64::from(SECTOR) / (4 * widest);
        columns = (columns / sector).max(1) * sector;
    }
    let halo = halos.iter().fold(Halo::none(per_thread.len()), |all, halo| all.hull(halo));
    let planes = |bounds: &[i64]| bounds.first().copied().unwrap_or(0);
    let limit = registers::limit(pipeline.registers, threads, device);
    let limit = u32::try_from(limit).unwrap_or(device.registers_per_thread);
    let warps = i64::from(model::resident_warps(limit, device));
    let fit = Fit {
        per_thread,
        threads,
        rows: rows.max(1),
        columns: columns.max(shape(per_thread).1),
        fill: planes(&halo.upper) - planes(&halo.lower),
        first: pipeline.first_tile(),
        alone: alone(subject.program, schedule.steps)?,
        slots: (i64::from(device.multiprocessors) * (warps * WARP / threads).max(1)) as f64,
        overlap: subject.rows_that_overlap(),
    };
    let extents = constant_extents(group.hull.lower, group.hull.upper);
    let extents = extents.map(|extents| subject.devices.part(&extents));
    Ok(match extents.as_deref() {
        Some([planes, columns]) => fit.of_rows(*planes, *columns),
        Some([planes, rows, columns]) => {
            let west = halo.lower.last().copied().unwrap_or(0);
            fit.of_planes(subject.program, west, [*planes, *rows, *columns])
        }
        _ if per_thread.len() == 2 => vec![PLANES, fit.columns],
        _ => vec![PLANES, fit.rows, fit.columns],
    })
}

/// The conditions that a tile is fitted to. Numbers are cells unless stated otherwise.
struct Fit<'s> {
    per_thread: &'s [i64],
    /// Threads of a block.
    threads: i64,
    /// Rows of a plane beside the halo.
    rows: i64,
    /// Columns beside the halo.
    columns: i64,
    /// Planes of the halo, on both sides together.
    fill: i64,
    /// Planes of a first tile after which the next meets no rim.
    first: i64,
    /// The part of the launches that overlap with no other.
    alone: f64,
    /// Blocks that the device runs at once.
    slots: f64,
    /// Rows of tiles with which launches overlap.
    overlap: f64,
}

/// The part of the launches of a program that overlap with no other, because a reduction of their
/// results or a look at the condition of the run follows.
fn alone(program: &Program, steps: i64) -> Result<f64, Error> {
    if !reductions::of(program)?.each_step.is_empty() {
        return Ok(1.0);
    }
    let until = program.until.as_ref();
    Ok(until.map_or(0.0, |until| steps.max(1) as f64 / until.every.max(1) as f64).min(1.0))
}

impl Fit<'_> {
    /// The tile of a grid of two dimensions.
    fn of_rows(&self, all_planes: i64, all_columns: i64) -> Vec<i64> {
        let (first, fill) = (self.first, self.fill);
        let across = (all_columns + self.columns - 1) / self.columns;
        let cost = |planes: i64| {
            let own = (all_planes - first).max(0);
            // A last tile that is too small leaves the one before it at the rim too.
            let (whole, last) = (own / planes, own % planes);
            let (whole, last) =
                if last < first { ((whole - 1).max(0), last + planes) } else { (whole, last) };
            // Tiles of the first and the last column are halves, and all of their rows lie at the
            // rim.
            let rim = |planes: i64| (RIM_SLOWNESS * (planes + fill)) as f64;
            let (inner, half) = ((planes + fill) as f64, rim((planes + 1) / 2));
            let row = inner * (across - 2).max(0) as f64 + 4.0 * half;
            let work = whole as f64 * row + across as f64 * (rim(first) + rim(last));
            let longest = [half, rim(first), rim(last)].into_iter().fold(inner, f64::max);
            let waited = (work / self.slots + TAIL * inner).max(longest);
            (1.0 - self.alone) * model::overlapped(work / self.slots, longest) + self.alone * waited
        };
        let planes = least(TRIED_PLANES.filter(|planes| *planes > first), cost);
        vec![planes.unwrap_or(PLANES), self.columns]
    }

    /// The tile of a grid of three dimensions; `west` is the halo's first column.
    fn of_planes(&self, program: &Program, west: i64, all: [i64; 3]) -> Vec<i64> {
        let [all_planes, all_rows, all_columns] = all;
        // The first and the last tile of a row hold their halo's cells too.
        let (whole_rows, whole_columns) = plane(self.per_thread, self.threads);
        let beside = |all: i64, whole: i64, tile: i64| (all - (whole - tile)).max(1);
        let count = |all: i64, tile: i64| (all + tile - 1) / tile;
        let own_rows = beside(all_rows, whole_rows, self.rows);
        let rows = count(own_rows, count(own_rows, self.rows));
        let left = lanes::whole(-west, shape(self.per_thread).1);
        let aligned = |element| lanes::whole_sectors(element, left);
        let own_columns = if program.fields.iter().all(|field| aligned(field.element)) {
            beside(all_columns, whole_columns, self.columns)
        } else {
            all_columns
        };
        let across = count(own_rows, rows).saturating_mul(count(own_columns, self.columns)) as f64;
        let cost = |planes: i64| {
            let rows = count(all_planes, planes) as f64;
            let (blocks, each) = (across * rows, (planes + self.fill + BEGIN) as f64);
            if rows >= self.overlap && blocks > self.slots && self.alone < 0.5 {
                let work = across * (all_planes as f64 + rows * (self.fill + BEGIN) as f64);
                return model::overlapped(work / self.slots, each);
            }
            let rounds = (blocks / self.slots).ceil();
            // A single round waits for the slower tiles at rims; with more rounds they begin first.
            let slow = if rounds <= 1.0 { 1.25 } else { 1.0 };
            slow * rounds * each
        };
        let planes = least(1..=all_planes.min(MOST_CELLS), cost);
        vec![planes.map_or(PLANES, |planes| planes.clamp(1, MOST_CELLS)), rows, self.columns]
    }
}

/// The number that costs least.
fn least(numbers: impl Iterator<Item = i64>, cost: impl Fn(i64) -> f64) -> Option<i64> {
    numbers
        .map(|number| (cost(number), number))
        .min_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, number)| number)
}
