//! `split-sums`: computes weighted sums over several planes one plane at a time, as the planes
//! arrive.
//!
//! A stream that reads a box holds all planes of its footprint, with what lies beside the point in
//! each. Cut into parts, each of which adds the terms of one plane, it holds a partial result for
//! each plane but the last, and cells beside the point of the newest plane alone. The operations
//! and their order stay as they are, and so do the results, but for which products are contracted
//! into which sums.
//!
//! Needs: tile kernels. Guarantees: in those of strategy `stream`, an apply that takes fewer
//! registers in parts (`analysis/partial_sums`) is one apply a part; each but the first goes on
//! with the result of the one before, by `tiled.partial`. Without a piece, the first part that
//! reads the point's plane or a later one returns the old value; later parts pass it on. Each part
//! has the main piece of the whole, where `split-interior` has picked one. Other kernels stay as
//! they are. Declines, and leaves alone: functions of several fields, fields with
//! boundary rules.
//!
//! ```text
//! %1 = "tiled.apply"(%0) {reads = [@A], pieces = [{function = @box, ...}], ...}
//! ```
//! becomes, for sums over three planes,
//! ```text
//! %1 = "tiled.apply"(%0) {pieces = [{function = @box.0, ...}], tiled.keeps = "nothing", ...}
//! %2 = "tiled.apply"(%0, %1) {pieces = [{function = @box.1, ...}], tiled.partial, ...}
//! %3 = "tiled.apply"(%0, %2) {pieces = [{function = @box.2, ...}], tiled.partial, tiled.keeps = "partial", ...}
//! ```

use crate::analysis::partial_sums::{self, Planes};
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::strategies;
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{Module, Type, ValueLike};
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::stencil::{self, Argument, Piece, Program};
use stencil_dialects::tiled::{self, Apply, Schedule};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "split-sums",
    summary: "compute sums over several planes of a stream one plane at a time",
    options: &[],
    read: |_: &Options| Ok(Box::new(SplitSums)),
};

/// The pass.
pub struct SplitSums;

impl Pass for SplitSums {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        run(context, module)
    }
}

fn run<'c>(context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
    let program = Program::read(module)?;
    let mut made = BTreeMap::new();
    let subject = Subject::of(module, &program)?;
    for kernel in &tiled::kernels(module)? {
        let mut replaced = Vec::new();
        let mut mains = Vec::new();
        for apply in kernel.applies() {
            let builder = Builder::new(context, apply.op.location(), mlir::body(module));
            let found = split(&builder, &subject, (&kernel.schedule, apply), &mut made)?;
            let parts = found.map_or(1, |(parts, _)| parts);
            if let Some(main) = &apply.main {
                let place = (0..).zip(&apply.pieces).find(|(_, piece)| *piece == main);
                mains.extend(vec![place.map_or(0, |(place, _)| place); parts]);
            }
            replaced.extend(found.map(|(_, result)| (apply, result)));
        }
        if kernel.split {
            let builder = Builder::new(context, kernel.op.location(), mlir::body(module));
            tiled::set_interior(&builder, kernel.op, &mains);
        }
        // Once all are made, for one may read what another gives.
        for (apply, result) in &replaced {
            for (_, output) in &apply.outputs {
                mlir::replace_uses(*output, *result);
            }
        }
        for (apply, _) in replaced {
            mlir::erase(apply.op);
        }
    }
    Ok(())
}

/// The functions of parts: what they are a part of, the cuts, and their number.
type Made<'c> = BTreeMap<(&'c str, Vec<i64>, usize), &'c str>;

