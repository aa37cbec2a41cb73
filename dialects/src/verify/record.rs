//! Fields that are numbers of structs or vecs: they lie beside each other in the cells. In arrays
//! of structs they are alike, too, and fill the cells.

use super::at;
use crate::error::Error;
use crate::mlir;
use crate::stencil::{Field, Layout, Program, Record, Role};

/// Checks the fields with a layout.
pub(super) fn verify(program: &Program, errors: &mut Vec<Error>) {
    let has_layout = |field: &&Field| field.layout.is_some();
    for field in program.fields.iter().filter(has_layout) {
        if field.member.is_none() {
            let message = "a field with stencil.layout needs stencil.member: it is a number of an \
                           array of structs";
            errors.push(at(field.op, message));
        }
    }
    for field in program.fields.iter().filter(|field| field.layout.is_none() && field.block > 1) {
        let message = "a field with stencil.block needs stencil.layout: its block is that of an \
                       array of structs";
        errors.push(at(field.op, message));
    }
    let is_lone =
        |field: &&Field| field.kernel_block.is_some() && field.layout != Some(Layout::Relaid);
    for field in program.fields.iter().filter(is_lone) {
        let message = "a field with stencil.kernel_block needs stencil.layout = \"relaid\": \
                       kernels use its blocks in place of structs";
        errors.push(at(field.op, message));
    }
    errors.extend(program.fields.iter().filter_map(|field| lies(program, field).err()));
    errors.extend(program.records().iter().filter_map(|record| fits(program, record).err()));
}

/// Checks the place of a number in the cell that it is a part of.
fn lies(program: &Program, field: &Field) -> Result<(), Error> {
    let Some(member) = field.member else { return Ok(()) };
    let wrong = |message: String| Err(at(field.op, message));
    let end = |field: &Field, offset: i64| {
        let bytes = i64::from(mlir::bit_width(field.element).unwrap_or(0).div_ceil(8));
        offset.saturating_add(bytes)
    };
    let (name, last) = (member.field, end(field, member.offset));
    if member.offset < 0 || last > member.size {
        return wrong(format!(
            "the number @{} of @{name} has bytes {} to {last} of cells of {} bytes",
            field.name, member.offset, member.size
        ));
    }
    let before = program.fields.iter().take_while(|other| other.name != field.name);
    for other in before {
        let Some(one) = other.member.filter(|one| one.field == name) else { continue };
        if (one.size, other.grid, other.role) != (member.size, field.grid, field.role) {
            return wrong(format!(
                "the numbers @{} and @{} of @{name} differ in the size of cells, the grid or the \
                 role",
                other.name, field.name
            ));
        }
        if one.offset < last && member.offset < end(other, one.offset) {
            return wrong(format!(
                "the numbers @{} and @{} of @{name} lie on the same bytes",
                other.name, field.name
            ));
        }
    }
    Ok(())
}

fn fits(program: &Program, record: &Record) -> Result<(), Error> {
    let Some(first) = record.numbers.first() else { return Ok(()) };
    let name = record.name;
    let whole = |field: &&Field| field.member.is_some_and(|member| member.field == name);
    let all = program.fields.iter().filter(whole).count();
    let bytes = record.number_bytes();
    let size = i64::try_from(all).unwrap_or(i64::MAX).saturating_mul(bytes);
    for (place, field) in record.numbers.iter().enumerate() {
        let wrong = |message: String| Err(at(field.op, message));
        let alike = |one: &Field| (one.layout, one.block, one.kernel_block, one.unsigned);
        if alike(field) != alike(first)
            || (field.element, field.grid, field.role) != (first.element, first.grid, first.role)
        {
            return wrong(format!(
                "the array of structs @{name} needs numbers of one layout, block, type, grid and \
                 role; @{} and @{} differ",
                first.name, field.name
            ));
        }
        if !matches!(field.role, Role::State | Role::Const) {
            return wrong(format!("@{} has a layout, and is no state or const field", field.name));
        }
        let begins = i64::try_from(place).unwrap_or(i64::MAX).saturating_mul(bytes);
        if field.member.is_some_and(|member| (member.offset, member.size) != (begins, size)) {
            return wrong(format!(
                "the {all} numbers of the array of structs @{name} need the offsets 0, {bytes}, \
                 ... in cells of {size} bytes, and each needs stencil.layout"
            ));
        }
    }
    if program.declares(name) {
        return Err(at(first.op, format!("@{name} is a declaration and an array of structs")));
    }
    match mlir::bit_width(first.element) {
        Some(bits) if bits % 8 == 0 => Ok(()),
        _ => Err(at(first.op, format!("numbers of {} can't lie side by side", first.element))),
    }
}
