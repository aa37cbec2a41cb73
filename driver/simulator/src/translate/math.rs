//! `math`: functions of floats.

use super::{Translator, unsupported};
use crate::program::{Flop, Input, Instr};
use crate::value::{Binary, Cast, Kind, Unary};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Op;

impl<'c> Translator<'c> {
    pub(super) fn math(&mut self, op: Op<'c>, name: &str) -> Result<(), Error> {
        if let Some((unary, flop)) = unary_op(name) {
            let (kind, a) = self.numbers(op, 0)?;
            self.flop = flop;
            let result = if matches!(unary, Unary::IsNan | Unary::IsInf | Unary::IsFinite) {
                Kind::I1
            } else {
                kind
            };
            return self.elementwise(op, result, a.len(), |to, index| Instr::Unary {
                op: unary,
                kind,
                to,
                a: a[index],
            });
        }
        match name {
            "fma" => {
                let (kind, a) = self.numbers(op, 0)?;
                let (b, c) = (self.numbers(op, 1)?.1, self.numbers(op, 2)?.1);
                self.flop = Flop::Fma;
                self.elementwise(op, kind, a.len(), |to, index| Instr::Fma {
                    kind,
                    to,
                    a: a[index],
                    b: b[index],
                    c: c[index],
                    negate_product: false,
                    negate_addend: false,
                })
            }
            "powf" => self.binary(op, Binary::Pow, Flop::Special),
            "atan2" => self.binary(op, Binary::Atan2, Flop::Special),
            "copysign" => self.binary(op, Binary::CopySign, Flop::None),
            "clampf" => self.clamp(op),
            "fpowi" => self.whole_power(op),
            _ => Err(unsupported(op, format_args!("math.{name}"))),
        }
    }

    fn clamp(&mut self, op: Op<'c>) -> Result<(), Error> {
        let (kind, a) = self.numbers(op, 0)?;
        let (low, high) = (self.numbers(op, 1)?.1, self.numbers(op, 2)?.1);
        let raised: Vec<_> = a
            .iter()
            .zip(&low)
            .map(|(a, low)| {
                let to = self.fresh();
                self.emit(Instr::Binary { op: Binary::Maximum, kind, to, a: *a, b: *low });
                to
            })
            .collect();
        self.elementwise(op, kind, a.len(), |to, index| Instr::Binary {
            op: Binary::Minimum,
            kind,
            to,
            a: raised[index],
            b: high[index],
        })
    }

    /// A float to the power of an integer, by way of that integer as a float.
    fn whole_power(&mut self, op: Op<'c>) -> Result<(), Error> {
        let (kind, a) = self.numbers(op, 0)?;
        let (from, exponent) = self.numbers(op, 1)?;
        let zero = self.input(Input::Constant(0));
        let floats: Vec<_> = exponent
            .iter()
            .map(|reg| {
                let to = self.fresh();
                self.emit(Instr::Cast { cast: Cast::SignedToFloat, from, into: kind, to, a: *reg });
                to
            })
            .collect();
        self.flop = Flop::Special;
        self.elementwise(op, kind, a.len(), |to, index| Instr::Binary {
            op: Binary::Pow,
            kind,
            to,
            a: a[index],
            b: floats.get(index).copied().unwrap_or(zero),
        })
    }
}

pub(crate) fn unary_op(name: &str) -> Option<(Unary, Flop)> {
    Some(match name {
        "absf" => (Unary::AbsF, Flop::None),
        "sqrt" => (Unary::Sqrt, Flop::Sqrt),
        "rsqrt" => (Unary::Rsqrt, Flop::Sqrt),
        "cbrt" => (Unary::Cbrt, Flop::Special),
        "erf" => (Unary::Erf, Flop::Special),
        "exp" => (Unary::Exp, Flop::Special),
        "exp2" => (Unary::Exp2, Flop::Special),
        "expm1" => (Unary::ExpM1, Flop::Special),
        "log" => (Unary::Log, Flop::Special),
        "log2" => (Unary::Log2, Flop::Special),
        "log10" => (Unary::Log10, Flop::Special),
        "log1p" => (Unary::Log1p, Flop::Special),
        "sin" => (Unary::Sin, Flop::Special),
        "cos" => (Unary::Cos, Flop::Special),
        "tan" => (Unary::Tan, Flop::Special),
        "asin" => (Unary::Asin, Flop::Special),
        "acos" => (Unary::Acos, Flop::Special),
        "atan" => (Unary::Atan, Flop::Special),
        "sinh" => (Unary::Sinh, Flop::Special),
        "cosh" => (Unary::Cosh, Flop::Special),
        "tanh" => (Unary::Tanh, Flop::Special),
        "floor" => (Unary::Floor, Flop::None),
        "ceil" => (Unary::Ceil, Flop::None),
        "trunc" => (Unary::Trunc, Flop::None),
        "round" => (Unary::Round, Flop::None),
        "roundeven" => (Unary::RoundEven, Flop::None),
        "absi" => (Unary::AbsI, Flop::None),
        "ctpop" => (Unary::Ctpop, Flop::None),
        "ctlz" => (Unary::Ctlz, Flop::None),
        "cttz" => (Unary::Cttz, Flop::None),
        "isnan" => (Unary::IsNan, Flop::None),
        "isinf" => (Unary::IsInf, Flop::None),
        "isfinite" => (Unary::IsFinite, Flop::None),
        _ => return None,
    })
}
