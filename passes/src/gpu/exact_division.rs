//! `exact-division`: a quotient by a constant is a product and its correction, with the same bits.
//!
//! [`exact_quotient`](crate::analysis::exact_quotient) has the sequence, the proof, and its
//! divisors: small integers that are no powers of two.
//!
//! Needs: kernels of the gpu level. Guarantees: each result has the bits of the division for every
//! dividend, but a NaN may have others; a second run changes nothing. There is no branch, so code
//! around a quotient is scheduled with it. Quotients of `f16` and `bf16` are computed in `f32` and
//! rounded, which has the same bits, because `f32` has more than twice their digits.
//!
//! Leaves alone: divisions that may be products with a reciprocal, divisors of other kinds, and
//! vectors.
//!
//! ```text
//! %q = arith.divf %x, %c5 : f32
//! ```
//! becomes
//! ```text
//! %less = arith.negf %x : f32
//! %d = arith.mulf %x, %z : f32                     // z = 1 / 5
//! %w = math.fma %d, %c5, %less : f32
//! %n = math.fma %w, %minus_z, %d : f32
//! %a = math.absf %x : f32
//! %f = arith.cmpf une, %a, %infinity : f32
//! %q = arith.select %f, %n, %x : f32
//! ```

use crate::analysis::exact_quotient::{Arithmetic, Divisor};
use crate::options::Options;
use crate::pass::{Info, Pass};
use melior::Context;
use melior::ir::{Location, Module, Type, ValueLike};
use std::collections::BTreeMap;
use stencil_dialects::attribute;
use stencil_dialects::builder::{self, Builder};
use stencil_dialects::error::Error;
use stencil_dialects::fast_math::FastMath;
use stencil_dialects::mlir::{self, Op, Val};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "exact-division",
    summary: "compute quotients by constants exactly, without divisions",
    options: &[],
    read: |_: &Options| Ok(Box::new(ExactDivision)),
};

/// The pass.
pub struct ExactDivision;

impl Pass for ExactDivision {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn takes_branches(&self) -> bool {
        true
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        Ok(!quotients(module).is_empty())
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        for quotient in quotients(module) {
            let new = builder::before(context, quotient.op, |builder| quotient.build(builder))?;
            mlir::replace_uses(quotient.result, new);
            mlir::erase(quotient.op);
        }
        Ok(())
    }
}

/// A division that this pass replaces.
struct Quotient<'c> {
    op: Op<'c>,
    dividend: Val<'c>,
    result: Val<'c>,
    divisor: Divisor,
}

/// The divisions of a module's kernels that this pass replaces.
fn quotients<'c>(module: &Module<'c>) -> Vec<Quotient<'c>> {
    let all = mlir::walk(mlir::module_op(module)).into_iter();
    all.filter(|op| mlir::name(*op) == "gpu.func").flat_map(of_kernel).collect()
}

fn of_kernel(kernel: Op<'_>) -> Vec<Quotient<'_>> {
    let all = mlir::walk(kernel);
    let constants: BTreeMap<usize, f64> = all
        .iter()
        .filter(|op| mlir::name(**op) == "arith.constant")
        .filter_map(|op| {
            let value = mlir::attribute(*op, "value").and_then(attribute::as_float)?;
            Some((mlir::key(*mlir::results(*op).first()?), value))
        })
        .collect();
    all.into_iter().filter_map(|op| of_operation(op, &constants)).collect()
}

fn of_operation<'c>(op: Op<'c>, constants: &BTreeMap<usize, f64>) -> Option<Quotient<'c>> {
    if mlir::name(op) != "arith.divf" || FastMath::of(op).may_reciprocal() {
        return None;
    }
    let (operands, results) = (mlir::operands(op), mlir::results(op));
    let (&[dividend, divisor], &[result]) = (operands.as_slice(), results.as_slice()) else {
        return None;
    };
    let by = constants.get(&mlir::key(divisor))?;
    // Shorter floats are divided as f32.
    let bits = mlir::bit_width(result.r#type())?.max(32);
    let divisor = Divisor::of(*by, bits)?;
    Some(Quotient { op, dividend, result, divisor })
}

impl<'c> Quotient<'c> {
    /// The operations of the quotient. The last one has the location of the division, and the
    /// others have it within a name, so that the division is still told from its parts.
    fn build(&self, builder: &Builder<'c>) -> Result<Val<'c>, Error> {
        let location = Location::name(builder.context, INFO.name, builder.location);
        let result = self.parts(&Builder { location, ..*builder })?;
        if let Some(last) = mlir::operations(builder.block).last() {
            mlir::set_location(*last, builder.location);
        }
        Ok(result)
    }

    fn parts(&self, builder: &Builder<'c>) -> Result<Val<'c>, Error> {
        let own = self.result.r#type();
        if mlir::bit_width(own) != Some(16) {
            return self.divisor.quotient(&Code { builder, ty: own }, self.dividend);
        }
        let ty = Type::float32(builder.context);
        let wide = builder.value("arith.extf", &[self.dividend], ty, &[])?;
        let quotient = self.divisor.quotient(&Code { builder, ty }, wide)?;
        builder.value("arith.truncf", &[quotient], own, &[])
    }
}

/// Arithmetic as operations of a kernel on numbers of a type.
struct Code<'b, 'c> {
    builder: &'b Builder<'c>,
    ty: Type<'c>,
}

/// The number of "unordered or not equal" among arith.cmpf's predicates.
const UNEQUAL: i64 = 13;

impl<'c> Arithmetic for Code<'_, 'c> {
    type Number = Val<'c>;
    type Fault = Error;

    fn constant(&self, value: f64) -> Result<Val<'c>, Error> {
        self.builder.float(self.ty, value)
    }

    fn negative(&self, a: Val<'c>) -> Result<Val<'c>, Error> {
        self.builder.value("arith.negf", &[a], self.ty, &[])
    }

    fn product(&self, a: Val<'c>, b: Val<'c>) -> Result<Val<'c>, Error> {
        self.builder.binary("arith.mulf", a, b)
    }

    fn difference(&self, a: Val<'c>, b: Val<'c>) -> Result<Val<'c>, Error> {
        self.builder.binary("arith.subf", a, b)
    }

    fn fused(&self, [a, b]: [Val<'c>; 2], c: Val<'c>) -> Result<Val<'c>, Error> {
        self.builder.value("math.fma", &[a, b, c], self.ty, &[])
    }

    fn unless_infinite(&self, x: Val<'c>, quotient: Val<'c>) -> Result<Val<'c>, Error> {
        let (builder, truth) = (self.builder, self.builder.integer_type(1));
        let size = builder.value("math.absf", &[x], self.ty, &[])?;
        let predicate = [("predicate", attribute::integer(builder.context, UNEQUAL))];
        let operands = [size, self.constant(f64::INFINITY)?];
        let finite = builder.value("arith.cmpf", &operands, truth, &predicate)?;
        builder.select(finite, quotient, x)
    }
}
