//! Where a point function can be cut into parts, each of which reads one plane.
//!
//! A *plane* is what a grid has at one coordinate of its slowest dimension. A weighted sum over a
//! box adds the terms of one plane after those of another, so what it has after the last term of a
//! plane is all that the rest of it needs. Computed as the planes arrive, it holds one value for
//! each plane of its footprint but one, where it would hold the planes with all that lies beside
//! the point in them.

use crate::analysis::footprint;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::stencil::{self, Argument, Piece, Program};
use stencil_dialects::tiled::Keeps;

const RETURN: &str = "func.return";

/// A part of an apply: it reads planes up to one, and those behind the part before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<'c> {
    /// What it reads: field and offset.
    pub reads: BTreeSet<(&'c str, Vec<i64>)>,
    /// What its result is where no piece lies.
    pub keeps: Keeps,
}

/// The order of a function's operations by the planes that they need.
pub struct Planes<'c> {
    /// For each value that depends on cells the last plane of them.
    last: BTreeMap<usize, i64>,
    body: Vec<Op<'c>>,
}

impl<'c> Planes<'c> {
    /// Those of a point function.
    pub fn of(function: Op<'c>) -> Result<Self, Error> {
        let mut last = BTreeMap::new();
        for (argument, value) in stencil::arguments_with_values(function)? {
            if let Argument::Read { offset, .. } = argument {
                last.insert(mlir::key(value), offset.first().copied().unwrap_or(0));
            }
        }
        let body = mlir::operations(stencil::function_body(function)?);
        for op in &body {
            if let Some(plane) =
                used(*op).filter_map(|operand| last.get(&mlir::key(operand)).copied()).max()
            {
                last.extend(
                    mlir::results(*op).into_iter().map(|result| (mlir::key(result), plane)),
                );
            }
        }
        Ok(Self { last, body })
    }

    /// The last plane that an operation needs; none for what needs no cell, and for the function's
    /// return.
    pub fn of_operation(&self, op: Op<'c>) -> Option<i64> {
        match mlir::results(op).first() {
            Some(result) => self.of_value(*result),
            None if mlir::name(op) == RETURN => None,
            // A branch whose value nobody uses, with an absolute read in it.
            None => used(op).filter_map(|operand| self.of_value(operand)).max(),
        }
    }

    /// The last plane of a value; none for one that needs no cell.
    pub fn of_value(&self, value: Val<'c>) -> Option<i64> {
        self.last.get(&mlir::key(value)).copied()
    }

    /// What operations up to a plane make and later ones use.
    pub fn crossing(&self, plane: i64) -> Vec<Val<'c>> {
        let early = |op: &Op<'c>| self.of_operation(*op).is_some_and(|last| last <= plane);
        let made: BTreeSet<usize> = self
            .body
            .iter()
            .filter(|op| early(op))
            .flat_map(|op| mlir::results(*op))
            .map(mlir::key)
            .collect();
        let mut crossing: Vec<Val<'c>> = Vec::new();
        for op in self.body.iter().filter(|op| !early(op)) {
            for operand in used(*op).filter(|operand| made.contains(&mlir::key(*operand))) {
                if !crossing.iter().any(|known| mlir::key(*known) == mlir::key(operand)) {
                    crossing.push(operand);
                }
            }
        }
        crossing
    }

    /// Whether an operation belongs to the part behind one cut up to another. The function's return
    /// is in the last part; what needs no cell is in none, since each part has its own.
    pub fn is_within(&self, op: Op<'c>, before: Option<i64>, last: Option<i64>) -> bool {
        if mlir::name(op) == RETURN {
            return last.is_none();
        }
        let plane = self.of_operation(op);
        plane.is_some_and(|plane| {
            before.is_none_or(|before| plane > before) && last.is_none_or(|last| plane <= last)
        })
    }
}

/// The operands of an operation and of all in its regions.
fn used<'c>(op: Op<'c>) -> impl Iterator<Item = Val<'c>> {
    mlir::walk(op).into_iter().flat_map(mlir::operands)
}

/// The parts of an apply that is cut after some planes, in their order; one part for no cuts.
pub fn parts<'c>(
    program: &Program<'c>,
    pieces: &[Piece<'c>],
    cuts: &[i64],
) -> Result<Vec<Part<'c>>, Error> {
    let reads = footprint::of_pieces(program, pieces)?;
    let reads =
        reads.iter().flat_map(|read| read.offsets().into_iter().map(|offset| (read.field, offset)));
    let all: BTreeSet<_> = reads.collect();
    if cuts.is_empty() {
        return Ok(vec![Part { reads: all, keeps: Keeps::Old }]);
    }
    let mut functions = Vec::new();
    for piece in pieces {
        let function = program.function(piece.function)?;
        let named: BTreeMap<usize, Argument> = stencil::arguments_with_values(function)?
            .into_iter()
            .map(|(argument, value)| (mlir::key(value), argument))
            .collect();
        functions.push((Planes::of(function)?, named));
    }
    let mut parts = Vec::new();
    let mut old = false;
    for number in 0..=cuts.len() {
        let (last, before) =
            (cuts.get(number).copied(), number.checked_sub(1).and_then(|at| cuts.get(at)).copied());
        let mut reads = BTreeSet::new();
        for (planes, named) in &functions {
            for op in planes.body.iter().filter(|op| planes.is_within(**op, before, last)) {
                for operand in used(*op) {
                    if let Some(Argument::Read { field, offset }) = named.get(&mlir::key(operand)) {
                        reads.insert((*field, offset.clone()));
                    }
                }
            }
        }
        let keeps = match (old, last) {
            (true, _) => Keeps::Partial,
            (false, Some(last)) if last < 0 => Keeps::Nothing,
            (false, _) => Keeps::Old,
        };
        old |= keeps == Keeps::Old;
        parts.push(Part { reads, keeps });
    }
    Ok(parts)
}
