//! Integer division with a result for all operands, as in the language.
//!
//! The operations of the IR have no meaning where the divisor is 0, or where the quotient is out of
//! range, and a processor ends the process there. Here `a / 0` is 0, `a % 0` is `a`, and dividing
//! by -1 is negating.

use super::pieces::DIVISIONS;
use crate::analysis::lane_values;
use melior::ir::operation::OperationResult;
use melior::ir::{TypeLike, ValueLike};
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};

/// `a` divided by `b`, by an operation of the IR.
///
/// # Errors
/// A fault of the compiler: an operation that can't be built.
pub fn divide<'c>(
    builder: &Builder<'c>,
    operation: &str,
    a: Val<'c>,
    b: Val<'c>,
) -> Result<Val<'c>, Error> {
    let ty = a.r#type();
    let (zero, one) = (builder.constant(ty, 0)?, builder.constant(ty, 1)?);
    let by_zero = builder.compare(Compare::Eq, b, zero)?;
    let divisor = builder.select(by_zero, one, b)?;
    let remainder = operation.starts_with("arith.rem");
    let of_zero = if remainder { a } else { zero };
    if operation.ends_with("ui") {
        let result = builder.binary(operation, a, divisor)?;
        return builder.select(by_zero, of_zero, result);
    }
    let negates = builder.compare(Compare::Eq, b, builder.constant(ty, -1)?)?;
    let divisor = builder.select(negates, one, divisor)?;
    let mut result = builder.binary(operation, a, divisor)?;
    if !remainder {
        result = builder.select(negates, builder.binary("arith.subi", zero, a)?, result)?;
    }
    builder.select(by_zero, of_zero, result)
}

/// Whether an operation divides scalars and may have no result: its divisor is neither a constant
/// nor one that [`divide`] has made.
pub fn is_partial(op: Op) -> bool {
    if !DIVISIONS.contains(&mlir::name(op)) {
        return false;
    }
    let Some(divisor) = mlir::operands(op).get(1).copied() else { return false };
    let is_scalar = divisor.r#type().is_index() || divisor.r#type().is_integer();
    let fits = |value: i64| value != 0 && value != -1;
    let guarded =
        made_by(divisor, "arith.select").and_then(|of| mlir::operands(of).get(1).copied());
    is_scalar && !constant(divisor).is_some_and(fits) && guarded.and_then(constant) != Some(1)
}

fn constant(value: Val) -> Option<i64> {
    made_by(value, "arith.constant").and_then(lane_values::constant)
}

/// The operation of a name whose result a value is.
fn made_by<'c>(value: Val<'c>, name: &str) -> Option<Op<'c>> {
    let result = OperationResult::try_from(value).ok()?;
    Some(mlir::op(result.owner())).filter(|op| mlir::name(*op) == name)
}
