//! Flags are vectors of 32-bit integers.

use crate::error::Error;
use crate::mlir;
use crate::peer;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::MemRefType;
use melior::ir::{Module, ShapedTypeLike, ValueLike};

/// Verifies the operations on flags.
pub fn verify(module: &Module, errors: &mut Vec<Error>) {
    for op in mlir::walk(mlir::module_op(module)) {
        if ![peer::SIGNAL, peer::WAIT, peer::ARRIVE].contains(&mlir::name(op)) {
            continue;
        }
        let flags =
            mlir::operands(op).first().and_then(|flags| MemRefType::try_from(flags.r#type()).ok());
        if !flags.is_some_and(|flags| flags.rank() == 1 && flags.element().to_string() == "i32") {
            let message =
                format!("{}: flags must be a memref of one dimension of i32", mlir::name(op));
            errors.push(Error::new(mlir::place(op.location()), message));
        }
    }
}
