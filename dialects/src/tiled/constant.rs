//! Constant memory of kernels: variables that hold the input of a field.

use crate::attribute;
use crate::builder::Builder;
use crate::error::Error;
use crate::mlir::{self, Op};
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::MemRefType;
use melior::ir::{Attribute, Module, ShapedTypeLike, Type};

const CONSTANT: &str = "tiled.constant";
const NOT_CONSTANT: &str = "tiled.not_constant";

/// LLVM's number of the address space of constant memory on NVIDIA's devices.
pub const CONSTANT_SPACE: i64 = 4;

/// Bytes to which a variable is aligned: LLVM joins loads up to so many.
const ALIGNMENT: i64 = 16;

/// A variable in constant memory: a `memref.global` that a run fills before its first launch.
#[derive(Clone, Copy, Debug)]
pub struct Constant<'c> {
    /// The `memref.global`.
    pub op: Op<'c>,
    /// Its name in the code.
    pub symbol: &'c str,
    /// The field whose input it holds.
    pub field: &'c str,
    /// Its memref.
    pub ty: Type<'c>,
}

impl Constant<'_> {
    /// Its bytes, with those between it and the next one.
    ///
    /// # Errors
    /// A type that is no memref of static shape.
    pub fn bytes(&self) -> Result<u64, Error> {
        let cells = mlir::static_cells(self.ty);
        let element =
            MemRefType::try_from(self.ty).ok().and_then(|ty| mlir::bit_width(ty.element()));
        let bytes = cells.zip(element).and_then(|(cells, bits)| {
            u64::try_from(cells).ok()?.checked_mul(u64::from(bits.div_ceil(8)))
        });
        bytes.map(|bytes| bytes.next_multiple_of(ALIGNMENT as u64)).ok_or_else(|| {
            Error::new(
                mlir::place(self.op.location()),
                format!("{CONSTANT} needs a memref of static shape, not {}", self.ty),
            )
        })
    }
}

/// The variables in constant memory of a module, in order.
///
/// # Errors
/// A variable without a name or a type, and one whose attribute is no name of a field.
pub fn constants<'c>(module: &Module<'c>) -> Result<Vec<Constant<'c>>, Error> {
    let mut found = Vec::new();
    for op in mlir::walk(mlir::module_op(module)) {
        if mlir::name(op) == "memref.global" && mlir::attribute(op, CONSTANT).is_some() {
            found.push(Constant {
                op,
                symbol: attribute::read(op, "sym_name", attribute::as_string)?,
                field: attribute::read(op, CONSTANT, attribute::as_string)?,
                ty: attribute::read(op, "type", attribute::as_type)?,
            });
        }
    }
    Ok(found)
}

/// Declares a variable for a field's input. It is no constant to LLVM, which would take it for
/// undefined.
///
/// # Errors
/// Internal ones.
pub fn declare_constant<'c>(
    builder: &Builder<'c>,
    symbol: &str,
    field: &str,
    ty: Type<'c>,
) -> Result<Op<'c>, Error> {
    let context = builder.context;
    let attributes = [
        ("sym_name", attribute::string(context, symbol)),
        ("type", attribute::ty(ty)),
        ("initial_value", Attribute::unit(context)),
        ("alignment", attribute::integer(context, ALIGNMENT)),
        (CONSTANT, attribute::string(context, field)),
    ];
    builder.op("memref.global", &[], &[], &attributes)
}

/// Notes which buffers a kernel does not read from constant memory, and why.
pub fn set_not_constant<'c>(context: &'c Context, kernel: Op<'c>, notes: &[String]) {
    match notes {
        [] => mlir::remove_attribute(kernel, NOT_CONSTANT),
        notes => mlir::set_attribute(kernel, NOT_CONSTANT, attribute::strings(context, notes)),
    }
}
