//! The operations of a tile kernel in their order, steps that are alike in a loop.

use super::cells::{LaneSegment, RimSpans, StepApply};
use crate::kernel::frame::Frame;
use melior::ir::operation::OperationLike;
use std::collections::BTreeMap;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::tiled::{Apply, Kernel, TileOp};

/// The lane's cells of tile values, by [`mlir::key`].
type State<'c> = BTreeMap<usize, Vec<Val<'c>>>;
/// An apply with its place in the kernel.
type Placed<'c, 'k> = (usize, &'k Apply<'c>);

/// Builds the kernel for one lane; `unroll` is the number of steps in a loop's body, and `checked`
/// says whether cells may lie outside the grid or a piece.
pub fn run<'c>(
    cells: &LaneSegment<'c, '_>,
    builder: &Builder<'c>,
    unroll: i64,
    checked: bool,
) -> Result<(), Error> {
    let rim_spans = if checked { Some(cells.rim_spans(builder)?) } else { None };
    let lane = Lane { cells, rim_spans };
    let unroll = usize::try_from(unroll).unwrap_or(1);
    let body = &cells.kernel.body;
    let looped = takes_newest(cells.kernel);
    let mut state = State::new();
    let mut place = 0;
    while let Some(op) = body.get(place) {
        place += match op {
            TileOp::Load { op, field, tile } => {
                let builder = &Builder { location: op.location(), ..*builder };
                let loaded = cells.load(builder, place, field, lane.rim_spans.as_ref())?;
                state.insert(mlir::key(*tile), loaded);
                1
            }
            TileOp::Store { op, field, tile } => {
                let builder = &Builder { location: op.location(), ..*builder };
                cells.store(
                    builder,
                    place,
                    field,
                    held(&state, *tile)?,
                    lane.rim_spans.as_ref(),
                )?;
                1
            }
            TileOp::Apply(_) => {
                let steps = if looped { alike(body, place) } else { vec![step_at(body, place)] };
                lane.steps(builder, &mut state, &steps, unroll)?;
                steps.iter().map(Vec::len).sum::<usize>().max(1)
            }
        };
    }
    Ok(())
}

fn held<'s, 'c>(state: &'s State<'c>, tile: Val<'c>) -> Result<&'s [Val<'c>], Error> {
    state
        .get(&mlir::key(tile))
        .map(Vec::as_slice)
        .ok_or_else(|| Error::internal("a tile is used before it is made"))
}

struct Lane<'c, 'p> {
    cells: &'p LaneSegment<'c, 'p>,
    rim_spans: Option<RimSpans<'c>>,
}

impl<'c> Lane<'c, '_> {
    /// Steps that are alike: a loop with `unroll` of them in its body, then those left over.
    fn steps(
        &self,
        builder: &Builder<'c>,
        state: &mut State<'c>,
        steps: &[Vec<Placed<'c, '_>>],
        unroll: usize,
    ) -> Result<(), Error> {
        let rounds = steps.len() / unroll;
        let looped = if rounds > 1 { rounds * unroll } else { 0 };
        let (inside, after) = steps.split_at(looped);
        if let (Some(first), Some(body), Some(last)) =
            (inside.first(), inside.get(..unroll), inside.last())
        {
            let fields = updated(first);
            let drifts = steps.get(1).map(|second| drifts(first, second)).unwrap_or_default();
            let mut initial = Vec::new();
            for (field, before) in &fields {
                initial.push(match before {
                    Some(before) => held(state, *before)?.to_vec(),
                    None => self.cells.zeros(builder, field)?,
                });
            }
            let flat: Vec<_> = initial.iter().flatten().copied().collect();
            let lengths: Vec<_> = initial.iter().map(Vec::len).collect();
            let index = |number: usize| builder.index(i64::try_from(number).unwrap_or(i64::MAX));
            let bounds = (index(0)?, index(looped)?, index(unroll)?);
            let outer: &State<'c> = state;
            let flat = builder.carry(bounds, &flat, |builder, number, carried| {
                let mut state = outer.clone();
                for ((_, before), cells) in fields.iter().zip(parts(carried, &lengths)) {
                    state.extend(before.map(|before| (mlir::key(before), cells)));
                }
                let frame = self.cells.frame.later(builder, number)?;
                for step in body {
                    self.step(&frame, builder, &mut state, step, Some((number, &drifts)))?;
                }
                let mut next = Vec::new();
                for (field, _) in &fields {
                    next.extend_from_slice(held(&state, result(body, field)?)?);
                }
                Ok(next)
            })?;
            for ((field, _), cells) in fields.iter().zip(parts(&flat, &lengths)) {
                state.insert(mlir::key(result(std::slice::from_ref(last), field)?), cells);
            }
        }
        after.iter().try_for_each(|step| self.step(self.cells.frame, builder, state, step, None))
    }

    fn step(
        &self,
        frame: &Frame<'c, '_>,
        builder: &Builder<'c>,
        state: &mut State<'c>,
        step: &[Placed<'c, '_>],
        later: Option<(Val<'c>, &[[i64; 2]])>,
    ) -> Result<(), Error> {
        for (place, (operation, apply)) in step.iter().enumerate() {
            let later = later.and_then(|(steps, drifts)| Some((steps, *drifts.get(place)?)));
            let step_apply = StepApply { operation: *operation, apply, later };
            let mut inputs = BTreeMap::new();
            for (field, tile) in &apply.inputs {
                inputs.insert(*field, held(state, *tile)?);
            }
            let outputs =
                self.cells.apply(frame, builder, &step_apply, &inputs, self.rim_spans.as_ref())?;
            for ((_, tile), cells) in apply.outputs.iter().zip(outputs) {
                state.insert(mlir::key(*tile), cells);
            }
        }
        Ok(())
    }
}

/// Cuts a list into parts of given lengths.
fn parts<'c>(values: &[Val<'c>], lengths: &[usize]) -> Vec<Vec<Val<'c>>> {
    let mut rest = values.iter().copied();
    lengths.iter().map(|length| rest.by_ref().take(*length).collect()).collect()
}

