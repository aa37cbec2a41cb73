//! Why a plan can't run with some sizes and scalars.

use crate::array::Element;
use crate::expr::{Expr, ExprError};
use crate::number::Numeral;
use crate::plan::MOST_STEPS;
use thiserror::Error;

/// Why a plan can't run with these sizes and scalars.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum BindError {
    /// A size is given that the program does not have.
    #[error("{program} has no run-time size `{name}`; it has {known}")]
    UnknownSize {
        /// The program.
        program: String,
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A size is given that the compile fixed.
    #[error(
        "`{name}` was fixed to {fixed} when {program} was compiled; compile it again with -D \
         {name}={wanted}"
    )]
    Fixed {
        /// The program.
        program: String,
        /// The size.
        name: String,
        /// Its value.
        fixed: i64,
        /// The value given.
        wanted: i64,
    },
    /// A size has no value.
    #[error("{}", missing(names, fields))]
    MissingSize {
        /// The sizes.
        names: Vec<String>,
        /// The fields whose shapes would tell them.
        fields: Vec<String>,
    },
    /// The shape of an array and the sizes known so far exclude each other.
    #[error(
        "array `{field}` is {shape}, but its dimension {dimension} must be {wanted} ({because})"
    )]
    Shape {
        /// The field.
        field: String,
        /// The array's shape.
        shape: String,
        /// The dimension, from 0.
        dimension: usize,
        /// The extent wanted, with its value.
        wanted: String,
        /// Where the sizes come from.
        because: String,
    },
    /// An extent can't come from any whole size.
    #[error(
        "array `{field}` is {shape}, but no whole `{name}` makes its dimension {dimension} \
         (`{extent}`) so"
    )]
    NoSize {
        /// The field.
        field: String,
        /// The array's shape.
        shape: String,
        /// The dimension, from 0.
        dimension: usize,
        /// The extent in the plan.
        extent: Expr,
        /// The size that was sought.
        name: String,
    },
    /// An array has another number of dimensions than its field.
    #[error("array `{field}` is {shape}; the program wants {wanted} dimensions ({extents})")]
    Rank {
        /// The field.
        field: String,
        /// The array's shape.
        shape: String,
        /// The field's number of dimensions.
        wanted: usize,
        /// The field's extents.
        extents: String,
    },
    /// A field would have a negative extent.
    #[error(
        "field `{field}` would have {value} cells in dimension {dimension} (`{extent}`, {sizes}); \
         use larger sizes"
    )]
    Negative {
        /// The field.
        field: String,
        /// The dimension, from 0.
        dimension: usize,
        /// The extent in the plan.
        extent: Expr,
        /// Its value.
        value: i64,
        /// The sizes.
        sizes: String,
    },
    /// A field has more cells than the kernels can index.
    #[error(
        "size overflow: field `{field}` has {cells} cells ({shape}), more than {width}-bit indices \
         reach; compile with these sizes fixed (-D) or use smaller ones"
    )]
    Index {
        /// The field.
        field: String,
        /// Its cells.
        cells: String,
        /// Its shape.
        shape: String,
        /// Bits of an index.
        width: u32,
    },
    /// A condition of the plan does not hold.
    #[error("{message} ({sizes})")]
    Check {
        /// The plan's words.
        message: String,
        /// The sizes.
        sizes: String,
    },
    /// The number of steps is negative or too large.
    #[error("{0} steps can't be run; give 0 to {MOST_STEPS} with --steps")]
    Steps(i64),
    /// The number of the first step is negative or too large.
    #[error(
        "a run can't begin at step {0}; --first-step is at least 0, and with the steps of the run \
         at most {MOST_STEPS}"
    )]
    FirstStep(i64),
    /// A scalar is given that the program does not have.
    #[error("{program} has no scalar `{name}`; it has {known}")]
    UnknownScalar {
        /// The program.
        program: String,
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A scalar has neither a value nor a default.
    #[error("the scalar `{0}` has no value; give one with --set {0}=...")]
    MissingScalar(String),
    /// A number does not fit the scalar's type.
    #[error(
        "{value} is no {element}, the type of the scalar `{name}`; give a number that {element} \
         can hold{}",
        if *element == Element::U8 { " (a bool is stored as u8: 0 or 1)" } else { "" }
    )]
    Scalar {
        /// The scalar.
        name: String,
        /// Its type.
        element: Element,
        /// The value given.
        value: Numeral,
    },
    /// A choice is made that the plan does not offer.
    #[error("{program} has no choice `{name}` of `{wanted}`; it has {known}")]
    UnknownChoice {
        /// The program.
        program: String,
        /// The choice.
        name: String,
        /// The alternative.
        wanted: String,
        /// The choices there are.
        known: String,
    },
    /// A buffer of the plan does not fit its field at these sizes.
    #[error("{message} ({sizes}); use larger sizes or compile the program again")]
    Buffer {
        /// The mismatch.
        message: String,
        /// The sizes.
        sizes: String,
    },
    /// An expression of the plan has no value.
    #[error(transparent)]
    Expr(#[from] ExprError),
}

fn missing(names: &[String], fields: &[String]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    let options: Vec<_> = names.iter().map(|name| format!("--size {name}=...")).collect();
    let (quoted, options) = (quoted.join(", "), options.join(" "));
    let inputs: Vec<_> = fields.iter().map(|field| format!("--in {field}=...")).collect();
    let inputs = inputs.join(" ");
    match (names, fields.is_empty()) {
        ([_], false) => format!(
            "the run-time size {quoted} has no value; give one with {options} or an array whose \
             shape tells it ({inputs})"
        ),
        (_, false) => format!(
            "the run-time sizes {quoted} have no values; give them with {options} or by arrays \
             whose shapes tell them ({inputs})"
        ),
        ([_], true) => {
            format!("the run-time size {quoted} has no value; give one with {options}")
        }
        (_, true) => format!(
            "the run-time sizes {quoted} have no values, and no extent of an array tells one \
             without the others; give some with {options}"
        ),
    }
}
