//! Pieces and boundary rules as point functions: a `func.func` whose arguments are what it reads.

use super::{Import, numbers};
use melior::ir::ValueLike;
use std::collections::HashMap;
use stencil_dialects::attribute;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::{self, Argument};
use stencil_frontend::program::{
    BinaryOp, Expr, ExprKind, LocalId, MathFunction, Program, Type as ExprType, UnaryOp,
};
use stencil_frontend::source::Span;
use stencil_runtime::array::Element;

impl<'c> Import<'c, '_> {
    /// A private `func.func` that returns some values; its arguments are what they read.
    pub(super) fn point_function(
        &self,
        name: &str,
        span: Span,
        lets: &[(LocalId, Expr)],
        values: &[Expr],
    ) -> Result<(), Error> {
        let arguments = Footprint::of(self, lets.iter().map(|(_, value)| value).chain(values));
        let builder = self.at(span);
        let types: Vec<_> =
            arguments.list.iter().map(|(argument, ty)| (argument.clone(), self.ty(*ty))).collect();
        let results: Vec<_> = values.iter().map(|value| self.ty(value.ty)).collect();
        let (_, entry) = stencil::point_function(&builder, name, &types, &results)?;
        let mut body = Body {
            import: self,
            arguments: &arguments,
            values: mlir::arguments(entry),
            locals: HashMap::new(),
        };
        let inner = builder.at(entry);
        for (local, value) in lets {
            let value = body.expression(&inner, value)?;
            body.locals.insert(*local, value);
        }
        let values = values
            .iter()
            .map(|value| body.expression(&inner, value))
            .collect::<Result<Vec<_>, _>>()?;
        inner.op("func.return", &values, &[], &[])?;
        Ok(())
    }
}

/// The arguments of a point function: everything it reads, each once, in the order of appearance.
#[derive(Default)]
struct Footprint<'p> {
    list: Vec<(Argument<'p>, ExprType)>,
}

impl<'p> Footprint<'p> {
    fn of(import: &Import<'_, 'p>, values: impl Iterator<Item = &'p Expr>) -> Self {
        let mut footprint = Self::default();
        for value in values {
            footprint.collect(import.program, value);
        }
        footprint
    }

    fn collect(&mut self, program: &'p Program, expr: &'p Expr) {
        if let Some(argument) = argument(program, expr) {
            if self.list.iter().all(|(known, _)| *known != argument) {
                self.list.push((argument, expr.ty));
            }
            return;
        }
        expr.children().into_iter().for_each(|child| self.collect(program, child));
    }
}

/// What an expression stands for outside the function, if it is a leaf of that kind.
fn argument<'p>(program: &'p Program, expr: &'p Expr) -> Option<Argument<'p>> {
    match &expr.kind {
        ExprKind::Read { field, offset } => {
            Some(Argument::Read { field: &program.fields[*field].name, offset: offset.clone() })
        }
        ExprKind::Scalar(id) => Some(Argument::Scalar(&program.scalars[*id].name)),
        ExprKind::Param(id) => Some(Argument::Param(&program.params[*id].name)),
        ExprKind::Coordinate(dimension) => Some(Argument::Coordinate(*dimension)),
        ExprKind::Step => Some(Argument::Step),
        ExprKind::Nearest(_) => Some(Argument::Nearest),
        _ => None,
    }
}

/// The body of one point function.
struct Body<'c, 'p, 'i> {
    import: &'i Import<'c, 'p>,
    arguments: &'i Footprint<'p>,
    values: Vec<Val<'c>>,
    locals: HashMap<LocalId, Val<'c>>,
}

