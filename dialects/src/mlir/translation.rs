//! The translation of the `llvm` dialect to LLVM IR, without attributes that LLVM does not know.

use super::{self as mlir, Op};
use melior::Context;
use melior::ir::Attribute;
use melior::ir::attribute::{ArrayAttribute, DictionaryAttribute};

/// Runs `body` while the attributes that LLVM does not know are off the arguments of all functions.
/// For each, the translation would give a warning with the text of the whole function, which takes
/// most of its time.
pub fn without_foreign_attributes<'c, R>(
    context: &'c Context,
    operation: Op<'c>,
    body: impl FnOnce() -> R,
) -> R {
    let all = hide_arguments(context, operation);
    let result = body();
    for (function, attributes) in all {
        mlir::set_attribute(function, ARGUMENTS, attributes);
    }
    result
}

/// The attributes of a function's arguments.
const ARGUMENTS: &str = "arg_attrs";

/// Takes the attributes that LLVM does not know off the arguments of all functions. The result is
/// all that were there.
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
        let hidden = without_foreign_attributes(&context, function, || {
            mlir::attribute(function, ARGUMENTS).map(|hidden| hidden.to_string())
        });
        assert_eq!(hidden.as_deref(), Some("[{llvm.noalias}]"));
        let code = mlir::to_llvm_ir(&context, mlir::module_op(&module)).unwrap();
        assert!(code.contains("define void @f(ptr noalias"), "{code}");
        assert_eq!(mlir::attribute(function, ARGUMENTS), Some(before));
    }
}
