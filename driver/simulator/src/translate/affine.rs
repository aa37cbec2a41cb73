//! `affine.apply`, `affine.min`, `affine.max` as integer arithmetic.

use super::{Translator, Value, malformed, unsupported};
use crate::program::{Instr, Reg};
use crate::value::{Binary, Kind};
use melior::ir::AffineExpr;
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};

impl<'c> Translator<'c> {
    pub(super) fn affine(&mut self, op: Op<'c>, name: &str) -> Result<(), Error> {
        let combine = match name {
            "apply" => None,
            "min" => Some(Binary::MinS),
            "max" => Some(Binary::MaxS),
            _ => return Err(unsupported(op, format_args!("affine.{name}"))),
        };
        let map =
            mlir::attribute(op, "map").and_then(attribute::as_map).ok_or_else(|| malformed(op))?;
        let operands = (0..mlir::operands(op).len())
            .map(|index| self.number(op, index))
            .collect::<Result<Vec<_>, _>>()?;
        let mut result = None;
        for index in 0..map.result_count() {
            let expression = map.result(index).map_err(|_| malformed(op))?;
            let value = self.expression(op, expression, &operands, map.dim_count())?;
            result = Some(match (result, combine) {
                (Some(before), Some(binary)) => self.arithmetic(binary, before, value),
                _ => value,
            });
        }
        let result = result.ok_or_else(|| malformed(op))?;
        self.define(op, 0, Value::Numbers(self.index, vec![result]))
    }

    fn expression(
        &mut self,
        op: Op<'c>,
        expression: AffineExpr<'c>,
        operands: &[Reg],
        dims: usize,
    ) -> Result<Reg, Error> {
        if expression.is_constant() {
            return Ok(self.constant(expression.constant_value()));
        }
        let operand = |index: usize| operands.get(index).copied().ok_or_else(|| malformed(op));
        if expression.is_dim() {
            return operand(expression.dim_position());
        }
        if expression.is_symbol() {
            return operand(dims + expression.symbol_position());
        }
        let a = self.expression(op, expression.lhs(), operands, dims)?;
        let b = self.expression(op, expression.rhs(), operands, dims)?;
        let binary = if expression.is_add() {
            Binary::AddI
        } else if expression.is_mul() {
            Binary::MulI
        } else if expression.is_floor_div() {
            Binary::FloorDiv
        } else if expression.is_ceil_div() {
            Binary::CeilDiv
        } else if expression.is_mod() {
            Binary::Mod
        } else {
            return Err(malformed(op));
        };
        Ok(self.arithmetic(binary, a, b))
    }

    /// An index operation, folded where both sides are constants.
    pub(super) fn arithmetic(&mut self, binary: Binary, a: Reg, b: Reg) -> Reg {
        if let (Some(x), Some(y)) =
            (self.constants.get(&a).copied(), self.constants.get(&b).copied())
        {
            let folded = match binary {
                Binary::AddI => x.checked_add(y),
                Binary::MulI => x.checked_mul(y),
                _ => None,
            };
            // The operation itself finds a value that is no index of this width.
            let fits = |value: &i64| self.index != Kind::Index32 || i32::try_from(*value).is_ok();
            if let Some(value) = folded.filter(fits) {
                return self.constant(value);
            }
        }
        let to = self.fresh();
        self.emit(Instr::Binary { op: binary, kind: self.index, to, a, b });
        to
    }
}
