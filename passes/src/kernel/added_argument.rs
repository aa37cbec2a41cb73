//! One more argument for a lowered kernel.

use super::signature::Signature;
use melior::Context;
use melior::ir::attribute::TypeAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::FunctionType;
use stencil_dialects::attribute::{self, read};
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{Binding, Launch};

/// Gives a kernel a last argument, which is bound to something.
///
/// # Errors
/// A kernel without a body or a type.
pub fn add<'c>(
    context: &'c Context,
    program: &Program<'c>,
    launch: &Launch<'c>,
    binding: Binding<'c>,
) -> Result<Val<'c>, Error> {
    let (op, place) = (launch.op, launch.bindings.len());
    let lacks = || Error::internal(format!("@{} has no type", launch.name));
    let entry = mlir::entry(op).ok_or_else(lacks)?;
    let builder = Builder::new(context, op.location(), entry);
    let added = Signature::of_bindings(&builder, program, vec![binding])?;
    let (ty, own) = added.types.first().zip(added.attributes.first()).ok_or_else(lacks)?;
    let old = read(op, "function_type", attribute::as_type)?;
    let old = FunctionType::try_from(old).map_err(|_| lacks())?;
    let inputs = (0..old.input_count()).map(|input| old.input(input));
    let mut inputs = inputs.collect::<Result<Vec<_>, _>>().map_err(|_| lacks())?;
    inputs.insert(place, *ty);
    let function = FunctionType::new(context, &inputs, &[]);
    mlir::set_attribute(op, "function_type", TypeAttribute::new(function.into()).into());
    let mut attributes = read(op, "arg_attrs", attribute::as_array)?;
    attributes.insert(place, *own);
    mlir::set_attribute(op, "arg_attrs", attribute::array(context, &attributes));
    Ok(mlir::insert_argument(entry, place, *ty, op.location()))
}
