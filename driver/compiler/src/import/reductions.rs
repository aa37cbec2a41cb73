//! Reductions and the condition of a run. A condition is a reduction over one point, to 1 where it
//! holds. Declared names have no dot, so the names made here are free.

use super::Import;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Op;
use stencil_dialects::stencil::{self, Combine, Role};
use stencil_frontend::program::{
    self, Affine, Expr, ExprKind, Reduction, Region, Type as ExprType, Until,
};
use stencil_runtime::array::Element;

/// The field of a run's condition.
const CONDITION: &str = "until.condition";
/// Its cell, and the point at which the condition is evaluated.
const CELL: &str = "until.cell";
/// The function of the condition.
const FUNCTION: &str = "until.value";

impl<'c> Import<'c, '_> {
    /// The reductions behind so many functions.
    pub(super) fn reductions(&self, place: usize) -> Result<(), Error> {
        let own = self.program.reductions.iter().filter(|reduction| reduction.place == place);
        own.into_iter().try_for_each(|reduction| self.reduction(reduction))
    }

    fn reduction(&self, reduction: &Reduction) -> Result<(), Error> {
        let name = self.program.fields[reduction.field].name.as_str();
        let piece = &reduction.piece;
        let builder = self.at(reduction.span);
        let (grid, function) = (format!("{name}.box"), format!("{name}.value"));
        let (lower, upper) = self.bounds(&piece.region);
        stencil::grid(&self.at(piece.span), &grid, lower, upper)?;
        self.point_function(&function, piece.span, &piece.lets, &piece.values)?;
        let combine = match reduction.combine {
            program::Combine::Sum => Combine::Sum,
            program::Combine::Min => Combine::Min,
            program::Combine::Max => Combine::Max,
            program::Combine::All => Combine::All,
        };
        let reduce = stencil::reduce(&builder, (name, &grid), &function, combine)?;
        stencil::set_repeats(&builder, reduce, &super::repetitions(&reduction.repeats)?);
        Ok(())
    }

    /// The value of a reduction before the first step.
    pub(super) fn initial(&self, field: &program::Field, declared: Op<'c>) -> Result<(), Error> {
        let of = |one: &&Reduction| self.program.fields[one.field].name == field.name;
        let reduction = self.program.reductions.iter().find(of);
        let initial = reduction.and_then(|one| one.initial.as_ref());
        if let Some(value) = initial.and_then(|value| value.number(field.element)) {
            let value = self.number_attribute(self.declared(field.element)?, value);
            stencil::set_initial(declared, value);
        }
        Ok(())
    }

    /// The condition that ends a run.
    pub(super) fn until(&self) -> Result<(), Error> {
        let Some(Until { condition, every, text, span }) = &self.program.until else {
            return Ok(());
        };
        let builder = self.at(*span);
        let zero = || vec![Affine::number(0)];
        let (lower, upper) = self.bounds(&Region { lower: zero(), upper: zero() });
        stencil::grid(&builder, CELL, lower, upper)?;
        let ty = ExprType::Element(Element::I32);
        stencil::field(
            &builder,
            CONDITION,
            CELL,
            self.declared(Element::I32)?,
            Role::Condition,
            None,
        )?;
        let number = |value| Box::new(Expr { kind: ExprKind::Int(value), ty, span: *span });
        let kind = ExprKind::If(Box::new(condition.clone()), number(1), number(0));
        let value = Expr { kind, ty, span: *span };
        self.point_function(FUNCTION, *span, &[], std::slice::from_ref(&value))?;
        stencil::reduce(&builder, (CONDITION, CELL), FUNCTION, Combine::Max)?;
        stencil::until(&builder, CONDITION, *every, text).map(drop)
    }
}