/// The fields that a step updates, each with its tile before the step if the step takes one.
fn updated<'c>(step: &[Placed<'c, '_>]) -> Vec<(&'c str, Option<Val<'c>>)> {
    let mut fields: Vec<(&str, Option<Val>)> = Vec::new();
    for (field, _) in step.iter().flat_map(|(_, apply)| &apply.outputs) {
        if !fields.iter().any(|(known, _)| known == field) {
            let first = step
                .iter()
                .position(|(_, apply)| apply.outputs.iter().any(|(name, _)| name == field));
            let until = step.iter().take(first.unwrap_or(0) + 1);
            fields.push((field, until.filter_map(|(_, apply)| apply.input(field)).next()));
        }
    }
    fields
}

/// The tile of a field after steps that update it.
fn result<'c>(steps: &[Vec<Placed<'c, '_>>], field: &str) -> Result<Val<'c>, Error> {
    let outputs = steps.iter().flatten().flat_map(|(_, apply)| &apply.outputs);
    let last = outputs.rev().find(|(name, _)| *name == field).map(|(_, tile)| *tile);
    last.ok_or_else(|| Error::internal(format!("no step updates @{field}")))
}

/// The applies of the step that begins at a place.
fn step_at<'c, 'k>(body: &'k [TileOp<'c>], place: usize) -> Vec<Placed<'c, 'k>> {
    let applies = body.iter().enumerate().skip(place).map_while(|(place, op)| match op {
        TileOp::Apply(apply) => Some((place, apply)),
        _ => None,
    });
    let mut first = None;
    applies.take_while(|(_, apply)| *first.get_or_insert(apply.step) == apply.step).collect()
}

/// The steps from a place on that do the same, one after the other.
fn alike<'c, 'k>(body: &'k [TileOp<'c>], place: usize) -> Vec<Vec<Placed<'c, 'k>>> {
    let mut steps = vec![step_at(body, place)];
    let length = steps.iter().map(Vec::len).sum::<usize>().max(1);
    loop {
        let next = step_at(body, place + steps.len() * length);
        let same = steps.last().is_some_and(|last| {
            last.len() == next.len()
                && last.iter().zip(&next).all(|((_, one), (_, other))| continues(one, other))
                && steps.get(1).is_none_or(|second| {
                    drifts(last, &next)
                        == steps.first().map(|first| drifts(first, second)).unwrap_or_default()
                })
        });
        if !same {
            return steps;
        }
        steps.push(next);
    }
}

/// By how much the first and the last computed cell of each apply move from a step to the next.
fn drifts(step: &[Placed], next: &[Placed]) -> Vec<[i64; 2]> {
    let ends = |apply: &Apply| {
        [apply.halo.lower.iter().sum::<i64>(), apply.halo.upper.iter().sum::<i64>()]
    };
    let drift = |((_, one), (_, other)): (&Placed, &Placed)| {
        let ([first, last], [next_first, next_last]) = (ends(one), ends(other));
        [next_first - first, next_last - last]
    };
    step.iter().zip(next).map(drift).collect()
}

/// Whether an apply does one step later what another does.
fn continues(one: &Apply, other: &Apply) -> bool {
    let names = |tiles: &[(&str, Val)]| {
        tiles.iter().map(|(field, _)| (*field).to_owned()).collect::<Vec<_>>()
    };
    one.main == other.main
        && one.pieces == other.pieces
        && one.step + 1 == other.step
        && names(&one.inputs) == names(&other.inputs)
        && names(&one.outputs) == names(&other.outputs)
}

/// Whether every operation takes a field's newest tile. A loop carries no others.
fn takes_newest(kernel: &Kernel) -> bool {
    let mut newest = BTreeMap::new();
    kernel.body.iter().all(|op| match op {
        TileOp::Load { field, tile, .. } => {
            newest.insert((*field).to_owned(), *tile);
            true
        }
        TileOp::Apply(apply) => {
            let takes = apply.inputs.iter().all(|(field, tile)| newest.get(*field) == Some(tile));
            newest.extend(apply.outputs.iter().map(|(field, tile)| ((*field).to_owned(), *tile)));
            takes
        }
        TileOp::Store { field, tile, .. } => newest.get(*field) == Some(tile),
    })
}
