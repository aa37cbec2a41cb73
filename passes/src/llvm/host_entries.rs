//! `host-entries`: a function of one signature for each kernel, so that a runtime can call any.
//!
//! Needs: functions for a processor, in the LLVM dialect. Guarantees: for each kernel `NAME` a
//! function `stencil.NAME`, which no other function of the module can have; the module's other
//! functions are its own.
//!
//! ```text
//! llvm.func @heat_2(%A: !llvm.ptr, %N: i64, %alpha: f32, ..., %tile: i64, %memory: !llvm.ptr)
//! ```
//! becomes internal, and is called by
//! ```text
//! llvm.func @stencil.heat_2(%arguments: !llvm.ptr, %tile: i64, %memory: !llvm.ptr) {
//!   the arguments in their order, each in the first bytes of 8
//!   llvm.call @heat_2(...)
//! }
//! ```

use crate::kernel::host_function;
use crate::options::Options;
use crate::pass::{Info, Pass};
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, Module, Region, Type, ValueLike};
use stencil_dialects::attribute;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};
use stencil_dialects::tiled;

/// Prefix of the function of a kernel.
pub const PREFIX: &str = "stencil.";

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "host-entries",
    summary: "give each kernel of a processor a function of one signature",
    options: &[],
    read: |_: &Options| Ok(Box::new(HostEntries)),
};

/// The pass.
pub struct HostEntries;

impl Pass for HostEntries {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn takes_branches(&self) -> bool {
        true
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        Ok(host_function::is_there(module))
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let host = host_function::module_of(module)?;
        let body = mlir::entry(host).ok_or_else(|| Error::internal("a module without a body"))?;
        for function in mlir::operations(body) {
            if mlir::name(function) != "llvm.func" || mlir::entry(function).is_none() {
                continue;
            }
            mlir::set_attribute(function, "linkage", parse(context, "#llvm.linkage<internal>")?);
            if tiled::is_launched(function) {
                entry(&Builder::new(context, function.location(), body), function)?;
            }
        }
        Ok(())
    }
}

/// Builds the function by which a kernel is called.
fn entry<'c>(outer: &Builder<'c>, function: Op<'c>) -> Result<(), Error> {
    let context = outer.context;
    let name = attribute::read(function, "sym_name", attribute::as_string)?;
    let symbol = format!("{PREFIX}{name}");
    let ty = |text: &str| {
        let found = Type::parse(context, text);
        found.ok_or_else(|| Error::internal(format!("no type {text}")))
    };
    let (pointer, word) = (ty("!llvm.ptr")?, outer.integer_type(64));
    let types = [pointer, word, pointer];
    let region = Region::new();
    let block = mlir::append_block(&region, &types.map(|one| (one, outer.location)));
    let builder = outer.at(block);
    let given = mlir::arguments(block);
    let wanted = mlir::entry(function).map(mlir::arguments).unwrap_or_default();
    let ([words, tile, memory], Some(bound)) = (given.as_slice(), wanted.len().checked_sub(2))
    else {
        return Err(Error::internal("a kernel without a tile"));
    };
    let mut operands = Vec::new();
    for (place, argument) in wanted.iter().take(bound).enumerate() {
        let place = i32::try_from(place).map_err(|_| Error::internal("too many arguments"))?;
        let index = format!("array<i32: {place}>");
        let address = builder.value(
            "llvm.getelementptr",
            &[*words],
            pointer,
            &[("rawConstantIndices", parse(context, &index)?), ("elem_type", attribute::ty(word))],
        )?;
        operands.push(builder.value("llvm.load", &[address], argument.r#type(), &[])?);
    }
    operands.extend([*tile, *memory]);
    let count = i32::try_from(operands.len()).unwrap_or(i32::MAX);
    let call = [
        ("callee", attribute::symbol(context, name)),
        ("op_bundle_sizes", attribute::integers32(context, &[])),
        ("operandSegmentSizes", attribute::integers32(context, &[count, 0])),
    ];
    builder.op("llvm.call", &operands, &[], &call)?;
    builder.op("llvm.return", &[], &[], &[])?;
    let attributes = [
        ("sym_name", attribute::string(context, &symbol)),
        ("function_type", attribute::ty(ty("!llvm.func<void (ptr, i64, ptr)>")?)),
        ("linkage", parse(context, "#llvm.linkage<external>")?),
    ];
    outer.op_with_regions("llvm.func", &[], &[], &attributes, vec![region]).map(drop)
}

fn parse<'c>(context: &'c Context, text: &str) -> Result<Attribute<'c>, Error> {
    let found = Attribute::parse(context, text);
    found.ok_or_else(|| Error::internal(format!("no attribute {text}")))
}
