//! Point functions: arguments, types, operations and results.

use super::at;
use crate::attribute;
use crate::error::Error;
use crate::mlir::{self, Op, Val};
use crate::stencil::{self, Argument, Field, Program, Role};
use melior::ir::{Type, ValueLike};

/// The types of values in a point function and in affine loops: the lowerings have instructions for
/// these.
pub const TYPES: [&str; 10] =
    ["index", "i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"];

/// The operations of `math` that the lowerings have instructions or functions for.
const MATH: [&str; 35] = [
    "absf",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "fma",
    "isfinite",
    "isnan",
    "log",
    "log10",
    "log1p",
    "log2",
    "powf",
    "round",
    "roundeven",
    "rsqrt",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
];

/// Whose function it is.
pub(super) enum Purpose<'p, 'c> {
    /// A piece's: it returns one value a field. It may go on with a partial result or not.
    Point(&'p [&'c str], bool),
    /// A boundary rule's: it returns the field's value outside the grid.
    Boundary(&'p Field<'c>),
    /// A reduction's, over a box of so many dimensions: it returns the field's value.
    Reduction(&'p Field<'c>, usize),
}

impl<'c> Purpose<'_, 'c> {
    /// The fields that the function gives values for.
    fn updates(&self) -> &[&'c str] {
        match self {
            Self::Point(updates, _) => updates,
            Self::Boundary(field) | Self::Reduction(field, _) => std::slice::from_ref(&field.name),
        }
    }

    /// Dimensions of the points that it is evaluated at.
    fn rank(&self, program: &Program) -> Result<usize, Error> {
        match self {
            Self::Reduction(_, rank) => Ok(*rank),
            _ => Ok(program.grid_of(self.updates().first().copied().unwrap_or_default())?.rank()),
        }
    }
}

/// Checks the arguments, operations and results of a point function, or of the function of a
/// boundary rule. `op` names it.
pub(super) fn verify<'c>(
    program: &Program<'c>,
    op: Op<'c>,
    name: &str,
    purpose: &Purpose<'_, 'c>,
) -> Result<(), Error> {
    let function = program.function(name).map_err(|error| at(op, error.message))?;
    let entry = stencil::function_body(function)?;
    if mlir::blocks(function, 0).len() != 1 {
        return Err(at(
            function,
            format!("the point function @{name} has several blocks; use scf.if"),
        ));
    }
    let rank = purpose.rank(program)?;
    for (index, (argument, value)) in
        stencil::arguments_with_values(function)?.into_iter().enumerate()
    {
        let declared = type_of_argument(program, function, (&argument, value), purpose, rank)?;
        let found = value.r#type();
        if found != declared {
            return Err(at(
                function,
                format!(
                    "argument {index} of @{name} has type {found}, and what it stands for has type \
                     {declared}"
                ),
            ));
        }
    }
    operations(function)?;
    for gather in stencil::gathers(function)? {
        verify_gather(program, &gather)?;
        let read = program.field(gather.field)?.role;
        if let Purpose::Boundary(field) = purpose
            && !(read.is_reduced() || read == Role::Const)
        {
            return Err(at(
                gather.op,
                format!(
                    "the boundary rule of @{} reads cells of const fields and of reductions \
                     alone, and @{} is neither",
                    field.name, gather.field
                ),
            ));
        }
    }
    let last = mlir::operations(entry).last().map(|op| mlir::operands(*op)).unwrap_or_default();
    results(program, function, name, purpose, &last)
}

