//! `convert-math-to-calls`: math functions that a processor has no instructions for become calls of
//! the C library's, the smaller and the larger of two floats become comparisons, and divisions of
//! integers have a result for all operands.
//!
//! Needs: functions for a processor. Guarantees: no `math.exp` and the like, no `arith.remf` of f32
//! and f64, and no `arith.minnumf` and `arith.maxnumf`. The negative zero is smaller than the
//! other, as in the language. On a processor LLVM's own operation may take either. A float of 16
//! bits is widened to f32 for a call. A division of scalar integers ends no process: by 0 it is 0,
//! and its remainder the dividend.
//!
//! ```text
//! %1 = math.exp %0 : f32
//! ```
//! becomes
//! ```text
//! func.func private @math.expf(f32) -> f32
//! %1 = func.call @math.expf(%0) : (f32) -> f32
//! ```
//! The prefix keeps them apart from the program's functions and from those that LLVM knows, until
//! `emit-object` removes it.

use super::emit_object::LIBRARY;
use crate::kernel::{host_function, total_division};
use crate::options::Options;
use crate::pass::{Info, Pass};
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::FunctionType;
use melior::ir::{Module, Region, Type, ValueLike};
use std::collections::BTreeSet;
use stencil_dialects::attribute;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "convert-math-to-calls",
    summary: "call the C library's math functions",
    options: &[],
    read: |_: &Options| Ok(Box::new(ConvertMathToCalls)),
};

/// The pass.
pub struct ConvertMathToCalls;

impl Pass for ConvertMathToCalls {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn takes_branches(&self) -> bool {
        true
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        Ok(host_function::is_there(module))
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let host = host_function::module_of(module)?;
        let body = mlir::entry(host).ok_or_else(|| Error::internal("a module without a body"))?;
        let mut declared = BTreeSet::new();
        for op in mlir::walk(host) {
            let region = Region::new();
            let builder = Builder::new(context, op.location(), mlir::append_block(&region, &[]));
            let value = match mlir::name(op) {
                "arith.minnumf" => smaller(&builder, op, true)?,
                "arith.maxnumf" => smaller(&builder, op, false)?,
                name if total_division::is_partial(op) => match mlir::operands(op).as_slice() {
                    [a, b] => total_division::divide(&builder, name, *a, *b)?,
                    _ => continue,
                },
                name => match function(name) {
                    Some(function) if is_in_library(op) => {
                        let outer = builder.at(body);
                        called(&outer, &builder, op, function, &mut declared)?
                    }
                    _ => continue,
                },
            };
            mlir::move_all_before(builder.block, op);
            for result in mlir::results(op) {
                mlir::replace_uses(result, value);
            }
            mlir::erase(op);
        }
        Ok(())
    }
}

/// The C library's function for an operation, as its version for f64 is called.
fn function(operation: &str) -> Option<&'static str> {
    LIBRARY.iter().find(|(name, _)| *name == operation).map(|(_, function)| *function)
}

