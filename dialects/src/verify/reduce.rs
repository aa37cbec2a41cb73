//! Reductions and the condition of a run: each has a cell, a function, and cells to read.

use super::at;
use super::bounds::reads_inside;
use super::point_function::{self, Purpose};
use crate::attribute;
use crate::error::Error;
use crate::limits::EVERY;
use crate::mlir;
use crate::stencil::{Apply, Combine, Program, Reduce, Role};
use melior::ir::TypeLike;

/// Verifies every `stencil.reduce`, the fields of their values, and `stencil.until`.
pub(super) fn verify(program: &Program, errors: &mut Vec<Error>) {
    for reduce in &program.reduces {
        errors.extend(verify_reduce(program, reduce).err());
    }
    for field in program.fields.iter().filter(|field| field.role.is_reduced()) {
        let own = program.reduces.iter().filter(|reduce| reduce.field == field.name);
        // A tiled program has its reductions in the schedule, and a lowered one has none left.
        if own.clone().count() > 1 {
            let message = format!("@{} has two stencil.reduce; leave one out", field.name);
            errors.push(at(field.op, message));
        }
        let grid = program.grid_of(field.name).ok();
        let one = grid.is_some_and(|grid| grid.rank() == 1 && grid.lower == grid.upper);
        if !one || field.boundary.is_some() {
            let message = format!(
                "@{} holds one value: its grid is one point along one dimension, and it has no \
                 boundary rule",
                field.name
            );
            errors.push(at(field.op, message));
        }
    }
    for field in program.fields.iter().filter(|field| field.initial.is_some()) {
        let declared = mlir::attribute(field.op, "type").and_then(attribute::as_type);
        let found = field.initial.and_then(attribute::type_of_number);
        if !field.role.is_reduced() || found != declared {
            let message = "stencil.initial is a number of the type of a reduction's field";
            errors.push(at(field.op, message));
        }
    }
    if let Some(until) = &program.until {
        let field = program.fields.iter().find(|field| field.name == until.condition);
        if field.is_none_or(|field| field.role != Role::Condition) {
            let message = format!("@{} is no field of the role \"condition\"", until.condition);
            errors.push(at(until.op, message));
        }
        let own = |reduce: &&Reduce| reduce.field == until.condition;
        let last = program.reduces.last();
        if let Some(reduce) = program.reduces.iter().find(own)
            && (reduce.place < program.applies.len() || last.is_some_and(|last| !own(&last)))
        {
            let message = format!(
                "the reduction of the condition @{} is the last operation of a step; move it \
                 behind all stencil.apply and stencil.reduce",
                until.condition
            );
            errors.push(at(reduce.op, message));
        }
        if !(1..=EVERY).contains(&until.every) {
            let message = format!("every is from 1 to {EVERY}, not {}", until.every);
            errors.push(at(until.op, message));
        }
    }
}

fn verify_reduce(program: &Program, reduce: &Reduce) -> Result<(), Error> {
    let field = program.field(reduce.field).map_err(|error| at(reduce.op, error.message))?;
    if !field.role.is_reduced() {
        let message = format!(
            "@{} can hold no reduction; give it the role \"reduction\" or \"condition\"",
            field.name
        );
        return Err(at(reduce.op, message));
    }
    if field.role == Role::Condition && field.element.to_string() != "i32" {
        return Err(at(reduce.op, "a condition is an i32: 0, or another number where it holds"));
    }
    if reduce.combine == Combine::All && !field.element.is_integer() {
        return Err(at(reduce.op, "\"all\" combines integers, which are 0 or 1"));
    }
    let piece = program.reduced(reduce)?;
    let rank = piece.lower.result_count();
    let purpose = Purpose::Reduction(field, rank);
    point_function::verify(program, reduce.op, reduce.function, &purpose)?;
    let apply =
        Apply { op: reduce.op, updates: Vec::new(), pieces: Vec::new(), repeats: Vec::new() };
    reads_inside(program, &apply, &piece, &[])
}
