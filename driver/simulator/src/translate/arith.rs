//! `arith`: numbers, element by element.

use super::{Product, Translator, Value, malformed, unsupported};
use crate::program::{Flop, Input, Instr, Reg};
use crate::value::{Binary, Cast, Kind, Predicate, Unary};
use melior::ir::Attribute;
use melior::ir::attribute::{DenseElementsAttribute, FloatAttribute, IntegerAttribute};
use stencil_dialects::error::Error;
use stencil_dialects::fast_math::FastMath;
use stencil_dialects::mlir::{self, Op};

impl<'c> Translator<'c> {
    pub(super) fn arith(&mut self, op: Op<'c>, name: &str) -> Result<(), Error> {
        if let Some((binary, flop)) = binary_op(name) {
            return self.binary(op, binary, flop);
        }
        if let Some(cast) = cast_op(name) {
            return self.cast(op, cast);
        }
        match name {
            "constant" => self.constant_op(op),
            "negf" => {
                let (kind, a) = self.numbers(op, 0)?;
                self.elementwise(op, kind, a.len(), |to, index| Instr::Unary {
                    op: Unary::NegF,
                    kind,
                    to,
                    a: a[index],
                })
            }
            "cmpi" | "cmpf" => {
                let number = self
                    .integer_attribute(op, "predicate")
                    .and_then(|number| u8::try_from(number).ok())
                    .ok_or_else(|| malformed(op))?;
                let predicate = if name == "cmpi" {
                    Predicate::Integer(number)
                } else {
                    Predicate::Float(outcomes(number))
                };
                let ((kind, a), (_, b)) = (self.numbers(op, 0)?, self.numbers(op, 1)?);
                self.elementwise(op, Kind::I1, a.len(), |to, index| Instr::Compare {
                    predicate,
                    kind,
                    to,
                    a: a[index],
                    b: b[index],
                })
            }
            "select" if self.memref_of(op, 1).is_ok() => self.select_memref(op),
            "select" => {
                let (_, conditions) = self.numbers(op, 0)?;
                let ((kind, a), (_, b)) = (self.numbers(op, 1)?, self.numbers(op, 2)?);
                self.elementwise(op, kind, a.len(), |to, index| {
                    let condition =
                        if conditions.len() == a.len() { conditions[index] } else { conditions[0] };
                    Instr::Select { to, condition, a: a[index], b: b[index] }
                })
            }
            _ => Err(unsupported(op, format_args!("arith.{name}"))),
        }
    }

    pub(super) fn binary(&mut self, op: Op<'c>, binary: Binary, flop: Flop) -> Result<(), Error> {
        let ((kind, a), (_, b)) = (self.numbers(op, 0)?, self.numbers(op, 1)?);
        if matches!(binary, Binary::AddF | Binary::SubF)
            && self.contract(op, binary, kind, &a, &b)?
        {
            return Ok(());
        }
        self.flop = flop;
        let first = self.here();
        self.elementwise(op, kind, a.len(), |to, index| Instr::Binary {
            op: binary,
            kind,
            to,
            a: a[index],
            b: b[index],
        })?;
        if binary == Binary::MulF && FastMath::of(op).may_contract() {
            let result = mlir::results(op).first().copied().ok_or_else(|| malformed(op))?;
            if self.uses.get(&mlir::key(result)) == Some(&1) {
                let factors = a.into_iter().zip(b).collect();
                self.products
                    .insert(mlir::key(result), Product { code: first..self.here(), factors });
            }
        }
        Ok(())
    }

    /// A sum with a product that nobody else uses, where both allow it, counts as one operation; it
    /// is one where the settings say so.
    fn contract(
        &mut self,
        op: Op<'c>,
        binary: Binary,
        kind: Kind,
        a: &[Reg],
        b: &[Reg],
    ) -> Result<bool, Error> {
        if !FastMath::of(op).may_contract() {
            return Ok(false);
        }
        let mut found = None;
        for (index, addend) in [(1, a), (0, b)] {
            if let Some(product) = self.products.remove(&mlir::key(self.operand_of(op, index)?)) {
                found = Some((product, addend, index == 1));
                break;
            }
        }
        let Some((product, addend, product_is_second)) = found else { return Ok(false) };
        for place in product.code.clone() {
            if let Some(origin) = self.kernel.origins.get_mut(place) {
                origin.flop = Flop::None;
            }
        }
        self.flop = Flop::Fma;
        let subtract = binary == Binary::SubF;
        if !self.settings.contract {
            self.elementwise(op, kind, a.len(), |to, index| Instr::Binary {
                op: binary,
                kind,
                to,
                a: a[index],
                b: b[index],
            })?;
            return Ok(true);
        }
        let factors = product.factors;
        self.elementwise(op, kind, a.len(), |to, index| {
            let (x, y) = factors[index];
            Instr::Fma {
                kind,
                to,
                a: x,
                b: y,
                c: addend[index],
                negate_product: subtract && product_is_second,
                negate_addend: subtract && !product_is_second,
            }
        })?;
        Ok(true)
    }

    pub(super) fn cast(&mut self, op: Op<'c>, cast: Cast) -> Result<(), Error> {
        let (from, a) = self.numbers(op, 0)?;
        let (into, count) = self.shape(op, self.result_type(op)?)?;
        if count != a.len() {
            return Err(unsupported(op, "casts that change the number of elements"));
        }
        self.elementwise(op, into, count, |to, index| Instr::Cast {
            cast,
            from,
            into,
            to,
            a: a[index],
        })
    }