/// LLVM computes a remainder of shorter floats by that of f32.
fn is_in_library(op: Op) -> bool {
    let width = mlir::results(op).first().and_then(|value| mlir::bit_width(value.r#type()));
    mlir::name(op) != "arith.remf" || matches!(width, Some(32 | 64))
}

fn called<'c>(
    outer: &Builder<'c>,
    builder: &Builder<'c>,
    op: Op<'c>,
    function: &str,
    declared: &mut BTreeSet<String>,
) -> Result<Val<'c>, Error> {
    let mut operands = mlir::operands(op);
    let own = operands.first().map(|value| value.r#type());
    let own = own.ok_or_else(|| Error::internal("a function of nothing"))?;
    let short = mlir::bit_width(own) == Some(16);
    if short {
        let single = Type::float32(builder.context);
        for operand in &mut operands {
            *operand = builder.value("arith.extf", &[*operand], single, &[])?;
        }
    }
    let types: Vec<Type> = operands.iter().map(|operand| operand.r#type()).collect();
    let ty = types.first().copied().unwrap_or(own);
    let suffix = match mlir::bit_width(ty) {
        Some(32) => "f",
        Some(64) => "",
        _ => return Err(Error::internal(format!("the C library has no {function} of {ty}"))),
    };
    let name = format!("math.{function}{suffix}");
    if declared.insert(name.clone()) {
        let signature = FunctionType::new(builder.context, &types, &[ty]);
        let attributes = [
            ("sym_name", attribute::string(builder.context, &name)),
            ("function_type", attribute::ty(signature.into())),
            host_function::private(builder.context),
        ];
        outer.op_with_regions("func.func", &[], &[], &attributes, vec![Region::new()])?;
    }
    let callee = attribute::symbol(builder.context, &name);
    let value = builder.value("func.call", &operands, ty, &[("callee", callee)])?;
    match short {
        true => builder.value("arith.truncf", &[value], own, &[]),
        false => Ok(value),
    }
}

/// Numbers of arith.cmpf's predicates. The first two are false for a NaN.
const AT_LEAST: i64 = 3;
const AT_MOST: i64 = 5;
const UNORDERED: i64 = 14;
/// The number of `eq` among arith.cmpi's predicates.
const EQUAL: i64 = 0;

/// The smaller of two floats, or the larger: of a number and a NaN the number.
///
/// The second operand is taken if it is at most a limit, for the larger at least. The limit is the
/// first operand, with two exceptions:
///
/// | first operand | limit of the smaller | limit of the larger |
/// |---|---|---|
/// | NaN | infinity | minus infinity |
/// | -0 | the largest number below 0 | -0 |
/// | 0 | 0 | the smallest number above 0 |
///
/// Only a comparison and a select follow the second operand, which in a sweep is the value computed
/// just before. Subnormal numbers must not count as 0.
fn smaller<'c>(builder: &Builder<'c>, op: Op<'c>, smaller: bool) -> Result<Val<'c>, Error> {
    let operands = mlir::operands(op);
    let [first, second] = operands.as_slice() else {
        return Err(Error::internal("the smaller of other than two"));
    };
    let ty = first.r#type();
    let lanes = mlir::vector_cells(ty);
    let like = |text: &str| {
        let text = if lanes > 1 { format!("vector<{lanes}x{text}>") } else { text.to_owned() };
        let ty = mlir::parse_type(ty, &text);
        ty.ok_or_else(|| Error::internal(format!("no type {text}")))
    };
    // Infinity has all bits of the exponent.
    let (bits, infinity) = match ty.to_string() {
        text if text.contains("bf16") => (16, 0x7f80),
        text if text.contains("f64") => (64, 0x7ff0_0000_0000_0000),
        text if text.contains("f32") => (32, 0x7f80_0000),
        _ => (16, 0x7c00),
    };
    let sign = i64::MIN >> (64 - bits);
    let integer = like(&format!("i{bits}"))?;
    let constant = |value| {
        let value = builder.constant(builder.integer_type(bits), value)?;
        match lanes {
            1 => Ok(value),
            _ => builder.value("vector.broadcast", &[value], integer, &[]),
        }
    };
    let truth = like("i1")?;
    let compare = |name: &str, predicate: i64, a: Val<'c>, b: Val<'c>| {
        let predicate = attribute::integer(builder.context, predicate);
        builder.value(name, &[a, b], truth, &[("predicate", predicate)])
    };
    let (zero, end, order) = match smaller {
        true => (sign, infinity, AT_MOST),
        false => (0, infinity + sign, AT_LEAST),
    };
    let own = builder.value("arith.bitcast", &[*first], integer, &[])?;
    let is_zero = compare("arith.cmpi", EQUAL, own, constant(zero)?)?;
    let limit = builder.select(is_zero, constant(zero + 1)?, own)?;
    let is_none = compare("arith.cmpf", UNORDERED, *first, *first)?;
    let limit = builder.select(is_none, constant(end)?, limit)?;
    let limit = builder.value("arith.bitcast", &[limit], ty, &[])?;
    let takes_second = compare("arith.cmpf", order, *second, limit)?;
    builder.select(takes_second, *second, *first)
}
