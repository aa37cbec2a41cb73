//! The operations of point functions: arithmetic, comparisons and math functions, short
//! floats through wider types.

use super::{Body, is_float, no_operand, number_type, numbers};
use melior::ir::ValueLike;
use stencil_dialects::attribute;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_frontend::ast::{COMPARISON, precedence};
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
        let bf16 = operand.ty == ExprType::Element(Element::Bf16);
        let operand = self.expression(builder, operand)?;
        if bf16 {
            let wider = (Element::Bf16, Element::F32);
            return self.wide(builder, wider, &[operand], |body, inner, wide| {
                body.float(inner, "arith.negf", wide)
            });
        }
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
        let ty = left.ty;
        let operands = (self.expression(builder, left)?, self.expression(builder, right)?);
        self.combine(builder, op, ty, operands)
    }

    fn combine(
        &self,
        builder: &Builder<'c>,
        op: BinaryOp,
        ty: ExprType,
        (left, right): (Val<'c>, Val<'c>),
    ) -> Result<Val<'c>, Error> {
        let float = is_float(ty);
        let unsigned = matches!(ty, ExprType::Element(element) if element.is_unsigned());
        let compares = precedence(op) == COMPARISON;
        let single = ExprType::Element(Element::F32);
        let name = match (op, ty) {
            (_, ExprType::Element(Element::Bf16)) if compares => {
                let wide = |value| numbers::convert(builder, value, Element::Bf16, Element::F32);
                return self.combine(builder, op, single, (wide(left)?, wide(right)?));
            }
            (_, ExprType::Element(element @ Element::Bf16))
            | (BinaryOp::Rem, ExprType::Element(element @ Element::F16)) => {
                let wider = (element, Element::F32);
                return self.wide(builder, wider, &[left, right], |body, inner, wide| match wide {
                    [a, b] => body.combine(inner, op, single, (*a, *b)),
                    _ => Err(no_operand()),
                });
            }
            (BinaryOp::Div | BinaryOp::Rem, ExprType::Element(element)) if !float => {
                return numbers::divide(builder, op, element, left, right);
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

    /// Computes a short float in a wider type, and rounds the result.
    fn wide(
        &self,
        builder: &Builder<'c>,
        (short, wider): (Element, Element),
        operands: &[Val<'c>],
        compute: impl FnOnce(&Self, &Builder<'c>, &[Val<'c>]) -> Result<Val<'c>, Error>,
    ) -> Result<Val<'c>, Error> {
        let operands: Vec<_> = operands
            .iter()
            .map(|operand| numbers::convert(builder, *operand, short, wider))
            .collect::<Result<_, _>>()?;
        numbers::convert(builder, compute(self, builder, &operands)?, wider, short)
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
        self.function(builder, function, number_type(expr)?, &operands)
    }

    fn function(
        &self,
        builder: &Builder<'c>,
        function: MathFunction,
        element: Element,
        operands: &[Val<'c>],
    ) -> Result<Val<'c>, Error> {
        if element == Element::Bf16 {
            let wider = (element, Element::F32);
            return self.wide(builder, wider, operands, |body, inner, wide| {
                body.function(inner, function, Element::F32, wide)
            });
        }
        let (float, unsigned) = (element.is_float(), element.is_unsigned());
        let first = || operands.first().copied().ok_or_else(no_operand);
        let name = match function {
            MathFunction::Sign => return self.sign(builder, element, first()?),
            MathFunction::Abs if unsigned => return first(),
            // The absolute value of the smallest integer is itself.
            MathFunction::Abs if !float => {
                let value = first()?;
                let zero = builder.constant(value.r#type(), 0)?;
                return builder.binary(
                    "arith.maxsi",
                    value,
                    builder.binary("arith.subi", zero, value)?,
                );
            }
            _ => operation(function, float, unsigned),
        };
        let value = match (element, function) {
            // The sum of a product in f32 would be rounded twice.
            (Element::F16, MathFunction::Fma) => {
                self.wide(builder, (element, Element::F64), operands, |body, inner, wide| {
                    body.float(inner, name, wide)
                })?
            }
            (Element::F16, _) => {
                self.wide(builder, (element, Element::F32), operands, |body, inner, wide| {
                    body.float(inner, name, wide)
                })?
            }
            _ if float => self.float(builder, name, operands)?,
            _ => builder.value(name, operands, self.import.element(element), &[])?,
        };
        if function != MathFunction::Rsqrt {
            return Ok(value);
        }
        let one = builder.float(value.r#type(), 1.0)?;
        self.float(builder, "arith.divf", &[one, value])
    }

    /// 1 above 0, -1 below, and else the value itself: a zero or a NaN.
    fn sign(
        &self,
        builder: &Builder<'c>,
        element: Element,
        value: Val<'c>,
    ) -> Result<Val<'c>, Error> {
        let (ty, kind) = (value.r#type(), (element.is_float(), element.is_unsigned()));
        let number = |number: i64| match element.is_float() {
            true => builder.float(ty, number as f64),
            false => builder.constant(ty, number),
        };
        let zero = number(0)?;
        let below = self.compare(builder, BinaryOp::Lt, kind, value, zero)?;
        let above = self.compare(builder, BinaryOp::Gt, kind, value, zero)?;
        let rest = builder.select(below, number(-1)?, value)?;
        builder.select(above, number(1)?, rest)
    }
}

/// The operation of the IR for a function; of a reciprocal square root that for its root.
fn operation(function: MathFunction, float: bool, unsigned: bool) -> &'static str {
    match function {
        MathFunction::Min if float => "arith.minnumf",
        MathFunction::Max if float => "arith.maxnumf",
        MathFunction::Min if unsigned => "arith.minui",
        MathFunction::Max if unsigned => "arith.maxui",
        MathFunction::Min => "arith.minsi",
        MathFunction::Max => "arith.maxsi",
        MathFunction::Abs => "math.absf",
        // A sign has no operation of its own.
        MathFunction::Sign => "",
        MathFunction::Sqrt | MathFunction::Rsqrt => "math.sqrt",
        MathFunction::Cbrt => "math.cbrt",
        MathFunction::Exp => "math.exp",
        MathFunction::Exp2 => "math.exp2",
        MathFunction::Log => "math.log",
        MathFunction::Log2 => "math.log2",
        MathFunction::Sin => "math.sin",
        MathFunction::Cos => "math.cos",
        MathFunction::Tan => "math.tan",
        MathFunction::Atan2 => "math.atan2",
        MathFunction::Tanh => "math.tanh",
        MathFunction::Erf => "math.erf",
        MathFunction::Pow => "math.powf",
        MathFunction::Floor => "math.floor",
        MathFunction::Ceil => "math.ceil",
        MathFunction::Fma => "math.fma",
    }
}
