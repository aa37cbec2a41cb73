//! Reductions of a step, and the condition that ends a run.

use super::declarations::repetitions;
use super::{COMBINED, Field, INITIAL, REDUCE, Repetition, UNTIL};
use crate::attribute::{self, read, read_optional};
use crate::builder::Builder;
use crate::error::Error;
use crate::mlir::{self, Op};
use melior::ir::Attribute;
use melior::ir::operation::OperationLike;

/// How two values become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// The sum, in an order that the language defines.
    Sum,
    /// The smaller one; a NaN where one is a NaN.
    Min,
    /// The larger one; a NaN where one is a NaN.
    Max,
    /// The smaller one of integers that are 0 or 1; 1 where there is none.
    All,
}

impl Combine {
    const WORDS: [(&'static str, Self); 4] =
        [("sum", Self::Sum), ("min", Self::Min), ("max", Self::Max), ("all", Self::All)];

    /// The word in the IR.
    pub fn name(self) -> &'static str {
        Self::WORDS.into_iter().find(|(_, one)| *one == self).map_or("", |(name, _)| name)
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::WORDS.into_iter().find(|(known, _)| *known == name).map(|(_, one)| one)
    }
}

/// `stencil.reduce`: one value made of those of all points of a box.
#[derive(Clone, Debug)]
pub struct Reduce<'c> {
    /// The operation.
    pub op: Op<'c>,
    /// The field whose one cell holds the value.
    pub field: &'c str,
    /// The grid whose points are the box.
    pub grid: &'c str,
    /// The function of the value at a point.
    pub function: &'c str,
    /// How values are combined.
    pub combine: Combine,
    /// How many applies of the step stand before it.
    pub place: usize,
    /// How often a step repeats it, from the outside: the attribute `stencil.repeat`.
    pub repeats: Vec<Repetition>,
}

impl<'c> Reduce<'c> {
    /// Reads the operation behind so many applies; names are the verifier's work.
    pub(super) fn read(op: Op<'c>, place: usize) -> Result<Self, Error> {
        let name = read(op, "operation", attribute::as_string)?;
        let wrong = || {
            Error::new(
                mlir::place(op.location()),
                format!("there is no reduction \"{name}\"; there are sum, min, max and all"),
            )
        };
        Ok(Self {
            op,
            field: read(op, "field", attribute::as_symbol)?,
            grid: read(op, "grid", attribute::as_symbol)?,
            function: read(op, "function", attribute::as_symbol)?,
            combine: Combine::named(name).ok_or_else(wrong)?,
            place,
            repeats: repetitions(op)?,
        })
    }
}

/// `stencil.until`: the run ends where a condition holds.
#[derive(Clone, Debug)]
pub struct Until<'c> {
    /// The operation.
    pub op: Op<'c>,
    /// The field whose one cell is not 0 where the condition holds.
    pub condition: &'c str,
    /// Steps between two looks.
    pub every: i64,
    /// The condition as a user reads it.
    pub text: &'c str,
}

impl<'c> Until<'c> {
    /// Reads the operation; names are the verifier's work.
    pub(super) fn read(op: Op<'c>) -> Result<Self, Error> {
        Ok(Self {
            op,
            condition: read(op, "condition", attribute::as_symbol)?,
            every: read(op, "every", attribute::as_integer)?,
            text: read(op, "text", attribute::as_string)?,
        })
    }
}

/// Builds `stencil.reduce`.
pub fn reduce<'c>(
    builder: &Builder<'c>,
    (field, grid): (&str, &str),
    function: &str,
    combine: Combine,
) -> Result<Op<'c>, Error> {
    let symbol = |name| attribute::symbol(builder.context, name);
    let attributes = [
        ("field", symbol(field)),
        ("grid", symbol(grid)),
        ("function", symbol(function)),
        ("operation", attribute::string(builder.context, combine.name())),
    ];
    builder.op(REDUCE, &[], &[], &attributes)
}

/// Builds `stencil.until`.
pub fn until<'c>(
    builder: &Builder<'c>,
    condition: &str,
    every: i64,
    text: &str,
) -> Result<Op<'c>, Error> {
    let attributes = [
        ("condition", attribute::symbol(builder.context, condition)),
        ("every", attribute::integer(builder.context, every)),
        ("text", attribute::string(builder.context, text)),
    ];
    builder.op(UNTIL, &[], &[], &attributes)
}

/// Gives the cell of a reduction its value before the first step.
pub fn set_initial<'c>(field: Op<'c>, value: Attribute<'c>) {
    mlir::set_attribute(field, INITIAL, value);
}

/// Makes a temp field the values at the points of a reduction: a kernel that stores the field
/// combines its cells, and keeps none of them.
pub fn set_combined<'c>(builder: &Builder<'c>, field: Op<'c>, into: &str, combine: Combine) {
    let entries = [
        ("into", attribute::string(builder.context, into)),
        ("operation", attribute::string(builder.context, combine.name())),
    ];
    mlir::set_attribute(field, COMBINED, attribute::dictionary(builder.context, &entries));
}

/// The field of the value that a field's cells are combined to, and how, if they are.
///
/// # Errors
/// A malformed attribute.
pub fn combined<'c>(field: &Field<'c>) -> Result<Option<(&'c str, Combine)>, Error> {
    let entries = |attribute: Attribute<'c>| {
        let entry = |name| attribute::as_string(attribute::entry(attribute, name)?);
        let (into, name) = (entry("into")?, entry("operation")?);
        Some((into, Combine::named(name)?))
    };
    read_optional(field.op, COMBINED, entries)
}
