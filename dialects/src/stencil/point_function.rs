//! Point functions: what their arguments stand for, their bodies and their absolute reads.

use super::GATHER;
use crate::attribute::{self, read};
use crate::builder::Builder;
use crate::error::Error;
use crate::mlir::{self, Blk, Op, Val};
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, Module, Type};

/// What a point function's argument stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument<'c> {
    /// A cell's old value at an offset.
    Read {
        /// The field.
        field: &'c str,
        /// Cells from the point, one number a dimension, slowest first.
        offset: Vec<i64>,
    },
    /// The value that a cell at an offset got in the same sweep: points are computed in row-major
    /// order, and the offset is lexicographically negative.
    Current {
        /// The field, which the function updates.
        field: &'c str,
        /// Cells from the point, one number a dimension, slowest first.
        offset: Vec<i64>,
    },
    /// A run-time scalar.
    Scalar(&'c str),
    /// A run-time size, as i64.
    Param(&'c str),
    /// The point's coordinate along a dimension (0 is the slowest), as i64.
    Coordinate(usize),
    /// The number of the step, from 0, as i64.
    Step,
    /// In the function of a boundary rule: the old value of the nearest cell inside.
    Nearest,
    /// In a function of a `tiled.apply`: what another one computed of the new value.
    Partial,
}

/// The top-level `func.func` of a name.
pub fn function<'c>(module: &Module<'c>, name: &str) -> Result<Op<'c>, Error> {
    mlir::operations(mlir::body(module))
        .into_iter()
        .find(|op| {
            mlir::name(*op) == super::FUNCTION
                && mlir::attribute(*op, "sym_name").and_then(attribute::as_string) == Some(name)
        })
        .ok_or_else(|| unknown(name))
}

/// The error where no function has a name.
pub(super) fn unknown(name: &str) -> Error {
    Error::user(format!("there is no func.func @{name}"))
}

/// The name of a function.
pub fn function_name<'c>(function: Op<'c>) -> Result<&'c str, Error> {
    read(function, "sym_name", attribute::as_string)
}

/// The entry block of a function that has a body.
pub fn function_body<'c>(function: Op<'c>) -> Result<Blk<'c>, Error> {
    mlir::entry(function).ok_or_else(|| {
        Error::new(
            mlir::place(function.location()),
            "the function has no body; a point function needs one",
        )
    })
}

/// What the arguments of a point function, or of the function of a boundary rule, stand for, in
/// order; an error at the function's place if an argument has no meaning.
pub fn arguments<'c>(function: Op<'c>) -> Result<Vec<Argument<'c>>, Error> {
    let entry = function_body(function)?;
    let count = mlir::arguments(entry).len();
    let dictionaries =
        mlir::attribute(function, "arg_attrs").and_then(attribute::as_array).unwrap_or_default();
    (0..count)
        .map(|index| {
            dictionaries.get(index).copied().and_then(as_argument).ok_or_else(|| {
                Error::new(
                    mlir::place(function.location()),
                    format!(
                        "argument {index} of a point function has no meaning: it needs \
                         stencil.read or stencil.current with stencil.offset, stencil.scalar, \
                         stencil.param, stencil.coord or stencil.step; that of a boundary rule \
                         may have stencil.nearest"
                    ),
                )
            })
        })
        .collect()
}

/// The arguments of a point function, each with its value in the function's body; errors as those
/// of [`arguments`].
pub fn arguments_with_values<'c>(function: Op<'c>) -> Result<Vec<(Argument<'c>, Val<'c>)>, Error> {
    Ok(arguments(function)?.into_iter().zip(mlir::arguments(function_body(function)?)).collect())
}

fn as_argument<'c>(attributes: Attribute<'c>) -> Option<Argument<'c>> {
    let entry = |name| attribute::entry(attributes, name);
    if let Some(field) = entry("stencil.read") {
        Some(Argument::Read {
            field: attribute::as_symbol(field)?,
            offset: attribute::as_integers(entry("stencil.offset")?)?,
        })
    } else if let Some(field) = entry("stencil.current") {
        Some(Argument::Current {
            field: attribute::as_symbol(field)?,
            offset: attribute::as_integers(entry("stencil.offset")?)?,
        })
    } else if let Some(name) = entry("stencil.scalar") {
        Some(Argument::Scalar(attribute::as_symbol(name)?))
    } else if let Some(name) = entry("stencil.param") {
        Some(Argument::Param(attribute::as_string(name)?))
    } else if let Some(dimension) = entry("stencil.coord") {
        Some(Argument::Coordinate(usize::try_from(attribute::as_integer(dimension)?).ok()?))
    } else if entry("stencil.nearest").is_some() {
        Some(Argument::Nearest)
    } else if entry("stencil.partial").is_some() {
        Some(Argument::Partial)
    } else {
        entry("stencil.step").map(|_| Argument::Step)
    }
}

