//! Writes a checked program as `stencil` IR: declarations, one point function a piece, one
//! `stencil.apply` a function. Every operation carries the place in the source that asks for it.

mod maps;
mod numbers;
mod operations;
mod outside;
mod reductions;

use crate::stack;
use melior::Context;
use melior::ir::attribute::{FloatAttribute, IntegerAttribute};
use melior::ir::{Attribute, Location, Module, Type};
use std::collections::HashMap;
use stencil_dialects::attribute;
use stencil_dialects::builder::{Builder, Named};
use stencil_dialects::error::Error;
use stencil_dialects::fast_math::FastMath;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::{self, Argument, Boundary, Piece, Repetition, Role};
use stencil_frontend::program::{
    self, Expr, ExprKind, Function, LocalId, ParamId, Program, Role as FieldRole, Type as ExprType,
};
use stencil_frontend::source::{Source, Span};
use stencil_passes::target::Arithmetic;
use stencil_runtime::array::Element;
use stencil_runtime::number::Number;

/// Stack for an import. The walks over an expression recurse, and one may have some thousand levels
/// once the rules of absolute reads are written out.
const STACK: usize = 64 << 20;

/// Builds the module, whatever the stack of the thread.
pub fn module<'c>(
    context: &'c Context,
    program: &Program,
    source: &Source,
    arithmetic: Arithmetic,
) -> Result<Module<'c>, Error> {
    stack::grow(STACK, || build(context, program, source, arithmetic))?
}

fn build<'c>(
    context: &'c Context,
    program: &Program,
    source: &Source,
    arithmetic: Arithmetic,
) -> Result<Module<'c>, Error> {
    let program = &outside::written_out(program);
    let module = Module::new(Location::new(context, &source.name, 1, 1));
    let runtime: Vec<ParamId> = program
        .params
        .iter()
        .filter(|(_, param)| param.value.is_none())
        .map(|(id, _)| id)
        .collect();
    let flags = match arithmetic {
        Arithmetic { fast_math: true, .. } => FastMath::FAST,
        Arithmetic { contract: true, .. } => FastMath::CONTRACT,
        _ => FastMath::NONE,
    };
    let import = Import {
        builder: Builder::new(context, Location::unknown(context), mlir::body(&module)),
        program,
        source,
        runtime,
        flags: flags.attribute(context)?,
    };
    import.whole(&module)?;
    Ok(module)
}

struct Import<'c, 'p> {
    builder: Builder<'c>,
    program: &'p Program,
    source: &'p Source,
    runtime: Vec<ParamId>,
    /// The fast-math flags of every floating-point operation.
    flags: Named<'c, 'static>,
}

