//! Point functions on vectors: the same operations on the cells of a row side by side.
//!
//! Operations of `arith` and `math` work on vectors lane by lane, and so each lane is rounded as a
//! cell by itself is. Both sides of an `scf.if` are computed, and a select takes one.

use crate::kernel::pieces::DIVISIONS;
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};
use std::collections::BTreeMap;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Blk, Op, Val};
use stencil_dialects::stencil;

/// Math functions that processors have instructions for.
const IN_INSTRUCTIONS: [&str; 5] =
    ["math.sqrt", "math.absf", "math.floor", "math.ceil", "math.fma"];

/// Whether an operation is one that processors have no vectors of, or that traps.
fn divides(name: &str) -> bool {
    DIVISIONS.contains(&name) || name == "arith.remf"
}

/// Operations on floats of 16 bits in the code of a vector, one for each lane. LLVM takes a
/// millisecond for each: it converts lane by lane.
const MOST_ON_16_BITS: usize = 1000;

/// Whether a point function can be evaluated on vectors of some lanes, and the code compiles in
/// seconds.
pub fn is_lanewise(function: Op, lanes: i64) -> bool {
    let is_short = |value: &Val| ["f16", "bf16"].contains(&&*value.r#type().to_string());
    let short = |op: &Op| mlir::operands(*op).iter().chain(&mlir::results(*op)).any(is_short);
    let all = mlir::walk(function);
    let count = all.iter().filter(|op| short(op)).count();
    if count.saturating_mul(usize::try_from(lanes).unwrap_or(1)) > MOST_ON_16_BITS {
        return false;
    }
    let known = |op: Op| {
        let name = mlir::name(op);
        matches!(name, "func.func" | "func.return" | "scf.if" | "scf.yield")
            || IN_INSTRUCTIONS.contains(&name)
            || (name.starts_with("arith.") && !divides(name))
    };
    all.into_iter().all(known)
}

/// `vector<LxT>`.
pub fn vector_type<'c>(element: Type<'c>, lanes: i64) -> Result<Type<'c>, Error> {
    let text = format!("vector<{lanes}x{element}>");
    mlir::parse_type(element, &text).ok_or_else(|| Error::internal(format!("no type {text}")))
}

/// A vector with the value in each lane; the value itself where it is a vector.
pub fn spread<'c>(builder: &Builder<'c>, value: Val<'c>, lanes: i64) -> Result<Val<'c>, Error> {
    let ty = value.r#type();
    if mlir::vector_cells(ty) > 1 {
        return Ok(value);
    }
    builder.value("vector.broadcast", &[value], vector_type(ty, lanes)?, &[])
}

/// The values of a point function for the lanes of vectors. Arguments may be vectors or the same
/// for all lanes.
pub fn evaluate<'c>(
    builder: &Builder<'c>,
    function: Op<'c>,
    arguments: &[Val<'c>],
    lanes: i64,
) -> Result<Vec<Val<'c>>, Error> {
    let body = stencil::function_body(function)?;
    let names = mlir::arguments(body).into_iter().map(mlir::key);
    let mut values = names.zip(arguments.iter().copied()).collect();
    let results = block(builder, body, &mut values, lanes)?;
    results.into_iter().map(|value| spread(builder, value, lanes)).collect()
}

/// The operands of a block's terminator, in vectors where they differ from lane to lane.
fn block<'c>(
    builder: &Builder<'c>,
    body: Blk<'c>,
    values: &mut BTreeMap<usize, Val<'c>>,
    lanes: i64,
) -> Result<Vec<Val<'c>>, Error> {
    for op in mlir::operations(body) {
        let builder = &Builder { location: op.location(), ..*builder };
        let operands: Vec<_> = mlir::operands(op)
            .into_iter()
            .map(|operand| {
                let found = values.get(&mlir::key(operand)).copied();
                found.ok_or_else(|| Error::internal("a value of no lane"))
            })
            .collect::<Result<_, _>>()?;
        let results = match mlir::name(op) {
            "func.return" | "scf.yield" => return Ok(operands),
            "scf.if" => branches(builder, op, &operands, values, lanes)?,
            _ => operation(builder, op, &operands, lanes)?,
        };
        values.extend(mlir::results(op).into_iter().map(mlir::key).zip(results));
    }
    Err(Error::internal("a block without an end"))
}

/// An operation lane by lane; once for all lanes where all operands are the same for them.
fn operation<'c>(
    builder: &Builder<'c>,
    op: Op<'c>,
    operands: &[Val<'c>],
    lanes: i64,
) -> Result<Vec<Val<'c>>, Error> {
    let several = operands.iter().any(|operand| mlir::vector_cells(operand.r#type()) > 1);
    let results = mlir::results(op).into_iter().map(|result| result.r#type());
    let (operands, results) = if several {
        let operands = operands.iter().map(|operand| spread(builder, *operand, lanes));
        let results = results.map(|ty| vector_type(ty, lanes));
        (operands.collect::<Result<Vec<_>, _>>()?, results.collect::<Result<Vec<_>, _>>()?)
    } else {
        (operands.to_vec(), results.collect())
    };
    let attributes = op.attributes().map(|(name, value)| (mlir::identifier(name), value));
    let attributes: Vec<_> = attributes.filter_map(|(name, value)| Some((name?, value))).collect();
    Ok(mlir::results(builder.op(mlir::name(op), &operands, &results, &attributes)?))
}

/// Both sides of an `scf.if`, and of each result that of the side which a lane takes.
fn branches<'c>(
    builder: &Builder<'c>,
    op: Op<'c>,
    operands: &[Val<'c>],
    values: &mut BTreeMap<usize, Val<'c>>,
    lanes: i64,
) -> Result<Vec<Val<'c>>, Error> {
    let sides = [0, 1].map(|region| mlir::blocks(op, region).first().copied());
    let ([condition], [Some(then), Some(otherwise)]) = (operands, sides) else {
        return Err(Error::internal("an scf.if without two sides"));
    };
    let first = block(builder, then, values, lanes)?;
    let second = block(builder, otherwise, values, lanes)?;
    let pick = |(yes, no): (Val<'c>, Val<'c>)| {
        let several = [*condition, yes, no];
        if several.iter().all(|value| mlir::vector_cells(value.r#type()) == 1) {
            return builder.select(*condition, yes, no);
        }
        let spread = |value| spread(builder, value, lanes);
        builder.select(spread(*condition)?, spread(yes)?, spread(no)?)
    };
    first.into_iter().zip(second).map(pick).collect()
}
