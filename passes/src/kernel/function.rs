//! The `gpu.func` of a lowered kernel: its signature and shared buffers, and the loads that replace
//! absolute reads at its end.

use super::scope::Scope;
use super::shared_memory::{self, BUFFER_ALIGNMENT, shared_bytes};
use super::signature::{Arguments, Signature};
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::{FunctionType, MemRefType};
use melior::ir::{Attribute, Location, Module, Region, Type};
use std::collections::BTreeMap;
use stencil_dialects::attribute;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Blk, Op, Val};
use stencil_dialects::stencil::{self, Gather};

/// The name of the module that holds the kernels, unless a declaration has it.
const GPU_MODULE: &str = "kernels";

/// A `gpu.func` with an empty body.
pub struct KernelFunction<'c> {
    /// Builds at the end of the body.
    pub builder: Builder<'c>,
    /// The operation.
    pub op: Op<'c>,
    /// The values of its arguments.
    pub arguments: Arguments<'c>,
    /// The shared buffers, in the order in which they were asked for.
    pub shared: Vec<Val<'c>>,
}

/// Builds the function in the module's `gpu.module`. Shared buffers are declared, or cut out of
/// dynamic shared memory where they are larger than what may be declared.
pub fn build<'c>(
    outer: &Builder<'c>,
    subject: &Subject<'c, '_>,
    signature: &Signature<'c>,
    attributes: Vec<(&str, Attribute<'c>)>,
    shared: &[MemRefType<'c>],
) -> Result<KernelFunction<'c>, Error> {
    let static_limit = subject.device.static_shared_per_block;
    let dynamic = u64::try_from(shared_bytes(shared)).is_ok_and(|all| all > static_limit);
    let attributions: Vec<Type> =
        if dynamic { Vec::new() } else { shared.iter().map(|ty| (*ty).into()).collect() };
    let (op, entry) = declare(outer, signature, attributes, &attributions)?;
    let builder = outer.at(entry);
    let values = mlir::arguments(entry);
    let (values, attributed) = values.split_at(signature.types.len().min(values.len()));
    let shared = if dynamic {
        shared_memory::dynamic_shared(&builder, op, shared)?
    } else {
        attributed.to_vec()
    };
    let arguments = signature.arguments(&builder, subject.program, values)?;
    Ok(KernelFunction { builder, op, arguments, shared })
}

/// A `gpu.func` with its empty body, whose arguments are followed by the shared buffers that it
/// declares.
pub fn declare<'c>(
    outer: &Builder<'c>,
    signature: &Signature<'c>,
    mut attributes: Vec<(&str, Attribute<'c>)>,
    attributions: &[Type<'c>],
) -> Result<(Op<'c>, Blk<'c>), Error> {
    let (context, location) = (outer.context, outer.location);
    let region = Region::new();
    let all: Vec<_> =
        signature.types.iter().chain(attributions).map(|ty| (*ty, location)).collect();
    let entry = mlir::append_block(&region, &all);
    let ty = FunctionType::new(context, &signature.types, &[]);
    attributes.push(("function_type", attribute::ty(ty.into())));
    attributes.push(("arg_attrs", attribute::array(context, &signature.attributes)));
    let count = attribute::integer(context, attributions.len() as i64);
    attributes.push(("workgroup_attributions", count));
    // Without a stated alignment LLVM's load vectoriser assumes more than the PTX declares.
    let alignment = attribute::integer(context, BUFFER_ALIGNMENT);
    let aligned = attribute::dictionary(context, &[("llvm.align", alignment)]);
    let aligned = attribute::array(context, &vec![aligned; attributions.len()]);
    attributes.push(("workgroup_attrib_attrs", aligned));
    let op = outer.op_with_regions("gpu.func", &[], &[], &attributes, vec![region])?;
    Ok((op, entry))
}

/// Puts loads from global memory in the place of a finished kernel's absolute reads.
pub fn load_gathered<'c>(
    builder: &Builder<'c>,
    scope: &Scope<'c, '_>,
    kernel: Op<'c>,
    sources: &BTreeMap<&str, Val<'c>>,
) -> Result<(), Error> {
    for gather in stencil::gathers(kernel)? {
        replace_gather(builder, &gather, |builder| {
            let point: Vec<_> = gather
                .at
                .iter()
                .map(|at| builder.value("arith.index_cast", &[*at], builder.index_type(), &[]))
                .collect::<Result<_, _>>()?;
            let cell = scope.cell(builder, gather.field, &point)?;
            let source = sources.get(gather.field).copied();
            let none = || Error::internal(format!("no buffer of @{} to read", gather.field));
            builder.load(source.ok_or_else(none)?, &cell)
        })?;
    }
    Ok(())
}

/// Puts a value in the place of an absolute read, and returns it.
pub fn replace_gather<'c>(
    builder: &Builder<'c>,
    gather: &Gather<'c>,
    value: impl FnOnce(&Builder<'c>) -> Result<Val<'c>, Error>,
) -> Result<Val<'c>, Error> {
    let region = Region::new();
    let block = mlir::append_block(&region, &[]);
    let builder = Builder { location: gather.op.location(), ..builder.at(block) };
    let value = value(&builder)?;
    mlir::move_all_before(builder.block, gather.op);
    for result in mlir::results(gather.op) {
        mlir::replace_uses(result, value);
    }
    mlir::erase(gather.op);
    Ok(value)
}

/// A builder at the end of the module's `gpu.module`, made where there is none.
pub fn container<'c>(
    context: &'c Context,
    module: &Module<'c>,
    location: Location<'c>,
) -> Result<Builder<'c>, Error> {
    let builder = Builder::new(context, location, mlir::body(module));
    let existing =
        mlir::operations(builder.block).into_iter().find(|op| mlir::name(*op) == "gpu.module");
    if let Some(block) = existing.and_then(mlir::entry) {
        return Ok(builder.at(block));
    }
    mlir::set_attribute(mlir::module_op(module), "gpu.container_module", Attribute::unit(context));
    let region = Region::new();
    let block = mlir::append_block(&region, &[]);
    builder.op_with_regions(
        "gpu.module",
        &[],
        &[],
        &[("sym_name", attribute::string(context, &stencil::unused_name(module, GPU_MODULE)))],
        vec![region],
    )?;
    Ok(builder.at(block))
}
