//! Tiles and steps per launch for the caches of a processor.
//!
//! A tile streams along its slowest dimension, so its state is a few planes of each value: those
//! of a step lie in the first cache while they are computed, those of all steps in the second. The
//! wider a tile is across the stream, the less its threads compute twice; the more steps a launch
//! takes, the less memory it moves. So a launch takes as many steps as the second cache holds, up
//! to [`MOST_STEPS`], with tiles whose rows are wide against the halo.

use super::layout::bytes_of;
use crate::analysis::footprint;
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::Shape;
use crate::subject::Subject;
use std::collections::BTreeMap;
use stencil_dialects::error::Error;
use stencil_dialects::tiled::Schedule;
use stencil_runtime::processor::Processor;

/// Steps of a launch from which on memory is seldom waited for.
const MOST_STEPS: i64 = 32;

/// Cells of a row: in f32 three rows that are read and two that are written fill 20 KiB.
const ROW: i64 = 1024;

/// What a group keeps of a step.
struct State {
    /// Bytes for each point of a plane, in all planes that are in flight.
    bytes: i64,
    /// Cells by which a step reaches beyond a point, along each dimension.
    reach: Vec<i64>,
}

impl State {
    fn of(subject: &Subject, group: &Group) -> Result<Self, Error> {
        let mut reach = vec![0; group.hull.rank()];
        let mut fields = BTreeMap::new();
        for apply in &group.applies {
            let mut own = vec![0; reach.len()];
            for read in footprint::of_pieces(subject.program, &apply.pieces)? {
                let ends = read.reach.lower.iter().zip(&read.reach.upper);
                for (own, (lower, upper)) in own.iter_mut().zip(ends) {
                    *own = (*own).max(-lower).max(*upper);
                }
                fields.entry(read.field).or_insert(1);
            }
            let planes = 2 * own.first().copied().unwrap_or(0) + 2;
            fields.extend(apply.updates.iter().map(|field| (*field, planes)));
            for (all, own) in reach.iter_mut().zip(own) {
                *all += own;
            }
        }
        let mut bytes = 0;
        for (field, planes) in fields {
            bytes += planes * bytes_of(subject.program.field(field)?.element);
        }
        Ok(Self { bytes, reach })
    }
}

/// The shape of a tile.
pub fn shape(_: &Subject, group: &Group) -> Result<Shape, Error> {
    let tile: &[i64] = match group.hull.rank() {
        1 => &[8192],
        2 => &[512, ROW],
        _ => &[128, 64, 256],
    };
    Ok(Shape { tile: tile.to_vec(), per_thread: vec![1; tile.len()] })
}

/// Steps of a launch.
pub fn pyramid_height(subject: &Subject, group: &Group, schedule: &Schedule) -> Result<i64, Error> {
    let processor = subject.processor.unwrap_or(Processor::named(16));
    let state = State::of(subject, group)?;
    let cells = schedule.tile.iter().skip(1).fold(1_i64, |all, cells| all.saturating_mul(*cells));
    let step = match schedule.tile.len() {
        1 => 1,
        _ => cells.saturating_mul(state.bytes),
    };
    let cache = i64::try_from(processor.l2).unwrap_or(i64::MAX);
    let held = (cache / step.max(1)).max(1);
    // Of the narrowest side an eighth at most is computed twice.
    let sides = schedule.tile.iter().zip(&state.reach);
    let narrow = sides.map(|(cells, reach)| cells / (16 * reach.max(&1))).min().unwrap_or(1);
    Ok(held.min(narrow).clamp(1, MOST_STEPS))
}
