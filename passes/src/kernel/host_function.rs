//! The functions of a kernel that a processor runs, in a module of their own inside the program's.
//!
//! The function of a kernel computes one tile. It has the kernel's arguments, and behind them the
//! tile's number and memory that is the thread's own. It may call others, which take what it gives
//! them.

use super::scope::Scope;
use super::signature::{Arguments, Signature};
use crate::analysis::hull::Hull;
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::{FunctionType, MemRefType};
use melior::ir::{Attribute, Location, Module, Region, Type};
use stencil_dialects::attribute;
use stencil_dialects::builder::{Builder, Named};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::stencil;

/// The name of the module that holds the functions, unless a declaration has it.
const HOST_MODULE: &str = "host";

/// A `func.func` with an empty body.
pub struct HostFunction<'c> {
    /// Builds at the end of the body.
    pub builder: Builder<'c>,
    /// The operation.
    pub op: Op<'c>,
    /// The values that its arguments are bound to.
    pub arguments: Arguments<'c>,
    /// The arguments that are bound, as they came.
    pub bound: Vec<Val<'c>>,
    /// The other arguments.
    pub others: Vec<Val<'c>>,
}

/// The arguments of a kernel's function behind those that are bound: a tile's number, and memory.
pub fn tile_arguments<'c>(builder: &Builder<'c>) -> [Type<'c>; 2] {
    let bytes = MemRefType::new(builder.integer_type(8), &[], None, None);
    [builder.index_type(), bytes.into()]
}

/// A builder at the end of the module that holds the functions, made where there is none.
pub fn container<'c>(
    context: &'c Context,
    module: &Module<'c>,
    location: Location<'c>,
) -> Result<Builder<'c>, Error> {
    let builder = Builder::new(context, location, mlir::body(module));
    if let Some(block) = find(module).and_then(mlir::entry) {
        return Ok(builder.at(block));
    }
    let region = Region::new();
    let block = mlir::append_block(&region, &[]);
    let name = attribute::string(context, &stencil::unused_name(module, HOST_MODULE));
    builder.op_with_regions("builtin.module", &[], &[], &[("sym_name", name)], vec![region])?;
    Ok(builder.at(block))
}

/// Builds a function: a signature, and more arguments of some types.
pub fn build<'c>(
    outer: &Builder<'c>,
    subject: &Subject<'c, '_>,
    name: &str,
    (signature, others): (&Signature<'c>, &[Type<'c>]),
    attributes: &[Named<'c, '_>],
) -> Result<HostFunction<'c>, Error> {
    let (context, location) = (outer.context, outer.location);
    let types = [signature.types.as_slice(), others].concat();
    let region = Region::new();
    let entry =
        mlir::append_block(&region, &types.iter().map(|ty| (*ty, location)).collect::<Vec<_>>());
    let mut dictionaries = signature.attributes.clone();
    dictionaries.resize(types.len(), attribute::dictionary(context, &[]));
    let mut all = vec![
        ("sym_name", attribute::string(context, name)),
        ("function_type", attribute::ty(FunctionType::new(context, &types, &[]).into())),
        ("arg_attrs", attribute::array(context, &dictionaries)),
    ];
    all.extend_from_slice(attributes);
    let op = outer.op_with_regions("func.func", &[], &[], &all, vec![region])?;
    let builder = outer.at(entry);
    let values = mlir::arguments(entry);
    let (bound, others) = values.split_at(signature.types.len().min(values.len()));
    let arguments = signature.arguments(&builder, subject.program, bound)?;
    Ok(HostFunction { builder, op, arguments, bound: bound.to_vec(), others: others.to_vec() })
}

/// The attribute of a function that others of the module call, and nobody else.
pub fn private<'c>(context: &'c Context) -> Named<'c, 'static> {
    ("sym_visibility", attribute::string(context, "private"))
}

impl<'c> HostFunction<'c> {
    /// The names that its code can use.
    pub fn scope<'p>(&self, subject: &Subject<'c, 'p>, hull: Hull<'c>) -> Scope<'c, 'p> {
        Scope {
            module: subject.module,
            program: subject.program,
            hull,
            params: self.arguments.params.clone(),
            scalars: self.arguments.scalars.clone(),
            step: self.arguments.step,
        }
    }

    /// Ends the function.
    pub fn finish(&self, scope: &Scope<'c, '_>) -> Result<(), Error> {
        self.builder.op("func.return", &[], &[], &[])?;
        super::function::load_gathered(&self.builder, scope, self.op, &self.arguments.sources)
    }
}

/// The first bytes of the thread's memory, as an array.
pub fn memory<'c>(builder: &Builder<'c>, memory: Val<'c>, bytes: i64) -> Result<Val<'c>, Error> {
    let bytes = bytes.max(1);
    let ty = MemRefType::new(builder.integer_type(8), &[bytes], None, None);
    reinterpret(builder, memory, ty, &[bytes])
}

/// A `memref.reinterpret_cast` without offset, to cells one behind the other.
pub fn reinterpret<'c>(
    builder: &Builder<'c>,
    memref: Val<'c>,
    ty: MemRefType<'c>,
    sizes: &[i64],
) -> Result<Val<'c>, Error> {
    let context = builder.context;
    let strides = vec![1; sizes.len()];
    builder.value(
        "memref.reinterpret_cast",
        &[memref],
        ty.into(),
        &[
            ("static_offsets", attribute::integers(context, &[0])),
            ("static_sizes", attribute::integers(context, sizes)),
            ("static_strides", attribute::integers(context, &strides)),
            ("operandSegmentSizes", attribute::integers32(context, &[1, 0, 0, 0])),
        ],
    )
}

/// Calls a function of the module.
pub fn call<'c>(builder: &Builder<'c>, name: &str, operands: &[Val<'c>]) -> Result<(), Error> {
    let callee: Attribute<'c> = attribute::symbol(builder.context, name);
    builder.op("func.call", operands, &[], &[("callee", callee)]).map(drop)
}

fn find<'c>(module: &Module<'c>) -> Option<Op<'c>> {
    let operations = mlir::operations(mlir::body(module));
    operations.into_iter().find(|op| mlir::name(*op) == "builtin.module")
}

/// Whether a module holds functions for a processor.
pub fn is_there(module: &Module) -> bool {
    find(module).is_some()
}

/// The module of the functions.
///
/// # Errors
/// When there is none.
pub fn module_of<'c>(module: &Module<'c>) -> Result<Op<'c>, Error> {
    find(module).ok_or_else(|| {
        Error::new(
            mlir::place(mlir::module_op(module).location()),
            "the module holds no functions for a processor; run lower-slab first",
        )
    })
}
