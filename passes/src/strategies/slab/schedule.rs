//! Tiles and steps per launch for the caches and threads of a processor: the facts of a group that
//! [`super::model`] needs.

use super::layout::{LINE, bytes_of, streams, whole_planes};
use super::lower_slab::slab;
use super::model::{self, Work};
use super::renames::taken_over;
use super::{lanes, reads};
use crate::analysis::footprint;
use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::Shape;
use crate::subject::Subject;
use melior::ir::AffineMap;
use std::collections::BTreeSet;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::{self, Apply};
use stencil_dialects::tiled::Schedule;
use stencil_runtime::processor::Processor;

/// The shape of a tile.
pub fn shape(subject: &Subject, group: &Group) -> Result<Shape, Error> {
    let tile = model::tile(&work(subject, group)?, processor(subject));
    Ok(Shape { per_thread: vec![1; tile.len()], tile })
}

/// Steps of a launch.
pub fn pyramid_height(subject: &Subject, group: &Group, schedule: &Schedule) -> Result<i64, Error> {
    Ok(model::height(&work(subject, group)?, processor(subject), &schedule.tile).1)
}

fn processor(subject: &Subject) -> Processor {
    subject.processor.unwrap_or(Processor::named(16))
}

/// What a group does in a step.
fn work(subject: &Subject, group: &Group) -> Result<Work, Error> {
    let rank = group.hull.rank();
    let hull = &group.hull;
    let end = |map: AffineMap, dimension| {
        let end = map.result(dimension).ok().filter(|end| end.is_constant())?;
        Some(end.constant_value())
    };
    let extent = |dimension| {
        let (first, last) = (end(hull.lower, dimension)?, end(hull.upper, dimension)?);
        Some(subject.devices.part_along(dimension, last - first + 1))
    };
    let mut work = Work {
        extents: (0..rank).map(extent).collect(),
        reach: vec![0; rank],
        code: 0.0,
        lanes: i64::MAX,
        slab: slab(rank),
        read: 0,
        written: 0,
        rows: 0.0,
        state: 0,
        windows: 0,
        copies: 0,
    };
    let bytes = |field: &str| Ok::<_, Error>(bytes_of(subject.program.field(field)?.element));
    let updated: BTreeSet<&str> =
        group.applies.iter().flat_map(|apply| apply.updates.iter().copied()).collect();
    let mut read = BTreeSet::new();
    for apply in &group.applies {
        let mut own = vec![[0, 0]; rank];
        let mut fields = BTreeSet::new();
        for reach in footprint::of_pieces(subject.program, &apply.pieces)? {
            let ends = reach.reach.lower.iter().zip(&reach.reach.upper);
            for (own, (lower, upper)) in own.iter_mut().zip(ends) {
                *own = [own[0].max(-lower), own[1].max(*upper)];
            }
            fields.insert(reach.field);
        }
        for field in &fields {
            work.state += bytes(field)?;
        }
        read.extend(fields.into_iter().filter(|field| !group.transfers.fresh.contains(field)));
        let [before, behind] = own.first().copied().unwrap_or_default();
        let needed = if streams(rank) { before + behind + work.slab } else { 1 };
        let needed = whole_planes(needed.max(1), rank);
        for (result, field) in apply.updates.iter().enumerate() {
            if taken_over(subject, &apply.pieces, result)?.is_some() {
                continue;
            }
            work.rows += 2.0 * bytes(field)? as f64;
            work.state += 2 * bytes(field)?;
            work.windows += needed * bytes(field)?;
        }
        for (all, own) in work.reach.iter_mut().zip(own) {
            *all += own[0] + own[1];
        }
        let ([code, rows], lanes) = code(subject, apply)?;
        work.code += code;
        work.rows += rows;
        work.lanes = work.lanes.min(lanes);
    }
    let ahead = work.reach.first().copied().unwrap_or(0);
    for field in read {
        work.read += bytes(field)?;
        if rank < 3 {
            continue;
        }
        // A copied plane stays until the last step has read it.
        let planes = if updated.contains(field) { ahead + work.slab } else { work.slab };
        work.copies += planes * bytes(field)?;
        if !updated.contains(field) {
            work.windows += (ahead + 1) / 2 * bytes(field)?;
        }
    }
    for field in updated.intersection(&group.transfers.stored) {
        work.written += bytes(field)?;
    }
    Ok(work)
}

/// Cycles and bytes of rows of an apply for a cell, and the lanes of its vectors.
fn code(subject: &Subject, apply: &Apply) -> Result<([f64; 2], i64), Error> {
    let (mut most, mut lanes) = ([0.0; 2], i64::MAX);
    for piece in &apply.pieces {
        let function = stencil::function(subject.module, piece.function)?;
        let mut widest = 1;
        let reads = footprint::of_pieces(subject.program, std::slice::from_ref(piece))?;
        for read in &reads {
            widest = widest.max(bytes_of(subject.program.field(read.field)?.element));
        }
        for field in &apply.updates {
            widest = widest.max(bytes_of(subject.program.field(field)?.element));
        }
        let own = (i64::from(subject.vector_bytes()) / widest).max(1);
        let own_cost = if lanes::is_lanewise(function, own) && own > 1 {
            let registers = subject.vector_registers();
            let (_, cost) = reads::way(subject.program, function, (own, registers))?;
            [cost.cycles / own as f64, cost.lines * LINE as f64 / own as f64]
        } else {
            [mlir::walk(function).len() as f64, reads.len() as f64 * widest as f64]
        };
        most = [f64::max(most[0], own_cost[0]), f64::max(most[1], own_cost[1])];
        lanes = lanes.min(own);
    }
    Ok((most, lanes))
}
