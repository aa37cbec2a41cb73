//! Reductions as functions for a processor, in the order of the language.
//!
//! A tile is a block of points, or all results of the blocks. Reductions over one box share a
//! function. Its points go to the lanes in turn, and the halves of the lanes are combined at the
//! end, as `lower_reduce.rs` has it for a GPU. Points of one row that go to neighbouring lanes form
//! the innermost loop; LLVM computes it in vectors.
//!
//! ```text
//! func.func @reduce_worst(%A, %partials, ..., %tile: index, %memory: memref<i8>) {
//!   lanes[0 to 256] = neutral
//!   for 256 points of block %tile at a time, and for each row among them {
//!     for their points in the row { lanes[number mod 256] = max(lanes[...], f(point)) }
//!   }
//!   for half = 128, 64, ..., 1 { lanes[0 to half] = max(lanes[...], lanes[half to 2 half]) }
//!   partials[%tile] = lanes[0]
//! }
//! ```

use super::block::{self, Operator};
use super::lower_reduce::{BLOCK, Lowering, THREADS};
use super::partials::{self, LANES};
use super::points::Points;
use crate::analysis::hull::Hull;
use crate::kernel::cut;
use crate::kernel::host_function::{self, HostFunction};
use crate::kernel::scope::Scope;
use crate::kernel::signature::Signature;
use melior::ir::AffineExpr;
use melior::ir::r#type::MemRefType;
use std::collections::BTreeSet;
use stencil_dialects::affine::symbolic;
use stencil_dialects::builder::{Builder, Named};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::Piece;
use stencil_dialects::tiled::{self, Binding};

/// The values of a reduction's lanes, in the thread's memory.
struct Lanes<'c> {
    operator: Operator<'c>,
    memory: Val<'c>,
    count: i64,
}

/// Builds the function that combines the points of each block; `alone` where there is one block,
/// whose results are those of the whole box.
pub fn over_points<'c>(
    lowering: &Lowering<'c, '_>,
    name: &str,
    (pieces, piece): (&[Piece<'c>], &Piece<'c>),
    alone: bool,
) -> Result<(), Error> {
    let subject = lowering.subject;
    let program = subject.program;
    let reductions = lowering.reductions()?;
    let fields: Vec<&str> = reductions.iter().map(|(field, _)| *field).collect();
    let bindings = partials::over_points(program, &lowering.read()?, &fields, alone);
    let rank = piece.lower.result_count();
    let mut shape = vec![1; rank];
    if let Some(last) = shape.last_mut() {
        *last = BLOCK;
    }
    let schedule = partials::schedule(shape, vec![1; rank]);
    let axes = lowering.axes(piece.lower, piece.upper)?;
    let made = build(lowering, name, bindings, THREADS, |outer| {
        let mut attributes = tiled::axes_attributes(outer, &axes, [1; 3], &schedule);
        attributes.push(tiled::block_points_attribute(outer, BLOCK));
        let of_box = (piece.lower, piece.upper);
        attributes.push(cut::of_points(outer, subject, pieces, of_box, BLOCK)?);
        Ok(attributes)
    })?;
    let builder = &made.builder;
    let step = builder.add_constant(made.arguments.step, -i64::from(lowering.counted))?;
    let hull = Hull { lower: piece.lower, upper: piece.upper, alike: true, tight: true };
    let scope = Scope { step, ..made.scope(subject, hull) };
    let points = Points::new(builder, &scope, pieces, &made.arguments.sources, 1)?;
    let lanes = lanes(lowering, &made, THREADS)?;
    let tile = tile(&made)?;
    let first = builder.multiply_constant(tile, BLOCK)?;
    points.each(builder, (first, BLOCK), THREADS, |builder, lane, values| {
        let mut all = lanes.iter().zip(values);
        all.try_for_each(|(lanes, value)| lanes.take(builder, lane, *value))
    })?;
    for (lanes, field) in lanes.iter().zip(&fields) {
        let result = lanes.halve(builder)?;
        if alone {
            let neutral = lanes.operator.neutral(builder)?;
            let value = lanes.operator.combine(builder, neutral, result)?;
            partials::store(builder, &made.arguments, field, value)?;
        } else {
            let count = points.blocks(builder, BLOCK)?;
            let results = block::view(builder, partials::buffer(&made.arguments, field)?, count)?;
            builder.store(result, results, &[tile])?;
        }
    }
    made.finish(&scope)
}

