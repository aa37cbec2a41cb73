//! Where the sums of an apply are cut, so that a lane holds fewer cells, and what an apply adds to
//! the tile graph of a stream.

use crate::analysis::footprint;
use crate::analysis::partial_sums::{Part, Planes, parts};
use crate::kernel::lanes;
use crate::strategies::stream::pipeline::{self, Graph, Read, Value};
use crate::strategies::stream::selects;
use crate::subject::Subject;
use melior::ir::ValueLike;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::{Piece, Program, Role};
use stencil_dialects::tiled::Keeps;

/// The planes after which all functions of an apply are cut. There are none where that saves no
/// registers of a `lane` of some rows and columns, and none where a field has a boundary rule,
/// which may read a cell of another plane.
pub fn sum_cuts<'c>(
    subject: &Subject<'c, '_>,
    updates: &[&str],
    pieces: &[Piece<'c>],
    lane: (i64, i64),
) -> Result<Vec<i64>, Error> {
    let program = subject.program;
    // The lowering declines lanes that are too large.
    let (&[updated], false) = (updates, selects::is_too_large(lane)) else {
        return Ok(Vec::new());
    };
    let element = program.field(updated)?.element;
    let mut planes = BTreeSet::new();
    for read in footprint::of_pieces(program, pieces)? {
        if program.field(read.field)?.boundary.is_some() {
            return Ok(Vec::new());
        }
        planes.extend(read.reach.lower.first().copied());
    }
    planes.pop_last();
    let mut functions = Vec::new();
    for piece in pieces {
        functions.push(Planes::of(program.function(piece.function)?)?);
    }
    let fits = |values: &[Val<'c>]| {
        values.len() <= 1 && values.iter().all(|value| value.r#type() == element)
    };
    let cuts: Vec<i64> = planes
        .into_iter()
        .filter(|plane| functions.iter().all(|of| fits(&of.crossing(*plane))))
        .collect();
    if cuts.is_empty() {
        return Ok(cuts);
    }
    let carried = |cuts: &[i64]| -> Result<i64, Error> {
        let graph = of_one_step(program, updated, &parts(program, pieces, cuts)?, lane)?;
        Ok(pipeline::of(&graph, subject.device).carried(&graph))
    };
    Ok(if carried(&cuts)? < carried(&[])? { cuts } else { Vec::new() })
}

/// The tile graph of one step.
fn of_one_step(
    program: &Program,
    updated: &str,
    parts: &[Part],
    lane: (i64, i64),
) -> Result<Graph, Error> {
    let mut graph = Graph::empty(lane);
    let mut loads: BTreeMap<&str, usize> = BTreeMap::new();
    let read = parts.iter().flat_map(|part| part.reads.iter().map(|(field, _)| *field));
    for field in read.chain([updated]) {
        if !loads.contains_key(field) {
            loads.insert(field, graph.load(words(program, field)?));
        }
    }
    extend(&mut graph, program, parts, &[updated], &loads)?;
    Ok(graph)
}

/// Adds an apply to a tile graph, one operation for each of its parts. Returns the values of its
/// updated fields; `values` are those of the fields before it.
pub fn extend(
    graph: &mut Graph,
    program: &Program,
    parts: &[Part],
    updates: &[&str],
    values: &BTreeMap<&str, usize>,
) -> Result<Vec<usize>, Error> {
    let value = |field: &str| {
        let value = values.get(field).copied();
        value.ok_or_else(|| Error::internal(format!("no tile of @{field} reaches an apply")))
    };
    let here = vec![0; program.grid_of(updates.first().copied().unwrap_or_default())?.rank()];
    let mut partial: Vec<usize> = Vec::new();
    for part in parts {
        let operation = graph.values.last().map_or(0, |value| value.operation + 1);
        for (field, offset) in &part.reads {
            graph.reads.push(Read { operation, value: value(field)?, offset: offset.clone() });
        }
        for value in partial {
            graph.reads.push(Read { operation, value, offset: here.clone() });
        }
        for field in updates.iter().filter(|_| part.keeps == Keeps::Old) {
            // A temp field has no value before it is made.
            if values.contains_key(field) || program.field(field)?.role != Role::Temp {
                graph.reads.push(Read { operation, value: value(field)?, offset: here.clone() });
            }
        }
        partial = Vec::new();
        for field in updates {
            partial.push(graph.values.len());
            graph.values.push(Value { operation, words: words(program, field)? });
        }
    }
    Ok(partial)
}

fn words(program: &Program, field: &str) -> Result<i64, Error> {
    Ok(lanes::words(program.field(field)?.element))
}
