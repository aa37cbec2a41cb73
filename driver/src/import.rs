//! Writes a checked program as `stencil` IR: declarations, one point function a piece, one
//! `stencil.apply` a function. Every operation carries the place in the source that asks for it.

mod numbers;
mod outside;
mod point_function;

use melior::Context;
use melior::ir::attribute::{FloatAttribute, IntegerAttribute};
use melior::ir::{AffineExpr, AffineMap, Attribute, Location, Module, Type};
use stencil_dialects::affine::symbolic;
use stencil_dialects::attribute;
use stencil_dialects::builder::{Builder, Named};
use stencil_dialects::error::Error;
use stencil_dialects::fast_math::FastMath;
use stencil_dialects::mlir;
use stencil_dialects::stencil::{self, Boundary, Piece, Role};
use stencil_frontend::program::{
    self, Affine, Function, ParamId, Program, Region, Role as FieldRole, Type as ExprType,
};
use stencil_frontend::source::{Source, Span};
use stencil_runtime::array::Element;
use stencil_runtime::number::Number;

/// How arithmetic is marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arithmetic {
    /// `a * b + c` may be rounded once.
    pub contract: bool,
    /// Re-association, reciprocals and approximations are allowed.
    pub fast_math: bool,
}

/// Builds the module.
pub fn module<'c>(
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
                self.map(std::slice::from_ref(&check.value)),
                unless_empty,
                &check.message,
            )?;
        }
        for function in &program.functions {
            self.function(function)?;
        }
        Ok(())
    }

    /// The function of the boundary rule, if there is one, then the `stencil.field`.
    fn field(&self, field: &program::Field) -> Result<(), Error> {
        let role = match field.role {
            FieldRole::State => Role::State,
            FieldRole::Const => Role::Const,
            FieldRole::Temp => Role::Temp,
        };
        let outside;
        let boundary = match &field.boundary {
            None => None,
            Some(program::Boundary::Nearest) => Some(Boundary::Nearest),
            Some(program::Boundary::Periodic) => Some(Boundary::Periodic),
            Some(program::Boundary::Reflect) => Some(Boundary::Reflect),
            Some(program::Boundary::Value(value)) => {
                // Declared names have no dot, so no declaration has this name.
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
        stencil::apply(&self.at(function.span), &updates, &pieces)?;
        Ok(())
    }

    fn bounds(&self, region: &Region) -> (AffineMap<'c>, AffineMap<'c>) {
        (self.map(&region.lower), self.map(&region.upper))
    }

    /// An affine map whose symbols are the run-time sizes.
    fn map(&self, results: &[Affine]) -> AffineMap<'c> {
        let context = self.builder.context;
        let results: Vec<_> = results
            .iter()
            .map(|affine| {
                let terms = affine.terms.iter().filter_map(|(param, coefficient)| {
                    let symbol = self.runtime.iter().position(|id| id == param)?;
                    Some(
                        AffineExpr::symbol(context, symbol)
                            * AffineExpr::constant(context, *coefficient),
                    )
                });
                let constant = AffineExpr::constant(context, affine.constant);
                terms.reduce(|sum, term| sum + term).map_or(constant, |sum| sum + constant)
            })
            .collect();
        symbolic(context, self.runtime.len(), &results)
    }

    /// The type of a value.
    fn element(&self, element: Element) -> Type<'c> {
        numbers::value_type(&self.builder, element)
    }

    /// The type of a declaration, which distinguishes unsigned integers.
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
            Number::F16(_) | Number::F32(_) | Number::F64(_) => {
                FloatAttribute::new(self.builder.context, ty, number.as_f64()).into()
            }
            Number::I32(value) => IntegerAttribute::new(ty, value.into()).into(),
            Number::I64(value) => IntegerAttribute::new(ty, value).into(),
            Number::U32(value) => IntegerAttribute::new(ty, value.into()).into(),
            Number::U64(value) => IntegerAttribute::new(ty, value as i64).into(),
        }
    }

    fn ty(&self, ty: ExprType) -> Type<'c> {
        match ty {
            ExprType::Element(element) => self.element(element),
            ExprType::Bool => self.builder.integer_type(1),
        }
    }
}