    fn constant_op(&mut self, op: Op<'c>) -> Result<(), Error> {
        let attribute = mlir::attribute(op, "value").ok_or_else(|| malformed(op))?;
        let (kind, count) = self.shape(op, self.result_type(op)?)?;
        let regs = (0..count)
            .map(|index| {
                let bits = element(attribute, kind, index).ok_or_else(|| malformed(op))?;
                Ok(if kind.is_float() {
                    self.input(Input::Constant(bits))
                } else {
                    self.constant(bits as i64)
                })
            })
            .collect::<Result<_, Error>>()?;
        self.define(op, 0, Value::Numbers(kind, regs))
    }
}

/// An element of a constant, in the register's form.
pub(crate) fn element(attribute: Attribute, kind: Kind, index: usize) -> Option<u64> {
    if let Ok(integer) = IntegerAttribute::try_from(attribute) {
        return Some(kind.wrap(integer.value()));
    }
    if let Ok(float) = FloatAttribute::try_from(attribute) {
        return Some(kind.number(float.value()));
    }
    let dense = DenseElementsAttribute::try_from(attribute).ok()?;
    let index = if dense.is_splat() { 0 } else { index };
    match kind {
        // The C interface reads no f16; the text is exact.
        Kind::F16 | Kind::Bf16 => {
            let text = attribute.to_string();
            let list =
                text.strip_prefix("dense<")?.split('>').next()?.trim_matches(['[', ']']).to_owned();
            let number = list.split(',').nth(index)?.trim();
            match number.strip_prefix("0x") {
                Some(bits) => u64::from_str_radix(bits, 16).ok(),
                None => number.parse().ok().map(|value| kind.number(value)),
            }
        }
        Kind::F32 => dense.f32_element(index).ok().map(|value| u64::from(value.to_bits())),
        Kind::F64 => dense.f64_element(index).ok().map(f64::to_bits),
        Kind::I1 => dense.bool_element(index).ok().map(u64::from),
        Kind::I8 => dense.i8_element(index).ok().map(|value| value as u64),
        Kind::I16 => dense.i16_element(index).ok().map(|value| value as u64),
        Kind::I32 => dense.i32_element(index).ok().map(|value| value as u64),
        Kind::I64 => dense.i64_element(index).ok().map(|value| value as u64),
        Kind::Index32 | Kind::Index64 => dense.index_element(index).ok(),
    }
}

/// MLIR's number of a float comparison as the set of outcomes that make it true.
pub(crate) fn outcomes(number: u8) -> u8 {
    match number {
        0..=7 => number,
        8..=13 => number + 1,
        14 => 8,
        _ => 15,
    }
}

pub(crate) fn binary_op(name: &str) -> Option<(Binary, Flop)> {
    Some(match name {
        "addf" => (Binary::AddF, Flop::Add),
        "subf" => (Binary::SubF, Flop::Add),
        "mulf" => (Binary::MulF, Flop::Mul),
        "divf" => (Binary::DivF, Flop::Div),
        "remf" => (Binary::RemF, Flop::Special),
        "maximumf" => (Binary::Maximum, Flop::None),
        "minimumf" => (Binary::Minimum, Flop::None),
        "maxnumf" => (Binary::Maxnum, Flop::None),
        "minnumf" => (Binary::Minnum, Flop::None),
        "addi" => (Binary::AddI, Flop::None),
        "subi" => (Binary::SubI, Flop::None),
        "muli" => (Binary::MulI, Flop::None),
        "divsi" => (Binary::DivS, Flop::None),
        "divui" => (Binary::DivU, Flop::None),
        "remsi" => (Binary::RemS, Flop::None),
        "remui" => (Binary::RemU, Flop::None),
        "floordivsi" => (Binary::FloorDiv, Flop::None),
        "ceildivsi" => (Binary::CeilDiv, Flop::None),
        "ceildivui" => (Binary::CeilDivU, Flop::None),
        "andi" => (Binary::And, Flop::None),
        "ori" => (Binary::Or, Flop::None),
        "xori" => (Binary::Xor, Flop::None),
        "shli" => (Binary::Shl, Flop::None),
        "shrsi" => (Binary::ShrS, Flop::None),
        "shrui" => (Binary::ShrU, Flop::None),
        "maxsi" => (Binary::MaxS, Flop::None),
        "minsi" => (Binary::MinS, Flop::None),
        "maxui" => (Binary::MaxU, Flop::None),
        "minui" => (Binary::MinU, Flop::None),
        _ => return None,
    })
}

pub(crate) fn cast_op(name: &str) -> Option<Cast> {
    Some(match name {
        "extsi" | "trunci" | "index_cast" => Cast::Signed,
        "extui" | "index_castui" => Cast::Unsigned,
        "sitofp" => Cast::SignedToFloat,
        "uitofp" => Cast::UnsignedToFloat,
        "fptosi" => Cast::FloatToSigned,
        "fptoui" => Cast::FloatToUnsigned,
        "extf" | "truncf" => Cast::Float,
        "bitcast" => Cast::Bits,
        _ => return None,
    })
}