impl<'c> Import<'c, '_> {
    fn at(&self, span: Span) -> Builder<'c> {
        let place = self.source.place(span.start);
        Builder {
            location: Location::new(
                self.builder.context,
                &self.source.name,
                place.line,
                place.column,
            ),
            ..self.builder
        }
    }

    fn whole(&self, module: &Module<'c>) -> Result<(), Error> {
        let context = self.builder.context;
        let program = self.program;
        mlir::set_attribute(
            mlir::module_op(module),
            "sym_name",
            attribute::string(context, &program.name),
        );
        let params: Vec<_> =
            self.runtime.iter().map(|id| program.params[*id].name.as_str()).collect();
        let constants: Vec<_> = program
            .params
            .values()
            .filter_map(|param| param.value.map(|value| (param.name.as_str(), value)))
            .collect();
        stencil::set_program(
            &self.builder,
            module,
            &params,
            &constants,
            self.map(std::slice::from_ref(&program.steps)),
        );
        for grid in program.grids.values() {
            let (lower, upper) = self.bounds(&grid.region);
            stencil::grid(&self.at(grid.span), &grid.name, lower, upper)?;
        }
        for scalar in program.scalars.values() {
            let builder = self.at(scalar.span);
            let ty = self.declared(scalar.element)?;
            let default = scalar.default.as_ref().and_then(|value| value.number(scalar.element));
            let default = default.map(|number| self.number_attribute(ty, number));
            stencil::scalar(&builder, &scalar.name, ty, default)?;
        }
        for field in program.fields.values() {
            self.field(field)?;
        }
        for check in &program.checks {
            let unless_empty = check.unless_empty.as_ref().map(|region| self.bounds(region));
            stencil::check(
                &self.at(check.span),
                self.condition(&check.value),
                unless_empty,
                &check.message,
            )?;
        }
        for (place, function) in program.functions.iter().enumerate() {
            self.reductions(place)?;
            self.function(function)?;
        }
        self.reductions(program.functions.len())?;
        self.until()
    }

    /// A field, after the function that gives its values outside if there is one.
    fn field(&self, field: &program::Field) -> Result<(), Error> {
        let role = match field.role {
            FieldRole::State => Role::State,
            FieldRole::Const => Role::Const,
            FieldRole::Temp => Role::Temp,
            FieldRole::Reduction => Role::Reduction,
        };
        let outside;
        let boundary = match &field.boundary {
            None => None,
            Some(program::Boundary::Nearest) => Some(Boundary::Nearest),
            Some(program::Boundary::Periodic) => Some(Boundary::Periodic),
            Some(program::Boundary::Reflect) => Some(Boundary::Reflect),
            Some(program::Boundary::Value(value)) => {
                // No name of the language has a dot, so that this one is free.
                outside = format!("{}.boundary", field.name);
                self.point_function(&outside, value.span, &[], std::slice::from_ref(value))?;
                Some(Boundary::Value(outside.as_str()))
            }
        };
        let declared = stencil::field(
            &self.at(field.span),
            &field.name,
            &self.program.grids[field.grid].name,
            self.declared(field.element)?,
            role,
            boundary,
        )?;
        self.initial(field, declared)?;
        if field.boolean {
            stencil::set_boolean(&self.builder, declared);
        }
        if let Some(member) = &field.member {
            let number = |bytes: usize| {
                i64::try_from(bytes).map_err(|_| Error::internal("a cell of more than 2^63 bytes"))
            };
            let (offset, size) = (number(member.offset)?, number(member.size)?);
            stencil::set_member(
                &self.builder,
                declared,
                stencil::Member { field: &member.field, offset, size },
            );
        }
        Ok(())
    }

    /// One `func.func` a piece, then the `stencil.apply`.
    fn function(&self, function: &Function) -> Result<(), Error> {
        // Declared names have no dot, so no declaration has the name of a piece.
        let names: Vec<String> = match function.pieces.len() {
            1 => vec![function.name.clone()],
            count => (0..count).map(|index| format!("{}.{index}", function.name)).collect(),
        };
        let mut pieces = Vec::new();
        for (piece, name) in function.pieces.iter().zip(&names) {
            self.point_function(name, piece.span, &piece.lets, &piece.values)?;
            let (lower, upper) = self.bounds(&piece.region);
            pieces.push(Piece { function: name, lower, upper });
        }
        let updates: Vec<_> = function
            .updates
            .iter()
            .map(|field| self.program.fields[*field].name.as_str())
            .collect();
        let builder = self.at(function.span);
        let apply = stencil::apply(&builder, &updates, &pieces)?;
        stencil::set_repeats(&builder, apply, &repetitions(&function.repeats)?);
        Ok(())
    }

    /// A private `func.func` that returns some values; its arguments are what they read.
    fn point_function(
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

    /// The type of a value.
    fn element(&self, element: Element) -> Type<'c> {
        numbers::value_type(&self.builder, element)
    }

    /// The type of a declaration, which says what is unsigned.
    fn declared(&self, element: Element) -> Result<Type<'c>, Error> {
        if !element.is_unsigned() {
            return Ok(self.element(element));
        }
        let name = format!("ui{}", 8 * element.size());
        Type::parse(self.builder.context, &name)
            .ok_or_else(|| Error::internal(format!("no type {name}")))
    }

    /// A number as an attribute of a declared type.
    fn number_attribute(&self, ty: Type<'c>, number: Number) -> Attribute<'c> {
        match number {
            Number::I8(value) => IntegerAttribute::new(ty, value.into()).into(),
            Number::I16(value) => IntegerAttribute::new(ty, value.into()).into(),
            Number::I32(value) => IntegerAttribute::new(ty, value.into()).into(),
            Number::I64(value) => IntegerAttribute::new(ty, value).into(),
            Number::U8(value) => IntegerAttribute::new(ty, value.into()).into(),
            Number::U16(value) => IntegerAttribute::new(ty, value.into()).into(),
            Number::U32(value) => IntegerAttribute::new(ty, value.into()).into(),
            Number::U64(value) => IntegerAttribute::new(ty, value as i64).into(),
            float => FloatAttribute::new(self.builder.context, ty, float.as_f64()).into(),
        }
    }

    fn ty(&self, ty: ExprType) -> Type<'c> {
        match ty {
            ExprType::Element(element) => self.element(element),
            ExprType::Bool => self.builder.integer_type(1),
        }
    }
}

/// The repetitions that an item stands in.
fn repetitions(repeats: &[program::Repetition]) -> Result<Vec<Repetition>, Error> {
    let one = |repeat: &program::Repetition| {
        let number = i64::try_from(repeat.number)
            .map_err(|_| Error::internal("more than 2^63 repetitions"))?;
        Ok(Repetition { number, count: repeat.count })
    };
    repeats.iter().map(one).collect()
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
        ExprKind::Read { field, offset, current } => {
            let (field, offset) = (program.fields[*field].name.as_str(), offset.clone());
            Some(match current {
                true => Argument::Current { field, offset },
                false => Argument::Read { field, offset },
            })
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
            ExprKind::Unary(op, inner) => self.unary(builder, *op, inner),
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
