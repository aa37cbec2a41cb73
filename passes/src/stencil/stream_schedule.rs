//! Tiles and pyramid heights of the strategy `stream`, where none are asked for.
//!
//! More steps a launch save memory traffic, but take registers and recompute more of the halo. The
//! choice here is arithmetic on the pipeline analysis; measured choices may overrule it.

use crate::analysis::footprint;
use crate::analysis::stream_pipeline::{self, Graph, Read, Value};
use crate::lower::emit::WARP;
use crate::lower::lanes;
use melior::ir::Module;
use std::collections::BTreeMap;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{Halo, Schedule};

/// Rows of a tile: the halo's rows cost a few per cent of it, and thousands of tiles fill a device.
pub const ROWS: i64 = 256;

/// Cells a lane: 16 bytes of `f32`.
pub const WIDTH: i64 = 4;

/// Steps a launch are never more, for cells of one register and of more.
const HIGHEST: [i64; 2] = [10, 8];

/// Registers that a lane may take by the estimate, for cells of one register and of more. Kernels
/// of 32-bit cells want twice as many warps to keep the arithmetic units busy.
const BUDGET: [i64; 2] = [150, 224];

/// At least this part of a strip's columns must belong to the tile, as a fraction.
const USEFUL: (i64, i64) = (3, 4);

/// The most steps a launch within the budget of registers and halo; at least 1.
pub fn height(module: &Module, program: &Program, width: i64) -> Result<i64, Error> {
    let wide = usize::from(program.fields.iter().any(|field| lanes::words(field.element) > 1));
    let mut best = 1;
    for steps in 2..=HIGHEST[wide] {
        let graph = graph(module, program, width, steps)?;
        let reach = graph.reads.iter().filter_map(|read| read.offset.last()).fold((0, 0), |(low, high), offset| (low.min(*offset), high.max(*offset)));
        let lost = reaching(-reach.0 * steps, width) + reaching(reach.1 * steps, width);
        let strip = WARP * width;
        let useful = (strip - lost) * USEFUL.1 >= strip * USEFUL.0;
        if useful && stream_pipeline::of(&graph).registers <= BUDGET[wide] {
            best = steps;
        }
    }
    Ok(best)
}

/// The tile of a kernel: as many columns as a strip has beside the halo of what is loaded.
pub fn tile<'h>(schedule: &Schedule, loads: impl Iterator<Item = &'h Halo>) -> Vec<i64> {
    let (mut left, mut right) = (0, 0);
    for halo in loads {
        left = left.max(halo.lower.last().map_or(0, |lower| -lower));
        right = right.max(halo.upper.last().copied().unwrap_or(0));
    }
    let width = schedule.per_thread.last().copied().unwrap_or(1);
    let columns = (WARP * width - reaching(left, width) - reaching(right, width)).max(width);
    let rows = schedule.tile.iter().take(schedule.tile.len().saturating_sub(1)).copied();
    rows.chain([columns]).collect()
}

/// A reach rounded up to whole lanes.
fn reaching(cells: i64, width: i64) -> i64 {
    (cells.max(0) + width - 1) / width * width
}

/// The tile graph of several steps.
fn graph(module: &Module, program: &Program, width: i64, steps: i64) -> Result<Graph, Error> {
    let mut graph = Graph { values: Vec::new(), reads: Vec::new(), width, slack: 0 };
    let mut current = BTreeMap::new();
    for field in &program.fields {
        let operation = graph.values.len();
        current.insert(field.name, operation);
        graph.values.push(Value { operation, words: lanes::words(field.element) });
    }
    let mut operation = graph.values.len();
    for apply in (0..steps).flat_map(|_| &program.applies) {
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
        operation += 1;
    }
    Ok(graph)
}