/// The type of what an argument stands for.
fn type_of_argument<'c>(
    program: &Program<'c>,
    function: Op<'c>,
    (argument, value): (&Argument<'c>, Val<'c>),
    purpose: &Purpose<'_, 'c>,
    rank: usize,
) -> Result<Type<'c>, Error> {
    Ok(match (argument, purpose) {
        (Argument::Read { .. } | Argument::Current { .. }, Purpose::Boundary(field)) => {
            return Err(at(
                function,
                format!(
                    "the boundary rule of @{} reads no cell but the nearest: use \
                     stencil.nearest",
                    field.name
                ),
            ));
        }
        (Argument::Nearest, Purpose::Point(..) | Purpose::Reduction(..)) => {
            return Err(at(
                function,
                "stencil.nearest is for the functions of boundary rules; use stencil.read",
            ));
        }
        (Argument::Nearest, Purpose::Boundary(field)) => field.element,
        (Argument::Partial, Purpose::Point([field], true)) => program.field(field)?.element,
        (Argument::Partial, _) => {
            return Err(at(
                function,
                "stencil.partial is for a tiled.apply of one field that has tiled.partial",
            ));
        }
        (Argument::Current { field, .. }, Purpose::Reduction(..)) => {
            let message = format!("a reduction has no sweep; read @{field} by stencil.read");
            return Err(at(function, message));
        }
        (Argument::Read { field, offset }, Purpose::Point(..) | Purpose::Reduction(..)) => {
            cell(program, function, (field, offset), rank)?
        }
        (Argument::Current { field, offset }, Purpose::Point(updates, _)) => {
            if !updates.contains(field) {
                return Err(at(
                    function,
                    format!(
                        "stencil.current is for fields that the apply updates, and @{field} is \
                         none; use stencil.read"
                    ),
                ));
            }
            if offset.len() != rank {
                return Err(at(function, wrong_rank(field, offset, rank)));
            }
            in_order(function, field, offset)?;
            program.field(field)?.element
        }
        (Argument::Scalar(name), _) => {
            let scalar = program.scalars.iter().find(|scalar| scalar.name == *name);
            scalar
                .ok_or_else(|| at(function, format!("there is no stencil.scalar @{name}")))?
                .element
        }
        (Argument::Param(name), _) if !program.params.contains(name) => {
            return Err(at(
                function,
                format!("there is no run-time size \"{name}\" in stencil.params"),
            ));
        }
        (Argument::Coordinate(dimension), _) if *dimension >= rank => {
            return Err(at(
                function,
                format!("there is no coordinate {dimension} in a grid of {rank} dimensions"),
            ));
        }
        (Argument::Param(_) | Argument::Coordinate(_) | Argument::Step, _) => {
            mlir::parse_type(value.r#type(), "i64")
                .ok_or_else(|| Error::internal("MLIR knows no i64"))?
        }
    })
}

/// The type of a cell that is read at an offset.
fn cell<'c>(
    program: &Program<'c>,
    function: Op<'c>,
    (field, offset): (&str, &[i64]),
    rank: usize,
) -> Result<Type<'c>, Error> {
    let declared = program.field(field).map_err(|error| at(function, error.message))?;
    if declared.role.is_reduced() {
        let message = format!("@{field} is a reduction; read it by stencil.gather");
        return Err(at(function, message));
    }
    if offset.len() != rank || program.grid_of(field)?.rank() != rank {
        return Err(at(function, wrong_rank(field, offset, rank)));
    }
    Ok(declared.element)
}

fn wrong_rank(field: &str, offset: &[i64], rank: usize) -> String {
    format!("the offset {offset:?} of @{field} has the wrong rank; the grid has {rank} dimensions")
}

/// Checks that a dependence vector is lexicographically negative. Shows an order of dimensions in
/// which it is, where there is one.
fn in_order(function: Op, field: &str, offset: &[i64]) -> Result<(), Error> {
    if offset.iter().find(|cells| **cells != 0).is_some_and(|first| *first < 0) {
        return Ok(());
    }
    let legal = offset.iter().position(|cells| *cells < 0);
    let remedy = match legal {
        Some(dimension) => {
            let others = (0..offset.len()).filter(|other| *other != dimension);
            let order: Vec<_> = std::iter::once(dimension).chain(others).collect();
            format!("it would be with the dimensions in the order {order:?}")
        }
        None => "no order of dimensions makes it so; read the old value by stencil.read".to_owned(),
    };
    Err(at(
        function,
        format!(
            "the dependence {offset:?} of @{field} is not lexicographically negative, so the value \
             is not computed yet; {remedy}"
        ),
    ))
}