/// Builds the attributes of a point function's argument.
fn argument_attributes<'c>(
    builder: &Builder<'c>,
    argument: &Argument,
) -> Vec<(&'static str, Attribute<'c>)> {
    let context = builder.context;
    match argument {
        Argument::Read { field, offset } => {
            vec![
                ("stencil.read", attribute::symbol(context, field)),
                ("stencil.offset", attribute::integers(context, offset)),
            ]
        }
        Argument::Current { field, offset } => {
            vec![
                ("stencil.current", attribute::symbol(context, field)),
                ("stencil.offset", attribute::integers(context, offset)),
            ]
        }
        Argument::Scalar(name) => vec![("stencil.scalar", attribute::symbol(context, name))],
        Argument::Param(name) => vec![("stencil.param", attribute::string(context, name))],
        Argument::Coordinate(dimension) => {
            vec![("stencil.coord", attribute::integer(context, *dimension as i64))]
        }
        Argument::Step => vec![("stencil.step", Attribute::unit(context))],
        Argument::Nearest => vec![("stencil.nearest", Attribute::unit(context))],
        Argument::Partial => vec![("stencil.partial", Attribute::unit(context))],
    }
}

/// Builds a point function, a private `func.func` whose body is still empty; returns the operation
/// and its entry block. Arguments have the type of what they stand for.
pub fn point_function<'c>(
    builder: &Builder<'c>,
    name: &str,
    arguments: &[(Argument, Type<'c>)],
    results: &[Type<'c>],
) -> Result<(Op<'c>, Blk<'c>), Error> {
    let attributes =
        |(argument, ty): &(Argument, Type<'c>)| (*ty, argument_attributes(builder, argument));
    let arguments: Vec<_> = arguments.iter().map(attributes).collect();
    let private = [("sym_visibility", attribute::string(builder.context, "private"))];
    builder.function(name, &arguments, results, &private)
}

/// The arguments of a point function under construction, each once.
#[derive(Clone, Debug, Default)]
pub struct Arguments<'c> {
    arguments: Vec<(Argument<'c>, Type<'c>)>,
}

impl<'c> Arguments<'c> {
    /// The place of an argument, at the end if it is new.
    pub fn place(&mut self, argument: Argument<'c>, ty: Type<'c>) -> usize {
        let known = self.arguments.iter().position(|(known, _)| *known == argument);
        known.unwrap_or_else(|| {
            self.arguments.push((argument, ty));
            self.arguments.len() - 1
        })
    }

    /// A function of the arguments: see [`point_function`].
    pub fn function(
        &self,
        builder: &Builder<'c>,
        name: &str,
        results: &[Type<'c>],
    ) -> Result<(Op<'c>, Blk<'c>), Error> {
        point_function(builder, name, &self.arguments, results)
    }
}

/// An absolute read in a point function.
#[derive(Clone, Debug)]
pub struct Gather<'c> {
    /// The operation.
    pub op: Op<'c>,
    /// The field.
    pub field: &'c str,
    /// One coordinate a dimension, slowest first, as i64.
    pub at: Vec<Val<'c>>,
}

/// The absolute reads of an operation's regions, such as a point function's.
pub fn gathers<'c>(of: Op<'c>) -> Result<Vec<Gather<'c>>, Error> {
    let all = mlir::walk(of).into_iter().filter(|op| mlir::name(*op) == GATHER);
    all.map(|op| {
        Ok(Gather { op, field: read(op, "field", attribute::as_symbol)?, at: mlir::operands(op) })
    })
    .collect()
}

/// Builds `stencil.gather`.
pub fn gather<'c>(
    builder: &Builder<'c>,
    field: &str,
    at: &[Val<'c>],
    element: Type<'c>,
) -> Result<Val<'c>, Error> {
    builder.value(GATHER, at, element, &[("field", attribute::symbol(builder.context, field))])
}
