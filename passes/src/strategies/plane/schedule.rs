//! Tiles of the strategy `plane`, where none are asked for.

use crate::analysis::footprint;
use crate::analysis::index_width::constant_extents;
use crate::kernel::lanes::{self, WARP, WIDEST};
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::{Candidates, Shape};
use crate::subject::Subject;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{Choice, Halo, Schedule};
use stencil_runtime::model;

/// Planes of a tile where the grid's are not known at compile time.
const PLANES: i64 = 128;

/// The start of a block takes as long as this many planes: it waits for memory before its first.
const BEGIN: i64 = 4;

/// Rows of a tile in three dimensions and segments of a row, the usual ones first. Several blocks
/// of 128 threads wait at different times; larger blocks have less halo.
const BLOCKS: [[i64; 2]; 4] = [[8, 16], [4, 32], [8, 32], [16, 32]];

/// Segments of a row in two dimensions.
const ROWS: [[i64; 2]; 2] = [[1, 128], [1, 256]];

/// Threads of a multiprocessor by which planes are shared out.
const THREADS: i64 = 512;

/// The usual shape: a thread's segment is one access of the widest cells.
pub fn shape(program: &Program, rank: usize) -> Shape {
    let words = program.fields.iter().map(|field| lanes::words(field.element)).max().unwrap_or(1);
    of_block(rank, WIDEST / (4 * words.clamp(1, 4)), if rank == 2 { ROWS[0] } else { BLOCKS[0] })
}

fn of_block(rank: usize, width: i64, [rows, segments]: [i64; 2]) -> Shape {
    let (tile, per_thread) = match rank {
        2 => (vec![PLANES, segments * width], vec![1, width]),
        _ => (vec![PLANES, rows, segments * width], vec![1, 1, width]),
    };
    Shape { tile, per_thread }
}

/// The usual tile with as many planes as fill the device evenly; none for a grid of a size that is
/// not known.
pub fn fitted(
    subject: &Subject,
    group: &Group,
    schedule: &Schedule,
    halos: &[&Halo],
) -> Option<Vec<i64>> {
    let extents = constant_extents(group.hull.lower, group.hull.upper)?;
    let bound = |halo: &&Halo| Some(halo.upper.first()? - halo.lower.first()?);
    let fill = halos.iter().filter_map(bound).max().unwrap_or(0);
    with_planes(subject, &schedule.tile, &schedule.per_thread, (&extents, fill))
}

/// Other shapes of a block, where the grid's size is known.
pub fn candidates(
    subject: &Subject,
    rank: usize,
    choice: &Choice,
) -> Result<Vec<Candidates>, Error> {
    let program = subject.program;
    let updated = program.applies.iter().flat_map(|apply| &apply.updates);
    let mut grids = updated.map(|field| program.grid_of(field)).collect::<Result<Vec<_>, _>>()?;
    grids.retain(|grid| grid.rank() == rank);
    let Some(extents) = grids.first().and_then(|grid| constant_extents(grid.lower, grid.upper))
    else {
        return Ok(Vec::new());
    };
    let mut fill = 0;
    for apply in &program.applies {
        for read in footprint::of_pieces(program, &apply.pieces)? {
            let ends = read.reach.upper.first().zip(read.reach.lower.first());
            fill = ends.map_or(fill, |(last, first)| fill.max(2 * last.max(&-first)));
        }
    }
    let usual = shape(program, rank).per_thread;
    let per_thread = choice.per_thread.clone().filter(|cells| cells.len() == rank);
    let per_thread = per_thread.unwrap_or(usual);
    let width = per_thread.last().copied().unwrap_or(1);
    let blocks = if rank == 2 { ROWS.as_slice() } else { BLOCKS.as_slice() };
    let tile = |block: &[i64; 2]| {
        let shape = of_block(rank, width, *block);
        with_planes(subject, &shape.tile, &per_thread, (&extents, fill))
    };
    let candidates = |tile| Candidates {
        tile: Some(tile),
        per_thread: Some(per_thread.clone()),
        pyramid_heights: vec![Some(1)],
    };
    Ok(blocks.iter().filter_map(tile).map(candidates).collect())
}

/// A tile with as many planes as fill each device evenly, for a grid of some extents; `fill` is the
/// number of planes that a block loads beside those of its tile. Rows that the grid does not fill
/// are cut.
fn with_planes(
    subject: &Subject,
    tile: &[i64],
    per_thread: &[i64],
    (extents, fill): (&[i64], i64),
) -> Option<Vec<i64>> {
    let extents = subject.devices.part(extents);
    let (width, all) = (per_thread.last().copied()?.max(1), extents.first().copied()?);
    let needed = lanes::whole(extents.last().copied()?, width * WARP / 2).max(width);
    let mut tile = tile.to_vec();
    if let Some(columns) = tile.last_mut() {
        *columns = needed.min(*columns);
    }
    let count = |all: i64, part: i64| (all.max(0) + part.max(1) - 1) / part.max(1);
    let across: i64 =
        extents.iter().zip(&tile).skip(1).map(|(all, part)| count(*all, *part)).product();
    let threads = tile.iter().skip(1).product::<i64>() / width;
    let resident = (THREADS / threads.max(1)).max(1);
    let slots = (i64::from(subject.device.multiprocessors) * resident) as f64;
    let cost = |planes: i64| {
        let rows = count(all, planes);
        let each = (planes + fill + BEGIN) as f64;
        let blocks = (across * rows) as f64;
        if rows as f64 >= subject.rows_that_overlap() && blocks > slots {
            let work = across as f64 * (all + rows * (fill + BEGIN)) as f64;
            return model::overlapped(work / slots, each);
        }
        (blocks / slots).ceil() * each
    };
    let best = (1..=all.clamp(1, 1024)).map(|planes| (cost(planes), planes));
    let best = best.min_by(|(a, _), (b, _)| a.total_cmp(b))?;
    if let Some(planes) = tile.first_mut() {
        *planes = best.1;
    }
    Some(tile)
}