/// Ways of rounding besides the nearest value with ties to even, in the order of their numbers in
/// `arith`, which begin at 1.
const ROUNDINGS: [&str; 4] = ["downward", "upward", "toward zero", "ties away from zero"];

/// Why the lowerings have no code for an operation of `arith` or `math`: for the function, or for
/// the way in which it rounds.
pub fn without_code(op: Op) -> Option<String> {
    let name = mlir::name(op);
    if name.strip_prefix("math.").is_some_and(|name| !MATH.contains(&name)) {
        let known = MATH.join(", ");
        return Some(format!("{name} has no code on a device; of math there are {known}"));
    }
    let mode = attribute::as_integer(mlir::attribute(op, "roundingmode")?)?;
    let how = ROUNDINGS.get(usize::try_from(mode).ok()?.checked_sub(1)?)?;
    Some(format!("{name} rounds {how}, and all operations round to nearest; leave the mode out"))
}

/// Checks that a function has no other operations and types than those that can be lowered.
fn operations(function: Op) -> Result<(), Error> {
    for op in mlir::walk(function).into_iter().skip(1) {
        let name = mlir::name(op);
        let allowed = ["arith.", "math.", "scf.if", "scf.yield", "func.return"];
        if name != stencil::GATHER && !allowed.iter().any(|allowed| name.starts_with(allowed)) {
            return Err(at(
                op,
                format!(
                    "{name} can't stand in a point function; arith, math, scf.if and \
                     stencil.gather can"
                ),
            ));
        }
        if let Some(text) = without_code(op) {
            return Err(at(op, text));
        }
        let types = mlir::results(op).into_iter().map(|value| value.r#type().to_string());
        if let Some(ty) = types.into_iter().find(|ty| !TYPES.contains(&ty.as_str())) {
            return Err(at(
                op,
                format!(
                    "{name} has a result of type {ty}; the values of a point function have the \
                     types {}",
                    TYPES.join(", ")
                ),
            ));
        }
    }
    Ok(())
}

fn verify_gather(program: &Program, gather: &stencil::Gather) -> Result<(), Error> {
    let field = program.field(gather.field).map_err(|error| at(gather.op, error.message))?;
    let rank = program.grid_of(gather.field)?.rank();
    let found = mlir::results(gather.op).first().map(|value| value.r#type());
    if gather.at.len() != rank {
        let count = gather.at.len();
        return Err(at(
            gather.op,
            format!("@{} has {rank} dimensions, and this read {count} coordinates", field.name),
        ));
    }
    if found != Some(field.element) {
        let found = found.map(|found| found.to_string()).unwrap_or_default();
        return Err(at(
            gather.op,
            format!("a cell of @{} has type {}, not {found}", field.name, field.element),
        ));
    }
    Ok(())
}

/// Checks that a function returns one value a field.
fn results<'c>(
    program: &Program<'c>,
    function: Op<'c>,
    name: &str,
    purpose: &Purpose<'_, 'c>,
    returned: &[Val<'c>],
) -> Result<(), Error> {
    let updates = purpose.updates();
    if returned.len() != updates.len() {
        let wanted = match purpose {
            Purpose::Point(updates, _) => format!("{} fields are updated", updates.len()),
            Purpose::Boundary(field) => format!("the boundary rule of @{} gives one", field.name),
            Purpose::Reduction(field, _) => format!("the reduction @{} has one", field.name),
        };
        return Err(at(
            function,
            format!("@{name} returns {} values, and {wanted}", returned.len()),
        ));
    }
    for (field, value) in updates.iter().zip(returned) {
        let (found, wanted) = (value.r#type(), program.field(field)?.element);
        if found != wanted {
            return Err(at(
                function,
                format!("@{name} returns {found} for @{field}, which holds {wanted}"),
            ));
        }
    }
    Ok(())
}
