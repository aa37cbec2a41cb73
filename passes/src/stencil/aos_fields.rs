//! `aos-fields`: a run is given its fields of structs and vecs as arrays of structs.
//!
//! Needs: a stencil program. Guarantees: the state and const fields of each declared field of
//! structs or vecs have `stencil.layout = "aos"`, where their numbers are of one type and fill the
//! cells. `coalesce-relayout` and `interleave-records` make memory of that.
//!
//! ```text
//! "stencil.field"() {sym_name = "F.0", stencil.member = {field = "F", offset = 0, size = 36}, ...}
//! ```
//! becomes
//! ```text
//! "stencil.field"() {sym_name = "F.0", stencil.layout = "aos",
//!                    stencil.member = {field = "F", offset = 0, size = 36}, ...}
//! ```
//!
//! With `cells=32` they have `stencil.block = 32` as well: the numbers of 32 cells lie side by
//! side.
//!
//! Declines, with a note at the first field: numbers of several types, one number alone, and gaps.

use crate::options::Options;
use crate::pass::{Info, Pass};
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::{
    Field, Layout, Program, Role, is_program, set_block, set_layout, set_layout_note,
};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "aos-fields",
    summary: "take fields of structs and vecs as arrays of structs",
    options: &[("cells", "cells whose numbers lie side by side, a power of two, by default 1")],
    read: |options: &Options| {
        let block = options.power_of_two("cells", 1..=1024)?.unwrap_or(1);
        Ok(Box::new(AosFields { block }))
    },
};

/// The pass.
#[derive(Clone, Copy, Debug)]
pub struct AosFields {
    /// Cells whose numbers lie side by side, a power of two; 1 is an array of structs.
    pub block: i64,
}

impl Pass for AosFields {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        (self.block > 1).then(|| ("cells", self.block.to_string())).into_iter().collect()
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        Ok(is_program(module))
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let program = Program::read(module)?;
        let is_open = |field: &&Field| {
            field.layout.is_none() && matches!(field.role, Role::State | Role::Const)
        };
        let members: Vec<&Field> = program.fields.iter().filter(is_open).collect();
        for field in &members {
            let Some(member) = field.member.filter(|member| member.offset == 0) else { continue };
            let own = |other: &&&Field| other.member.is_some_and(|one| one.field == member.field);
            let numbers: Vec<&Field> = members.iter().filter(own).copied().collect();
            let builder = Builder::new(context, field.op.location(), mlir::body(module));
            let taken = program.declares(member.field);
            match obstacle(&numbers, member.size, taken) {
                Some(reason) => set_layout_note(&builder, field.op, reason),
                None => {
                    for one in numbers {
                        set_layout(&builder, one.op, Layout::Aos);
                        if self.block > 1 {
                            set_block(&builder, one.op, self.block);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Why fields can't be an array of structs; none where they can.
fn obstacle(numbers: &[&Field], size: i64, taken: bool) -> Option<&'static str> {
    let first = numbers.first()?;
    let kind = |field: &Field| (field.element.to_string(), field.unsigned);
    if numbers.len() < 2 {
        return Some("a cell has one number");
    }
    if taken {
        return Some("a field, a scalar or a param has its name");
    }
    if numbers.iter().any(|field| kind(field) != kind(first)) {
        return Some("its numbers are of several types");
    }
    let bytes = i64::from(mlir::bit_width(first.element).unwrap_or(0) / 8);
    let begins = (0..).map(|place: i64| place * bytes);
    let offsets = numbers.iter().map(|field| field.member.map(|member| member.offset));
    let fills = bytes * i64::try_from(numbers.len()).unwrap_or(0) == size;
    (!fills || !offsets.eq(begins.take(numbers.len()).map(Some))).then_some("its cells have gaps")
}