impl<'c, 'p> Body<'c, 'p, '_> {
    fn expression(&mut self, block: &Builder<'c>, expr: &'p Expr) -> Result<Val<'c>, Error> {
        let builder = &Builder { location: self.import.at(expr.span).location, ..*block };
        if let Some(argument) = argument(self.import.program, expr) {
            let position = self.arguments.list.iter().position(|(known, _)| *known == argument);
            return position
                .and_then(|position| self.values.get(position))
                .copied()
                .ok_or_else(|| Error::internal("a leaf is no argument"));
        }
        let ty = self.import.ty(expr.ty);
        match &expr.kind {
            ExprKind::Float(value) => builder.float(ty, *value),
            ExprKind::Int(value) => {
                let element = number_type(expr)?;
                if element.is_float() {
                    builder.float(ty, *value as f64)
                } else {
                    builder.constant(ty, numbers::bits(element, *value))
                }
            }
            ExprKind::Bool(value) => builder.constant(ty, i64::from(*value)),
            ExprKind::Local(local) => self.local(*local),
            ExprKind::Let(local, value, body) => {
                let value = self.expression(builder, value)?;
                self.locals.insert(*local, value);
                self.expression(builder, body)
            }
            ExprKind::Unary(UnaryOp::Neg, inner) => {
                let inner = self.expression(builder, inner)?;
                if is_float(expr.ty) {
                    self.float(builder, "arith.negf", &[inner])
                } else {
                    builder.binary("arith.subi", builder.constant(ty, 0)?, inner)
                }
            }
            ExprKind::Unary(UnaryOp::Not, inner) => {
                let inner = self.expression(builder, inner)?;
                builder.binary("arith.xori", inner, builder.constant(ty, 1)?)
            }
            ExprKind::Binary(op, left, right) => self.binary(builder, *op, left, right),
            ExprKind::If(condition, then, otherwise) => {
                let condition = self.expression(builder, condition)?;
                // Both branches need `self`, one after the other.
                let body = std::cell::RefCell::new(self);
                let branch = |part: &'p Expr| {
                    let body = &body;
                    move |inner: &Builder<'c>| Ok(vec![body.borrow_mut().expression(inner, part)?])
                };
                let values = builder.choose(condition, &[ty], branch(then), branch(otherwise))?;
                values.first().copied().ok_or_else(|| Error::internal("scf.if without a result"))
            }
            ExprKind::Call(function, operands) => self.call(builder, *function, operands, expr),
            ExprKind::Cast(inner) => {
                let value = self.expression(builder, inner)?;
                numbers::convert(builder, value, number_type(inner)?, number_type(expr)?)
            }
            ExprKind::Gather { field, at } => {
                let at = at
                    .iter()
                    .map(|at| self.expression(builder, at))
                    .collect::<Result<Vec<_>, _>>()?;
                stencil::gather(builder, &self.import.program.fields[*field].name, &at, ty)
            }
            ExprKind::Read { .. }
            | ExprKind::Scalar(_)
            | ExprKind::Param(_)
            | ExprKind::Coordinate(_)
            | ExprKind::Step
            | ExprKind::Nearest(_) => Err(Error::internal("a leaf that is no argument")),
        }
    }

    fn local(&self, local: LocalId) -> Result<Val<'c>, Error> {
        self.locals.get(&local).copied().ok_or_else(|| Error::internal("a local before its value"))
    }

    /// A floating-point operation with the program's fast-math flags.
    fn float(
        &self,
        builder: &Builder<'c>,
        name: &str,
        operands: &[Val<'c>],
    ) -> Result<Val<'c>, Error> {
        let ty = operands.first().map(|operand| operand.r#type()).ok_or_else(no_operand)?;
        builder.value(name, operands, ty, &[self.import.flags])
    }

    fn binary(
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
            (BinaryOp::And, _) => ["", "arith.andi"],
            (BinaryOp::Or, _) => ["", "arith.ori"],
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

    fn call(
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

fn no_operand() -> Error {
    Error::internal("an operation without operands")
}

/// The type of an expression that is a number.
fn number_type(expr: &Expr) -> Result<Element, Error> {
    match expr.ty {
        ExprType::Element(element) => Ok(element),
        ExprType::Bool => Err(Error::internal("a condition for a number")),
    }
}

fn is_float(ty: ExprType) -> bool {
    matches!(ty, ExprType::Element(element) if element.is_float())
}
