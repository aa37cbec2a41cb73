//! Tiles and pyramid heights of the strategy `stream`, where none are asked for.
//!
//! More steps a launch save memory traffic, but take registers and recompute more of the halo. The
//! choice here is arithmetic on the pipeline analysis; measured choices may overrule it.

use crate::analysis::footprint;
use crate::analysis::hull::Hull;
use crate::analysis::index_width::constant_extents;
use crate::analysis::stream_pipeline::{self, Graph, Read, Value};
use crate::lower::emit::WARP;
use crate::lower::lanes;
use melior::ir::Module;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::error::Error;
use stencil_dialects::stencil::{Apply, Program};
use stencil_dialects::tiled::{Halo, Schedule};

/// Rows of a tile where the grid's are not known at compile time: the halo's rows cost a few per cent
/// of it, and thousands of tiles fill a device.
pub const ROWS: i64 = 256;

/// Rows of a tile that are tried where the grid's are known. Higher tiles save halo rows by count, and
/// still measured worse in every program: 382 rows by 1 to 6 per cent against 256.
const TRIED_ROWS: std::ops::RangeInclusive<i64> = 32..=272;

/// Multiprocessors of the device, if nothing else is said: those of an H200.
pub const MULTIPROCESSORS: i64 = 132;

/// Cells a lane: 16 bytes of `f32`.
pub const WIDTH: i64 = 4;

/// Steps a launch are never more, for cells of one register and of more.
const HIGHEST: [i64; 2] = [10, 8];

/// Registers that a lane may take by the estimate, for cells of one register and of more. Kernels
/// of 32-bit cells want twice as many warps to keep the arithmetic units busy.
const BUDGET: [i64; 2] = [150, 224];

/// Registers in place of these where a function has long operations: their latency wants warps.
const LONG_BUDGET: i64 = 124;

/// At least this part of a strip's columns must belong to the tile, as a fraction.
const USEFUL: (i64, i64) = (3, 4);

/// The most steps a launch within the budget of registers and halo; at least 1.
pub fn height(module: &Module, program: &Program, applies: &[&Apply], width: i64) -> Result<i64, Error> {
    let wide = usize::from(program.fields.iter().any(|field| lanes::words(field.element) > 1));
    let mut best = 1;
    for steps in 2..=HIGHEST[wide] {
        let graph = graph(module, program, applies, width, steps)?;
        let reach = graph
            .reads
            .iter()
            .filter_map(|read| read.offset.last())
            .fold((0, 0), |(low, high), offset| (low.min(*offset), high.max(*offset)));
        let lost = reaching(-reach.0 * steps, width) + reaching(reach.1 * steps, width);
        let strip = WARP * width;
        let useful = (strip - lost) * USEFUL.1 >= strip * USEFUL.0;
        let budget = if graph.scratch > 0 { LONG_BUDGET << wide } else { BUDGET[wide] };
        if useful && stream_pipeline::of(&graph).registers <= budget.min(BUDGET[wide]) {
            best = steps;
        }
    }
    Ok(best)
}

/// The tile of a kernel of some steps: as many columns as a warp has beside the halo of what is
/// loaded, and rows, where there are any, that fill the device evenly.
pub fn tile(
    module: &Module,
    program: &Program,
    (applies, hull): (&[&Apply], &Hull),
    schedule: &Schedule,
    loads: &[&Halo],
    multiprocessors: i64,
) -> Result<Vec<i64>, Error> {
    let whole = loads.iter().fold(Halo::none(schedule.tile.len()), |whole, halo| whole.hull(halo));
    let width = schedule.per_thread.last().copied().unwrap_or(1);
    let lost = whole.lower.last().map_or(0, |lower| reaching(-lower, width))
        + whole.upper.last().map_or(0, |upper| reaching(*upper, width));
    let columns = (WARP * width - lost).max(width);
    let ([first, _], [last, _]) = (whole.lower.as_slice(), whole.upper.as_slice()) else { return Ok(vec![columns]) };
    let Some([all_rows, all_columns]) =
        constant_extents(hull.lower, hull.upper).and_then(|extents| <[i64; 2]>::try_from(extents).ok())
    else {
        return Ok(vec![ROWS, columns]);
    };
    let pipeline = stream_pipeline::of(&graph(module, program, applies, width, schedule.steps)?);
    let slots = multiprocessors * stream_pipeline::resident_warps(stream_pipeline::register_limit(pipeline.registers));
    let strips = (all_columns + columns - 1) / columns;
    let fill = last - first;
    let rows = TRIED_ROWS.min_by_key(|rows| {
        let tiles = strips.saturating_mul((all_rows + rows - 1) / rows);
        waves(tiles, slots).saturating_mul(rows + fill)
    });
    Ok(vec![rows.unwrap_or(ROWS), columns])
}

