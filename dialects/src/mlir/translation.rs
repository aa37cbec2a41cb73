//! From the `llvm` dialect to LLVM IR.

use super::diagnostics::{capture, first_error};
use super::{self as mlir, Op};
use crate::error::Error;
use melior::Context;
use melior::ir::Attribute;
use melior::ir::attribute::{ArrayAttribute, DictionaryAttribute};

/// Lowers an operation of the `llvm` dialect (a `gpu.module` after the upstream conversions) to
/// LLVM IR text.
pub fn to_llvm_ir(context: &Context, operation: Op) -> Result<String, Error> {
    let all = hide_arguments(context, operation);
    let (text, diagnostics) = capture(context, || {
        // SAFETY: the LLVM context outlives the module made in it; both are disposed of here, and
        // the message is copied before it is freed.
        unsafe {
            let llvm = mlir_sys::LLVMContextCreate();
            let module = mlir_sys::mlirTranslateModuleToLLVMIR(operation.to_raw(), llvm);
            let text = (!module.is_null()).then(|| {
                let raw = mlir_sys::LLVMPrintModuleToString(module);
                let text = std::ffi::CStr::from_ptr(raw).to_string_lossy().into_owned();
                mlir_sys::LLVMDisposeMessage(raw);
                mlir_sys::LLVMDisposeModule(module);
                text
            });
            mlir_sys::LLVMContextDispose(llvm);
            text
        }
    });
    for (function, attributes) in all {
        mlir::set_attribute(function, ARGUMENTS, attributes);
    }
    text.ok_or_else(|| {
        first_error(diagnostics).unwrap_or_else(|| {
            Error::internal("the translation to LLVM IR failed without a message")
        })
    })
}

/// The attributes of a function's arguments.
const ARGUMENTS: &str = "arg_attrs";

/// Takes the attributes that LLVM does not know off the arguments of all functions. The result is
/// all that were there. For each, the translation would give a warning with the text of the whole
/// function, which takes most of its time.
fn hide_arguments<'c>(context: &'c Context, operation: Op<'c>) -> Vec<(Op<'c>, Attribute<'c>)> {
    let functions = mlir::walk(operation).into_iter().filter(|op| mlir::name(*op) == "llvm.func");
    let all: Vec<_> =
        functions.filter_map(|op| Some((op, mlir::attribute(op, ARGUMENTS)?))).collect();
    for (function, attributes) in &all {
        let Ok(arguments) = ArrayAttribute::try_from(*attributes) else { continue };
        let known = (0..arguments.len()).filter_map(|index| arguments.element(index).ok());
        let known: Vec<_> = known.map(|argument| of_llvm(context, argument)).collect();
        mlir::set_attribute(*function, ARGUMENTS, ArrayAttribute::new(context, &known).into());
    }
    all
}

/// The entries of a dictionary whose names are those of the `llvm` dialect.
fn of_llvm<'c>(context: &'c Context, dictionary: Attribute<'c>) -> Attribute<'c> {
    let Ok(all) = DictionaryAttribute::try_from(dictionary) else { return dictionary };
    let entries = (0..all.len()).filter_map(|index| all.element(index).ok());
    let known: Vec<_> = entries
        .filter(|(name, _)| {
            name.as_string_ref().as_str().is_ok_and(|name| name.starts_with("llvm."))
        })
        .collect();
    DictionaryAttribute::new(context, &known).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use melior::ir::Module;

    #[test]
    fn arguments_keep_their_attributes() {
        let context = crate::context().unwrap();
        let text = "llvm.func @f(%a: !llvm.ptr {llvm.noalias, tiled.name = \"A\"}) { llvm.return }";
        let module = Module::parse(&context, text).unwrap();
        let function = mlir::operations(mlir::body(&module))[0];
        let before = mlir::attribute(function, ARGUMENTS).unwrap();
        let shown = hide_arguments(&context, function);
        let hidden = mlir::attribute(function, ARGUMENTS).unwrap().to_string();
        assert_eq!(hidden, "[{llvm.noalias}]");
        for (function, attributes) in shown {
            mlir::set_attribute(function, ARGUMENTS, attributes);
        }
        let code = to_llvm_ir(&context, mlir::module_op(&module)).unwrap();
        assert!(code.contains("define void @f(ptr noalias"), "{code}");
        assert_eq!(mlir::attribute(function, ARGUMENTS), Some(before));
    }
}
