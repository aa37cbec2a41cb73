//! The operations of point functions: arithmetic, comparisons and math functions, f16 through
//! wider types.

use super::{Body, is_float, no_operand, number_type, numbers};
use melior::ir::ValueLike;
use stencil_dialects::attribute;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_frontend::program::{BinaryOp, Expr, MathFunction, Type as ExprType, UnaryOp};
use stencil_runtime::array::Element;

impl<'c, 'p> Body<'c, 'p, '_> {
    /// A floating-point operation with the program's fast-math flags.
    pub(super) fn float(
        &self,
        builder: &Builder<'c>,
        name: &str,
        operands: &[Val<'c>],
    ) -> Result<Val<'c>, Error> {
        let ty = operands.first().map(|operand| operand.r#type()).ok_or_else(no_operand)?;
        builder.value(name, operands, ty, &[self.import.flags])
    }

    pub(super) fn unary(
        &mut self,
        builder: &Builder<'c>,
        op: UnaryOp,
        operand: &'p Expr,
    ) -> Result<Val<'c>, Error> {
        let float = is_float(operand.ty);
        let operand = self.expression(builder, operand)?;
        let constant = |value| builder.constant(operand.r#type(), value);
        match op {
            UnaryOp::Neg if float => self.float(builder, "arith.negf", &[operand]),
            UnaryOp::Neg => builder.binary("arith.subi", constant(0)?, operand),
            UnaryOp::Not => builder.binary("arith.xori", operand, constant(1)?),
            UnaryOp::Inverse => builder.binary("arith.xori", operand, constant(-1)?),
        }
    }

    pub(super) fn binary(
        &mut self,
        builder: &Builder<'c>,
        op: BinaryOp,
        left: &'p Expr,
        right: &'p Expr,
    ) -> Result<Val<'c>, Error> {
        let (ty, float) = (left.ty, is_float(left.ty));
        let unsigned = matches!(ty, ExprType::Element(element) if element.is_unsigned());
        let (left, right) = (self.expression(builder, left)?, self.expression(builder, right)?);
        let name = match (op, ty) {
            (BinaryOp::Div | BinaryOp::Rem, ExprType::Element(element)) if !float => {
                return numbers::divide(builder, op, element, left, right);
            }
            (BinaryOp::Rem, ExprType::Element(Element::F16)) => {
                let operands = [left, right];
                return self.wide(builder, Element::F32, &operands, |body, inner, operands| {
                    body.float(inner, "arith.remf", operands)
                });
            }
            (BinaryOp::Add, _) => ["arith.addf", "arith.addi"],
            (BinaryOp::Sub, _) => ["arith.subf", "arith.subi"],
            (BinaryOp::Mul, _) => ["arith.mulf", "arith.muli"],
            (BinaryOp::Div, _) => ["arith.divf", ""],
            (BinaryOp::Rem, _) => ["arith.remf", ""],
            (BinaryOp::And | BinaryOp::BitAnd, _) => ["", "arith.andi"],
            (BinaryOp::Or | BinaryOp::BitOr, _) => ["", "arith.ori"],
            (BinaryOp::BitXor, _) => ["", "arith.xori"],
            (BinaryOp::Shl | BinaryOp::Shr, ExprType::Element(element)) => {
                return numbers::shift(builder, op, element, left, right);
            }
            _ => return self.compare(builder, op, (float, unsigned), left, right),
        };
        match name {
            [name, _] if float => self.float(builder, name, &[left, right]),
            [_, name] => builder.binary(name, left, right),
        }
    }

    fn compare(
        &self,
        builder: &Builder<'c>,
        op: BinaryOp,
        (float, unsigned): (bool, bool),
        left: Val<'c>,
        right: Val<'c>,
    ) -> Result<Val<'c>, Error> {
        // Predicates of arith.cmpf (ordered, but "not equal" is true of a NaN) and arith.cmpi.
        let [ordered, signed, above] = match op {
            BinaryOp::Eq => [1, 0, 0],
            BinaryOp::Ne => [13, 1, 1],
            BinaryOp::Lt => [4, 2, 6],
            BinaryOp::Le => [5, 3, 7],
            BinaryOp::Gt => [2, 4, 8],
            _ => [3, 5, 9],
        };
        let (name, predicate) = match (float, unsigned) {
            (true, _) => ("arith.cmpf", ordered),
            (_, false) => ("arith.cmpi", signed),
            (_, true) => ("arith.cmpi", above),
        };
        let predicate = attribute::integer(builder.context, predicate);
        builder.value(name, &[left, right], builder.integer_type(1), &[("predicate", predicate)])
    }

    /// Computes f16 in a wider type, and rounds the result.
    fn wide(
        &self,
        builder: &Builder<'c>,
        wider: Element,
        operands: &[Val<'c>],
        compute: impl FnOnce(&Self, &Builder<'c>, &[Val<'c>]) -> Result<Val<'c>, Error>,
    ) -> Result<Val<'c>, Error> {
        let operands: Vec<_> = operands
            .iter()
            .map(|operand| numbers::convert(builder, *operand, Element::F16, wider))
            .collect::<Result<_, _>>()?;
        numbers::convert(builder, compute(self, builder, &operands)?, wider, Element::F16)
    }

    pub(super) fn call(
        &mut self,
        builder: &Builder<'c>,
        function: MathFunction,
        operands: &'p [Expr],
        expr: &Expr,
    ) -> Result<Val<'c>, Error> {
        let operands = operands
            .iter()
            .map(|operand| self.expression(builder, operand))
            .collect::<Result<Vec<_>, _>>()?;
        let element = number_type(expr)?;
        let (float, unsigned) = (element.is_float(), element.is_unsigned());
        let name = match function {
            MathFunction::Min if float => "arith.minnumf",
            MathFunction::Max if float => "arith.maxnumf",
            MathFunction::Min if unsigned => "arith.minui",
            MathFunction::Max if unsigned => "arith.maxui",
            MathFunction::Min => "arith.minsi",
            MathFunction::Max => "arith.maxsi",
            MathFunction::Abs if float => "math.absf",
            MathFunction::Abs if unsigned => {
                return operands.first().copied().ok_or_else(no_operand);
            }
            // The absolute value of the smallest integer is itself.
            MathFunction::Abs => {
                let value = operands.first().copied().ok_or_else(no_operand)?;
                let negative =
                    builder.binary("arith.subi", builder.constant(value.r#type(), 0)?, value)?;
                return builder.binary("arith.maxsi", value, negative);
            }
            MathFunction::Sqrt | MathFunction::Rsqrt => "math.sqrt",
            MathFunction::Exp => "math.exp",
            MathFunction::Log => "math.log",
            MathFunction::Sin => "math.sin",
            MathFunction::Cos => "math.cos",
            MathFunction::Tan => "math.tan",
            MathFunction::Tanh => "math.tanh",
            MathFunction::Pow => "math.powf",
            MathFunction::Floor => "math.floor",
            MathFunction::Ceil => "math.ceil",
            MathFunction::Fma => "math.fma",
        };
        let value = match (element, function) {
            // The sum of a product in f32 would be rounded twice.
            (Element::F16, MathFunction::Fma) => {
                self.wide(builder, Element::F64, &operands, |body, inner, wide| {
                    body.float(inner, name, wide)
                })?
            }
            (Element::F16, _) => {
                self.wide(builder, Element::F32, &operands, |body, inner, wide| {
                    body.float(inner, name, wide)
                })?
            }
            _ if float => self.float(builder, name, &operands)?,
            _ => builder.value(name, &operands, self.import.element(element), &[])?,
        };
        if function != MathFunction::Rsqrt {
            return Ok(value);
        }
        let one = builder.float(value.r#type(), 1.0)?;
        self.float(builder, "arith.divf", &[one, value])
    }
}