/// How long tiles take that run `slots` at a time, in units of a tile's time over `slots`. A last wave
/// that fills the fraction `r` of the device takes 0.55 + 0.5 r of a whole wave's time, and never
/// more than one: on an H200, waves of 0.39 and 0.79 took 0.73 and 0.96.
fn waves(tiles: i64, slots: i64) -> i64 {
    let rest = tiles % slots;
    tiles - rest + if rest == 0 { 0 } else { (slots * 11 / 20 + rest / 2).min(slots) }
}

/// A reach rounded up to whole lanes.
fn reaching(cells: i64, width: i64) -> i64 {
    (cells.max(0) + width - 1) / width * width
}

/// The tile graph of several steps.
fn graph(module: &Module, program: &Program, applies: &[&Apply], width: i64, steps: i64) -> Result<Graph, Error> {
    let mut graph = Graph { values: Vec::new(), reads: Vec::new(), width, slack: 0, scratch: 0 };
    let mut current = BTreeMap::new();
    let mut used: BTreeSet<&str> = applies.iter().flat_map(|apply| apply.updates.iter().copied()).collect();
    for apply in applies {
        used.extend(footprint::of_pieces(module, &apply.pieces)?.into_iter().map(|read| read.field));
    }
    for field in program.fields.iter().filter(|field| used.contains(field.name)) {
        let operation = graph.values.len();
        current.insert(field.name, operation);
        graph.values.push(Value { operation, words: lanes::words(field.element) });
    }
    let loads = graph.values.len();
    for (number, apply) in (0..steps).flat_map(|_| applies).enumerate() {
        let operation = loads + number;
        graph.scratch = graph.scratch.max(width * footprint::long_operations(module, &apply.pieces)?);
        let here = vec![0; program.grid_of(apply.updates.first().copied().unwrap_or_default())?.rank()];
        let kept = apply.updates.iter().map(|field| (*field, here.clone()));
        let reads = footprint::of_pieces(module, &apply.pieces)?.into_iter().map(|read| (read.field, read.offset));
        for (field, offset) in kept.chain(reads) {
            let value = current.get(field).copied().ok_or_else(|| Error::internal(format!("no field @{field}")))?;
            graph.reads.push(Read { operation, value, offset });
        }
        for field in &apply.updates {
            current.insert(*field, graph.values.len());
            graph.values.push(Value { operation, words: lanes::words(program.field(field)?.element) });
        }
    }
    Ok(graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_wave_takes_more_than_half_of_a_whole_ones_time() {
        // 2,112 tiles fill an H200 with 16 warps a multiprocessor once.
        assert_eq!(waves(2112, 2112), 2112);
        assert_eq!(waves(2113, 2112), 2112 + 1161);
        assert_eq!(waves(2112 + 1056, 2112), 2112 + 1161 + 528);
        assert_eq!(waves(4200, 2112), 2 * 2112);
    }

    #[test]
    fn a_reach_takes_whole_lanes() {
        assert_eq!([0, 1, 4, 5].map(|cells| reaching(cells, 4)), [0, 4, 4, 8]);
    }
}
