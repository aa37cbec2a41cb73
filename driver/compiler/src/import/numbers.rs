//! Arithmetic of the language that the IR has no operation for, in operations that it has: integer
//! division with a result for all operands, conversions that saturate, functions of f16.
//!
//! Values are signless in the IR; what is unsigned is said by the operation.

use melior::ir::{Type, ValueLike};
use stencil_dialects::attribute;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_frontend::program::BinaryOp;
use stencil_passes::kernel::total_division;
use stencil_runtime::array::Element;

/// The type of a value.
pub fn value_type<'c>(builder: &Builder<'c>, element: Element) -> Type<'c> {
    match element {
        Element::F16 => Type::float16(builder.context),
        Element::Bf16 => Type::bfloat16(builder.context),
        Element::F32 => Type::float32(builder.context),
        Element::F64 => Type::float64(builder.context),
        _ => builder.integer_type(8 * element.size() as u32),
    }
}

/// An integer as the bits of its type, in the form that an attribute takes.
pub fn bits(element: Element, value: i128) -> i64 {
    match element.size() {
        1 => i64::from(value as i8),
        2 => i64::from(value as i16),
        4 => i64::from(value as i32),
        _ => value as i64,
    }
}

/// `a / b` or `a % b` of integers, with a result for all of them.
pub fn divide<'c>(
    builder: &Builder<'c>,
    op: BinaryOp,
    element: Element,
    a: Val<'c>,
    b: Val<'c>,
) -> Result<Val<'c>, Error> {
    let word = if op == BinaryOp::Div { "div" } else { "rem" };
    let sign = if element.is_unsigned() { "ui" } else { "si" };
    total_division::divide(builder, &format!("arith.{word}{sign}"), a, b)
}

/// `a << b` or `a >> b`. The operations of the IR have no meaning where `b` is not below the bits
/// of the type: it is taken modulo these, which are a power of two.
pub fn shift<'c>(
    builder: &Builder<'c>,
    op: BinaryOp,
    element: Element,
    a: Val<'c>,
    b: Val<'c>,
) -> Result<Val<'c>, Error> {
    let bits = 8 * element.size() as i64;
    let count = builder.binary("arith.andi", b, builder.constant(b.r#type(), bits - 1)?)?;
    let name = match op {
        BinaryOp::Shl => "arith.shli",
        _ if element.is_unsigned() => "arith.shrui",
        _ => "arith.shrsi",
    };
    builder.binary(name, a, count)
}

/// A number in another type: from a float to an integer cut off, at the limits of the integer where
/// it is beyond them, and 0 from a NaN; among integers the low bits; to a float rounded once.
pub fn convert<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    from: Element,
    to: Element,
) -> Result<Val<'c>, Error> {
    let ty = value_type(builder, to);
    // All but an f32 becomes a bf16 by way of f32, and a bf16 another type by way of f32.
    let by = |from: Element, to: Element| from == Element::Bf16 && to != Element::F32;
    if from != to && (by(from, to) || by(to, from)) {
        let wide = convert(builder, value, from, Element::F32)?;
        return convert(builder, wide, Element::F32, to);
    }
    let name = match (from.is_float(), to.is_float()) {
        _ if value.r#type() == ty => return Ok(value),
        (true, true) if from.size() < to.size() => "arith.extf",
        (true, true) => "arith.truncf",
        (true, false) => return saturate(builder, value, from, to),
        (false, true) if from.is_unsigned() => "arith.uitofp",
        (false, true) => "arith.sitofp",
        (false, false) if from.size() > to.size() => "arith.trunci",
        (false, false) if from.is_unsigned() => "arith.extui",
        (false, false) => "arith.extsi",
    };
    builder.value(name, &[value], ty, &[])
}

/// A float as an integer. The operations of the IR have no meaning for what does not fit: the value
/// is brought into the range first. The limits are powers of two, hence exact floats.
fn saturate<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    from: Element,
    to: Element,
) -> Result<Val<'c>, Error> {
    let width = 8 * to.size() as i32;
    let (low, high) = match to.is_unsigned() {
        true => (0.0, 2.0_f64.powi(width)),
        false => (-(2.0_f64.powi(width - 1)), 2.0_f64.powi(width - 1)),
    };
    // The largest float below the upper limit; an f16 has none, and more digits in f32.
    let largest = match from {
        Element::F16 => {
            return saturate(
                builder,
                convert(builder, value, from, Element::F32)?,
                Element::F32,
                to,
            );
        }
        Element::F32 => f64::from((high as f32).next_down()),
        _ => high.next_down(),
    };
    let (float, ty) = (value.r#type(), value_type(builder, to));
    let [low, high, largest] = [low, high, largest].map(|limit| builder.float(float, limit));
    let high = high?;
    let raised = builder.binary("arith.maxnumf", value, low?)?;
    let safe = builder.binary("arith.minnumf", raised, largest?)?;
    let inside = builder.value(
        if to.is_unsigned() { "arith.fptoui" } else { "arith.fptosi" },
        &[safe],
        ty,
        &[],
    )?;
    let most = if to.is_unsigned() { -1 } else { bits(to, (1 << (width - 1)) - 1) };
    let limited = builder.select(
        compare(builder, GREATER_OR_EQUAL, value, high)?,
        builder.constant(ty, most)?,
        inside,
    )?;
    builder.select(compare(builder, UNORDERED, value, value)?, builder.constant(ty, 0)?, limited)
}

/// Predicates of `arith.cmpf`: ordered, so false of a NaN; and true of a NaN alone.
const GREATER_OR_EQUAL: i64 = 3;
const UNORDERED: i64 = 14;

fn compare<'c>(
    builder: &Builder<'c>,
    predicate: i64,
    a: Val<'c>,
    b: Val<'c>,
) -> Result<Val<'c>, Error> {
    let predicate = attribute::integer(builder.context, predicate);
    builder.value("arith.cmpf", &[a, b], builder.integer_type(1), &[("predicate", predicate)])
}
