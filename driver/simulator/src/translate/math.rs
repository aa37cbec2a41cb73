//! `math`: functions of floats.

use super::{Translator, unsupported};
use crate::program::{Flop, Instr};
use crate::value::{Binary, Kind, Unary};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Op;

impl<'c> Translator<'c> {
    pub(super) fn math(&mut self, op: Op<'c>, name: &str) -> Result<(), Error> {
        if let Some((unary, flop)) = unary_op(name) {
            let (kind, a) = self.numbers(op, 0)?;
            self.flop = flop;
            let result =
                if matches!(unary, Unary::IsNan | Unary::IsFinite) { Kind::I1 } else { kind };
            return self.elementwise(op, result, a.len(), |to, index| Instr::Unary {
                op: unary,
                kind,
                to,
                a: a[index],
            });
        }
        if let Some((binary, flop)) = binary_op(name) {
            return self.binary(op, binary, flop);
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
            "clampf" => self.clamp(op),
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
}

/// An operation of `math` on two values.
pub(crate) fn binary_op(name: &str) -> Option<(Binary, Flop)> {
    Some(match name {
        "powf" => (Binary::Pow, Flop::Special),
        "atan2" => (Binary::Atan2, Flop::Special),
        "copysign" => (Binary::CopySign, Flop::None),
        _ => return None,
    })
}

/// An operation of `math` on one value.
pub(crate) fn unary_op(name: &str) -> Option<(Unary, Flop)> {
    Some(match name {
        "absf" => (Unary::AbsF, Flop::None),
        "sqrt" => (Unary::Sqrt, Flop::Sqrt),
        "rsqrt" => (Unary::Rsqrt, Flop::Sqrt),
        "cbrt" => (Unary::Cbrt, Flop::Special),
        "erf" => (Unary::Erf, Flop::Special),
        "erfc" => (Unary::Erfc, Flop::Special),
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
        "asinh" => (Unary::Asinh, Flop::Special),
        "acosh" => (Unary::Acosh, Flop::Special),
        "atanh" => (Unary::Atanh, Flop::Special),
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
        "isfinite" => (Unary::IsFinite, Flop::None),
        _ => return None,
    })
}