/// Puts the parts of an apply before it, if it has several; their number, and the result of the
/// last.
fn split<'c>(
    builder: &Builder<'c>,
    subject: &Subject<'c, '_>,
    (schedule, apply): (&Schedule, &Apply<'c>),
    made: &mut Made<'c>,
) -> Result<Option<(usize, Val<'c>)>, Error> {
    let (module, program) = (subject.module, subject.program);
    let updates: Vec<&str> = apply.outputs.iter().map(|(field, _)| *field).collect();
    let strategy = strategies::named(&schedule.strategy)?;
    let cuts = strategy.sum_cuts(subject, schedule, &updates, &apply.pieces)?;
    let (&[updated], false) = (updates.as_slice(), cuts.is_empty()) else { return Ok(None) };
    let element = program.field(updated)?.element;
    let mut partial = None;
    let parts = partial_sums::parts(program, &apply.pieces, &cuts)?;
    for (number, part) in parts.iter().enumerate() {
        let mut pieces = Vec::new();
        for piece in &apply.pieces {
            let key = (piece.function, cuts.clone(), number);
            let function = match made.get(&key) {
                Some(function) => *function,
                None => {
                    let name =
                        stencil::unused_name(module, &format!("{}.{number}", piece.function));
                    let part = of_part(builder, module, piece, &name, element, (number, &cuts))?;
                    let name = stencil::function_name(part)?;
                    made.insert(key, name);
                    name
                }
            };
            pieces.push(Piece { function, ..*piece });
        }
        let op = tiled::apply_in_part(builder, apply, &pieces, partial, part.keeps)?;
        mlir::move_before(op, apply.op);
        partial = mlir::results(op).first().copied();
    }
    Ok(partial.map(|partial| (parts.len(), partial)))
}

/// Makes the function of a part: what the whole function does behind one cut up to the next.
fn of_part<'c>(
    builder: &Builder<'c>,
    module: &Module<'c>,
    piece: &Piece<'c>,
    name: &str,
    element: Type<'c>,
    (number, cuts): (usize, &[i64]),
) -> Result<Op<'c>, Error> {
    let whole = stencil::function(module, piece.function)?;
    let planes = Planes::of(whole)?;
    let (before, last) =
        (number.checked_sub(1).and_then(|at| cuts.get(at)).copied(), cuts.get(number).copied());
    let entering = before.map_or(Vec::new(), |plane| planes.crossing(plane));
    let body = mlir::operations(stencil::function_body(whole)?);
    let read: BTreeSet<usize> = body
        .iter()
        .filter(|op| planes.is_within(**op, before, last))
        .flat_map(|op| mlir::walk(*op))
        .flat_map(mlir::operands)
        .map(mlir::key)
        .collect();
    let mut arguments = stencil::arguments_with_values(whole)?;
    arguments.retain(|(argument, value)| {
        !matches!(argument, Argument::Read { .. }) || read.contains(&mlir::key(*value))
    });
    arguments.extend(entering.iter().map(|value| (Argument::Partial, *value)));
    let types: Vec<_> =
        arguments.iter().map(|(argument, value)| (argument.clone(), value.r#type())).collect();
    let builder = &Builder { location: whole.location(), ..*builder };
    let (op, entry) = stencil::point_function(builder, name, &types, &[element])?;
    mlir::move_before(op, whole);
    let mut map: BTreeMap<usize, Val<'c>> =
        arguments.iter().map(|(_, value)| mlir::key(*value)).zip(mlir::arguments(entry)).collect();
    let wanted =
        |op: &Op<'c>| planes.of_operation(*op).is_none() || planes.is_within(*op, before, last);
    let (terminator, rest) =
        body.split_last().ok_or_else(|| Error::internal("a function without a return"))?;
    for op in rest.iter().filter(|op| wanted(op)) {
        mlir::copy_to(*op, entry, &mut map);
    }
    let results = match last {
        Some(plane) => planes.crossing(plane),
        None => mlir::operands(*terminator),
    };
    let at = builder.at(entry);
    let result = match results.first() {
        Some(value) => map
            .get(&mlir::key(*value))
            .copied()
            .ok_or_else(|| Error::internal("a value of no part"))?,
        // Nothing is computed yet.
        None => at.zero(element)?,
    };
    at.op("func.return", &[result], &[], &[])?;
    Ok(op)
}