/// Builds the function that combines the results of the blocks.
pub fn over_blocks<'c>(
    lowering: &Lowering<'c, '_>,
    name: &str,
    (pieces, piece): (&[Piece<'c>], &Piece<'c>),
) -> Result<(), Error> {
    let Lowering { context, subject, .. } = *lowering;
    let program = subject.program;
    let reductions = lowering.reductions()?;
    let fields: Vec<&str> = reductions.iter().map(|(field, _)| *field).collect();
    let mut bindings = partials::fields_first(program, &BTreeSet::new(), &fields);
    bindings.extend(fields.iter().map(|field| Binding::Partials(field)));
    let schedule = partials::schedule(vec![LANES], vec![1]);
    let one = symbolic(context, program.params.len(), &[AffineExpr::constant(context, 1)]);
    let made = build(lowering, name, bindings, LANES, |outer| {
        Ok(tiled::launch_attributes(outer, (one, None), [1; 3], &schedule))
    })?;
    let builder = &made.builder;
    let hull = Hull { lower: piece.lower, upper: piece.upper, alike: true, tight: true };
    let scope = made.scope(subject, hull);
    let points = Points::new(builder, &scope, pieces, &made.arguments.sources, 1)?;
    let count = points.blocks(builder, BLOCK)?;
    let bounds = (builder.index(0)?, count, builder.index(1)?);
    for (lanes, field) in lanes(lowering, &made, LANES)?.iter().zip(&fields) {
        let results = block::view(builder, partials::buffer(&made.arguments, field)?, count)?;
        builder.repeat(bounds, |builder, number| {
            let value = builder.load(results, &[number])?;
            let lane = builder.binary("arith.andi", number, builder.index(LANES - 1)?)?;
            lanes.take(builder, lane, value)
        })?;
        partials::store(builder, &made.arguments, field, lanes.halve(builder)?)?;
    }
    made.finish(&scope)
}

/// A function with memory for so many lanes of each reduction.
fn build<'c>(
    lowering: &Lowering<'c, '_>,
    name: &str,
    bindings: Vec<Binding<'c>>,
    lanes: i64,
    attributes: impl FnOnce(&Builder<'c>) -> Result<Vec<Named<'c, 'static>>, Error>,
) -> Result<HostFunction<'c>, Error> {
    let Lowering { context, subject, .. } = *lowering;
    let outer = host_function::container(context, subject.module, lowering.location())?;
    let signature = Signature::of_bindings(&outer, subject.program, bindings)?;
    let (others, attributes) = (host_function::tile_arguments(&outer), attributes(&outer)?);
    let made = host_function::build(&outer, subject, name, (&signature, &others), &attributes)?;
    let bytes = places(&lowering.reductions()?, lanes).1;
    tiled::set_dynamic_shared(&outer, made.op, bytes);
    Ok(made)
}

/// The first bytes of so many lanes of each reduction, and the bytes of all. The widest lie first:
/// every value is aligned.
fn places(reductions: &[(&str, Operator)], count: i64) -> (Vec<i64>, i64) {
    let bytes = |number: usize| {
        let element = reductions.get(number).map(|(_, operator)| operator.element);
        count * i64::from(element.and_then(mlir::bit_width).unwrap_or(64).div_ceil(8))
    };
    let mut order: Vec<usize> = (0..reductions.len()).collect();
    order.sort_by_key(|number| std::cmp::Reverse(bytes(*number)));
    let (mut places, mut end) = (vec![0; reductions.len()], 0);
    for number in order {
        if let Some(place) = places.get_mut(number) {
            *place = end;
        }
        end += bytes(number);
    }
    (places, end)
}

/// The values of a function's lanes, all neutral, for each reduction.
fn lanes<'c>(
    lowering: &Lowering<'c, '_>,
    made: &HostFunction<'c>,
    count: i64,
) -> Result<Vec<Lanes<'c>>, Error> {
    let builder = &made.builder;
    let reductions = lowering.reductions()?;
    let memory = made.others.get(1).copied();
    let memory = memory.ok_or_else(|| Error::internal("a function without memory"))?;
    let (places, bytes) = places(&reductions, count);
    let all = host_function::memory(builder, memory, bytes)?;
    let lanes = reductions.iter().zip(places).map(|((_, operator), place)| {
        let ty = MemRefType::new(operator.element, &[count], None, None);
        let place = builder.index(place)?;
        let memory = builder.value("memref.view", &[all, place], ty.into(), &[])?;
        Ok(Lanes { operator: *operator, memory, count })
    });
    let lanes = lanes.collect::<Result<Vec<Lanes>, Error>>()?;
    let bounds = (builder.index(0)?, builder.index(count)?, builder.index(1)?);
    for lanes in &lanes {
        let neutral = lanes.operator.neutral(builder)?;
        builder.repeat(bounds, |builder, lane| builder.store(neutral, lanes.memory, &[lane]))?;
    }
    Ok(lanes)
}

impl<'c> Lanes<'c> {
    /// Combines a value with that of a lane.
    fn take(&self, builder: &Builder<'c>, lane: Val<'c>, value: Val<'c>) -> Result<(), Error> {
        let before = builder.load(self.memory, &[lane])?;
        builder.store(self.operator.combine(builder, before, value)?, self.memory, &[lane])
    }

    /// Combines the upper half of the lanes with the lower one, until one lane is left.
    fn halve(&self, builder: &Builder<'c>) -> Result<Val<'c>, Error> {
        let (zero, one) = (builder.index(0)?, builder.index(1)?);
        let mut half = self.count / 2;
        while half > 0 {
            builder.repeat((zero, builder.index(half)?, one), |builder, lane| {
                let above = builder.add_constant(lane, half)?;
                let first = builder.load(self.memory, &[lane])?;
                let second = builder.load(self.memory, &[above])?;
                let both = self.operator.combine(builder, first, second)?;
                builder.store(both, self.memory, &[lane])
            })?;
            half /= 2;
        }
        builder.load(self.memory, &[zero])
    }
}

/// The number of the tile that a function computes.
fn tile<'c>(made: &HostFunction<'c>) -> Result<Val<'c>, Error> {
    made.others.first().copied().ok_or_else(|| Error::internal("a function without a tile"))
}
