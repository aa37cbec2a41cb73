//! Declared fields of structs and vecs that a run is given as an array of structs.

use super::{Field, Program};
use crate::attribute::{self, read_optional};
use crate::builder::Builder;
use crate::error::Error;
use crate::mlir::{self, Op};
use melior::ir::Type;
use melior::ir::operation::OperationLike;

const LAYOUT: &str = "stencil.layout";
const BLOCK: &str = "stencil.block";
const KERNEL_BLOCK: &str = "stencil.kernel_block";
const NOTE: &str = "stencil.layout_note";

/// Cells of a block at most.
const MOST_CELLS: i64 = 1024;

/// How the numbers of a declared field of structs or vecs lie in memory, where it is an array of
/// structs outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Kernels use the array of structs.
    Aos,
    /// Kernels use a buffer for each number, or an array of blocks in the place of the array of
    /// structs. Two kernels move the numbers there and back.
    Relaid,
}

impl Layout {
    const ALL: [(&'static str, Self); 2] = [("aos", Self::Aos), ("relaid", Self::Relaid)];

    /// The word in the IR.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, layout)| *layout == self).map_or("", |(name, _)| name)
    }

    /// Reads the layout of a field; none where it is no part of an array of structs.
    pub(super) fn of(op: Op) -> Result<Option<Self>, Error> {
        let Some(name) = read_optional(op, LAYOUT, attribute::as_string)? else { return Ok(None) };
        let found = Self::ALL.into_iter().find(|(word, _)| *word == name);
        let wrong = || {
            let message = format!("{LAYOUT} is \"aos\" or \"relaid\", not \"{name}\"");
            Error::new(mlir::place(op.location()), message)
        };
        found.map(|(_, layout)| Some(layout)).ok_or_else(wrong)
    }
}

/// A declared field that is an array of structs outside, or an array of blocks: a kernel's argument
/// that is bound to its name has, for each block of cells, the first number of all its cells, then
/// the second of all, in the order of the fields. A block of one cell is a struct.
#[derive(Clone, Debug)]
pub struct Record<'c, 'p> {
    /// The name of the declared field.
    pub name: &'c str,
    /// How its numbers lie in memory.
    pub layout: Layout,
    /// Cells of a block, a power of two; cells are counted row-major.
    pub block: i64,
    /// Cells of a block while kernels use it; none where they have a buffer for each number.
    pub kernel_block: Option<i64>,
    /// The fields of its numbers, in order.
    pub numbers: Vec<&'p Field<'c>>,
}

impl<'c> Record<'c, '_> {
    /// The type of each number.
    ///
    /// # Errors
    /// A fault of the compiler, where there are no numbers.
    pub fn element(&self) -> Result<Type<'c>, Error> {
        let first = self.numbers.first().map(|field| field.element);
        first.ok_or_else(|| Error::internal(format!("no numbers of @{}", self.name)))
    }

    /// Bytes of a number; the verifier refuses types without bytes.
    pub fn number_bytes(&self) -> i64 {
        let bits = self.numbers.first().and_then(|field| mlir::bit_width(field.element));
        i64::from(bits.unwrap_or(8)) / 8
    }

    /// The place of a field's number in a cell.
    pub fn place_of(&self, field: &str) -> Option<usize> {
        self.numbers.iter().position(|number| number.name == field)
    }
}

impl<'c> Program<'c> {
    /// The declared fields that are arrays of structs outside, in the order of their first fields.
    pub fn records(&self) -> Vec<Record<'c, '_>> {
        let mut found: Vec<Record<'c, '_>> = Vec::new();
        for field in &self.fields {
            let (Some(layout), Some(member)) = (field.layout, field.member) else { continue };
            match found.iter_mut().find(|record| record.name == member.field) {
                Some(record) => record.numbers.push(field),
                None => {
                    let (name, block) = (member.field, field.block);
                    let kernel_block = match layout {
                        Layout::Aos => Some(block),
                        Layout::Relaid => field.kernel_block,
                    };
                    let numbers = vec![field];
                    found.push(Record { name, layout, block, kernel_block, numbers });
                }
            }
        }
        found
    }

    /// The array of structs of a name.
    pub fn record(&self, name: &str) -> Option<Record<'c, '_>> {
        self.records().into_iter().find(|record| record.name == name)
    }

    /// The type of the numbers in the buffer of a field or record.
    ///
    /// # Errors
    /// A name that is neither.
    pub fn buffer_element(&self, name: &str) -> Result<Type<'c>, Error> {
        self.field(name).map(|field| field.element).or_else(|error| match self.record(name) {
            Some(record) => record.element(),
            None => Err(error),
        })
    }
}

/// Reads the cells of a block of a field's array of structs; 1 where it has none.
pub(super) fn block_of(op: Op) -> Result<i64, Error> {
    Ok(cells(op, BLOCK)?.unwrap_or(1))
}

/// Reads the cells of a block that kernels use in place of structs; none where they use none.
pub(super) fn kernel_block_of(op: Op) -> Result<Option<i64>, Error> {
    cells(op, KERNEL_BLOCK)
}

fn cells(op: Op, name: &str) -> Result<Option<i64>, Error> {
    let Some(block) = read_optional(op, name, attribute::as_integer)? else { return Ok(None) };
    let is_power = u64::try_from(block).is_ok_and(u64::is_power_of_two);
    match is_power && block <= MOST_CELLS {
        true => Ok(Some(block)),
        false => {
            let message = format!("{name} is a power of two up to {MOST_CELLS}, not {block}");
            Err(Error::new(mlir::place(op.location()), message))
        }
    }
}

/// Lets the numbers of a field lie in blocks of so many cells.
pub fn set_block(builder: &Builder, field: Op, cells: i64) {
    mlir::set_attribute(field, BLOCK, attribute::integer(builder.context, cells));
}

/// Lets kernels use blocks of so many cells in place of structs.
pub fn set_kernel_block(builder: &Builder, field: Op, cells: i64) {
    mlir::set_attribute(field, KERNEL_BLOCK, attribute::integer(builder.context, cells));
}

/// Makes a field a part of an array of structs.
pub fn set_layout(builder: &Builder, field: Op, layout: Layout) {
    mlir::set_attribute(field, LAYOUT, attribute::string(builder.context, layout.name()));
}

/// Notes at the first field of a declared one why it has its layout.
pub fn set_layout_note(builder: &Builder, field: Op, note: &str) {
    mlir::set_attribute(field, NOTE, attribute::string(builder.context, note));
}

/// What [`set_layout_note`] notes.
///
/// # Errors
/// An attribute that is no text.
pub fn layout_note<'c>(field: &Field<'c>) -> Result<Option<&'c str>, Error> {
    read_optional(field.op, NOTE, attribute::as_string)
}
