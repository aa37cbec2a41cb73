//! The one adapter between this project and MLIR's C interface: all `unsafe` for MLIR is here.
//!
//! Values, operations and blocks have the context's lifetime, because a pass builds and erases some
//! while it holds others. MLIR's own rule makes this sound: nobody uses what was erased.

mod diagnostics;
mod structure;
mod text;
mod translation;
mod types;
mod upstream;

pub use diagnostics::{Diagnostic, Severity, capture, first_error, place};
pub use structure::{
    append_block, arguments, attribute, blocks, body, entries, entry, inline_block, module_op,
    move_all_before, operands, operations, results, yields,
};
pub use text::{MAX_NESTING, check as check_text};
pub use types::{number_keyword, static_cells};
pub use upstream::{run_upstream, verify};

use crate::error::Error;
use melior::Context;
use melior::dialect::DialectRegistry;
use melior::ir::attribute::AttributeLike;
use melior::ir::block::BlockLike;
use melior::ir::operation::{
    OperationLike, OperationMutLike, OperationRefMut, WalkOrder, WalkResult,
};
use melior::ir::r#type::TypeLike;
use melior::ir::{
    AffineMap, Attribute, BlockRef, Identifier, Location, Module, OperationRef, Type, Value,
    ValueLike,
};
use melior::utility::{
    load_irdl_dialects, register_all_dialects, register_all_llvm_translations, register_all_passes,
};
use std::collections::BTreeMap;
use std::ffi::CString;
use translation::without_foreign_attributes;

/// A value that lives as long as nobody erases what defines it.
pub type Val<'c> = Value<'c, 'c>;
/// An operation that lives as long as nobody erases it.
pub type Op<'c> = OperationRef<'c, 'c>;
/// A block that lives as long as nobody erases what holds it.
pub type Blk<'c> = BlockRef<'c, 'c>;

/// A context with every upstream dialect, pass and translation, and nothing of ours.
pub fn new_context() -> Context {
    let registry = DialectRegistry::new();
    register_all_dialects(&registry);
    register_all_passes();
    let context = Context::new_with_threading(false);
    context.append_dialect_registry(&registry);
    context.load_all_available_dialects();
    register_all_llvm_translations(&context);
    context
}

/// Loads the dialects that an IRDL text declares. The text is part of this crate, so a failure is
/// an internal fault.
pub fn load_irdl(context: &Context, name: &str, text: &str) -> Result<(), Error> {
    let module = parse_module(context, text, name)?;
    if load_irdl_dialects(&module) {
        Ok(())
    } else {
        Err(Error::internal(format!("{name}: the dialect can't be loaded")))
    }
}

/// Parses a module; locations carry `name` as their file. MLIR's own messages go to the context's
/// diagnostic handler, and the error repeats the first.
pub fn parse_module<'c>(context: &'c Context, text: &str, name: &str) -> Result<Module<'c>, Error> {
    text::check(text, name)?;
    let (source, file) = (c_string(text)?, c_string(name)?);
    let (module, diagnostics) = capture(context, || {
        // SAFETY: both strings live until the call returns; a null operation is tested for, and
        // the module takes ownership of the operation.
        unsafe {
            let operation = mlir_sys::mlirOperationCreateParse(
                context.to_raw(),
                mlir_sys::mlirStringRefCreateFromCString(source.as_ptr()),
                mlir_sys::mlirStringRefCreateFromCString(file.as_ptr()),
            );
            if operation.ptr.is_null() {
                return None;
            }
            let module = mlir_sys::mlirModuleFromOperation(operation);
            if module.ptr.is_null() {
                // A single operation of another kind, as in mlir-opt, is put into a module.
                let module =
                    mlir_sys::mlirModuleCreateEmpty(mlir_sys::mlirOperationGetLocation(operation));
                mlir_sys::mlirBlockAppendOwnedOperation(
                    mlir_sys::mlirModuleGetBody(module),
                    operation,
                );
                return Some(Module::from_raw(module));
            }
            Some(Module::from_raw(module))
        }
    });
    module.ok_or_else(|| text::refused(first_error(diagnostics), text, name))
}

fn c_string(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::user("the input holds a NUL byte; it is not MLIR text"))
}

/// A value with the context's lifetime.
pub fn value<'c>(value: impl ValueLike<'c>) -> Val<'c> {
    // SAFETY: the handle is valid; see the head of the file for its lifetime.
    unsafe { Value::from_raw(value.to_raw()) }
}

/// An operation with the context's lifetime.
pub fn op<'c>(operation: OperationRef<'c, '_>) -> Op<'c> {
    // SAFETY: as for `value`.
    unsafe { OperationRef::from_raw(operation.to_raw()) }
}

/// A block with the context's lifetime.
pub fn block<'c>(block: BlockRef<'c, '_>) -> Blk<'c> {
    // SAFETY: as for `value`.
    unsafe { BlockRef::from_raw(block.to_raw()) }
}

/// Every operation inside `root` (and itself), outer ones first.
pub fn walk<'c>(root: Op<'c>) -> Vec<Op<'c>> {
    let mut found = Vec::new();
    root.walk(WalkOrder::PreOrder, |operation| {
        // SAFETY: as for `value`.
        found.push(unsafe { OperationRef::from_raw(operation.to_raw()) });
        WalkResult::Advance
    });
    found
}

/// The operation's name, such as `arith.addf`.
pub fn name<'c>(operation: Op<'c>) -> &'c str {
    identifier(operation.name()).unwrap_or_default()
}

/// The text of an identifier; none where it is not UTF-8.
pub fn identifier<'c>(identifier: Identifier<'c>) -> Option<&'c str> {
    // SAFETY: identifiers are interned in the context and live as long as it does.
    unsafe { utf8(mlir_sys::mlirIdentifierStr(identifier.to_raw())) }
}

/// The text of a string attribute; none for another attribute, and where it is not UTF-8.
pub fn string<'c>(attribute: Attribute<'c>) -> Option<&'c str> {
    // SAFETY: the kind is tested before the value is read, and the context keeps the text.
    unsafe {
        mlir_sys::mlirAttributeIsAString(attribute.to_raw())
            .then(|| utf8(mlir_sys::mlirStringAttrGetValue(attribute.to_raw())))?
    }
}

/// The name of a symbol reference; none for another attribute, and where it is not UTF-8.
pub fn symbol<'c>(attribute: Attribute<'c>) -> Option<&'c str> {
    // SAFETY: as for `string`.
    unsafe {
        mlir_sys::mlirAttributeIsAFlatSymbolRef(attribute.to_raw())
            .then(|| utf8(mlir_sys::mlirFlatSymbolRefAttrGetValue(attribute.to_raw())))?
    }
}

/// A text of MLIR, which may be empty or hold any bytes.
///
/// # Safety
/// It must live as long as the result.
unsafe fn utf8<'c>(text: mlir_sys::MlirStringRef) -> Option<&'c str> {
    if text.length == 0 {
        return Some("");
    }
    // SAFETY: the caller's.
    std::str::from_utf8(unsafe { std::slice::from_raw_parts(text.data.cast(), text.length) }).ok()
}

/// Removes an operation from its block and destroys it. Its results must have no uses.
pub fn erase(operation: Op) {
    // SAFETY: the caller holds no other handle that it will use; see the head of the file.
    unsafe {
        mlir_sys::mlirOperationRemoveFromParent(operation.to_raw());
        mlir_sys::mlirOperationDestroy(operation.to_raw());
    }
}

/// The attributes that an operation has beside those that upstream declares for it.
pub fn own_attributes<'c>(operation: Op<'c>) -> Vec<(&'c str, Attribute<'c>)> {
    let raw = operation.to_raw();
    // SAFETY: the handle is valid, and each position is below the count.
    let at = |position| unsafe {
        let named = mlir_sys::mlirOperationGetDiscardableAttribute(raw, position);
        let name = identifier(Identifier::from_raw(named.name)).unwrap_or_default();
        (name, Attribute::from_raw(named.attribute))
    };
    // SAFETY: as before.
    let count = unsafe { mlir_sys::mlirOperationGetNumDiscardableAttributes(raw) };
    (0..count).map(at).collect()
}

/// Sets an attribute.
pub fn set_attribute<'c>(operation: Op<'c>, name: &str, attribute: Attribute<'c>) {
    // SAFETY: the handle is valid, and MLIR allows mutation through it.
    unsafe { OperationRefMut::from_raw(operation.to_raw()) }.set_attribute(name, attribute);
}

/// Removes an attribute, if it is there.
pub fn remove_attribute(operation: Op, name: &str) {
    // SAFETY: as for `set_attribute`. An absent attribute is no failure of the caller's.
    let _ = unsafe { OperationRefMut::from_raw(operation.to_raw()) }.remove_attribute(name);
}

/// Sets the location.
pub fn set_location<'c>(operation: Op<'c>, location: Location<'c>) {
    // SAFETY: as for `set_attribute`.
    unsafe { OperationRefMut::from_raw(operation.to_raw()) }.set_location(location);
}

/// Replaces one operand by another value of its type.
pub fn set_operand<'c>(operation: Op<'c>, index: usize, operand: Val<'c>) {
    // SAFETY: as for `set_attribute`.
    unsafe { OperationRefMut::from_raw(operation.to_raw()) }.set_operand(index, operand);
}

/// Moves an operation before another.
pub fn move_before(operation: Op, other: Op) {
    // SAFETY: both handles are valid, and both operations lie in blocks.
    unsafe { mlir_sys::mlirOperationMoveBefore(operation.to_raw(), other.to_raw()) }
}

/// Gives a block another argument at a place among those that it has.
pub fn insert_argument<'c>(
    block: Blk<'c>,
    place: usize,
    ty: Type<'c>,
    location: Location<'c>,
) -> Val<'c> {
    // SAFETY: all handles are valid and of one context, and the place is at most the number of the
    // arguments: MLIR moves those behind it.
    let raw = unsafe {
        let place = isize::try_from(place).unwrap_or(isize::MAX);
        mlir_sys::mlirBlockInsertArgument(block.to_raw(), place, ty.to_raw(), location.to_raw())
    };
    // SAFETY: the argument lives as long as its block.
    unsafe { Value::from_raw(raw) }
}

/// Replaces every use of a value by another.
pub fn replace_uses<'c>(of: Val<'c>, with: Val<'c>) {
    // SAFETY: both handles are valid.
    unsafe { mlir_sys::mlirValueReplaceAllUsesOfWith(of.to_raw(), with.to_raw()) }
}

/// Gives a value another type. The operations that define and use it must allow that type.
pub fn set_type<'c>(value: Val<'c>, ty: Type<'c>) {
    // SAFETY: both handles are valid and of one context.
    unsafe { mlir_sys::mlirValueSetType(value.to_raw(), ty.to_raw()) }
}

/// Copies an operation to the end of a block, with values replaced as a map from their [`key`]
/// says; the map then knows its results too.
pub fn copy_to<'c>(original: Op<'c>, target: Blk<'c>, map: &mut BTreeMap<usize, Val<'c>>) {
    // SAFETY: the clone is owned here until `append` gives it to the block.
    let clone: Op<'c> = unsafe {
        let raw = mlir_sys::mlirOperationClone(original.to_raw());
        mlir_sys::mlirBlockAppendOwnedOperation(target.to_raw(), raw);
        OperationRef::from_raw(raw)
    };
    for inner in walk(clone) {
        for (index, operand) in operands(inner).into_iter().enumerate() {
            if let Some(new) = map.get(&key(operand)) {
                // SAFETY: both handles are valid and of one type.
                unsafe {
                    mlir_sys::mlirOperationSetOperand(inner.to_raw(), index as isize, new.to_raw())
                }
            }
        }
    }
    for (old, new) in results(original).into_iter().zip(results(clone)) {
        map.insert(key(old), new);
    }
}

/// A value's identity, for maps.
pub fn key(value: Val) -> usize {
    value.to_raw().ptr as usize
}

/// A number that equal attributes of a context share, and no others of it.
pub fn attribute_key(attribute: Attribute) -> usize {
    attribute.to_raw().ptr as usize
}

/// The affine map as an attribute.
pub fn map_attribute<'c>(map: AffineMap<'c>) -> Attribute<'c> {
    // SAFETY: the map is valid and the attribute lives in the same context.
    unsafe { Attribute::from_raw(mlir_sys::mlirAffineMapAttrGet(map.to_raw())) }
}

/// The affine map that an attribute holds.
pub fn attribute_map<'c>(attribute: Attribute<'c>) -> Option<AffineMap<'c>> {
    // SAFETY: the kind is tested before the value is read.
    unsafe {
        mlir_sys::mlirAttributeIsAAffineMap(attribute.to_raw())
            .then(|| AffineMap::from_raw(mlir_sys::mlirAffineMapAttrGetValue(attribute.to_raw())))
    }
}

/// The bits of an integer or float type; none for others.
pub fn bit_width(ty: Type) -> Option<u32> {
    // SAFETY: the kind is tested before the width is read.
    unsafe {
        let raw = ty.to_raw();
        if mlir_sys::mlirTypeIsAInteger(raw) {
            Some(mlir_sys::mlirIntegerTypeGetWidth(raw))
        } else if mlir_sys::mlirTypeIsAFloat(raw) {
            Some(mlir_sys::mlirFloatTypeGetWidth(raw))
        } else {
            None
        }
    }
}

fn is_bf16(ty: Type) -> bool {
    // SAFETY: the type is valid.
    unsafe { mlir_sys::mlirTypeIsABF16(ty.to_raw()) }
}

/// Cells of a vector of one dimension, `vector<4xf32>`; 1 for other types.
pub fn vector_cells(ty: Type) -> i64 {
    // SAFETY: the kind and the rank are tested before the extent is read.
    unsafe {
        let raw = ty.to_raw();
        if mlir_sys::mlirTypeIsAVector(raw) && mlir_sys::mlirShapedTypeGetRank(raw) == 1 {
            mlir_sys::mlirShapedTypeGetDimSize(raw, 0)
        } else {
            1
        }
    }
}

/// Prints single operations of a function, or of what else is isolated from above. Values get their
/// numbers once, so the IR must not change while this lives.
pub struct Printer {
    state: mlir_sys::MlirAsmState,
}

impl Printer {
    /// Numbers the values around an operation.
    pub fn new(operation: Op) -> Self {
        // SAFETY: the operation is valid; the state copies the flags.
        unsafe {
            let flags = mlir_sys::mlirOpPrintingFlagsCreate();
            mlir_sys::mlirOpPrintingFlagsUseLocalScope(flags);
            mlir_sys::mlirOpPrintingFlagsSkipRegions(flags);
            let state = mlir_sys::mlirAsmStateCreateForOperation(operation.to_raw(), flags);
            mlir_sys::mlirOpPrintingFlagsDestroy(flags);
            Self { state }
        }
    }

    /// An operation's first line, without its regions.
    pub fn line(&self, operation: Op) -> String {
        let mut text: Vec<u8> = Vec::new();
        // SAFETY: the state is alive, and the callback is not kept.
        unsafe {
            mlir_sys::mlirOperationPrintWithState(
                operation.to_raw(),
                self.state,
                Some(append),
                (&raw mut text).cast(),
            );
        }
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().next().unwrap_or_default();
        line.split(" {...}").next().unwrap_or_default().to_owned()
    }
}

/// Adds a part of a text to the `Vec<u8>` behind the pointer.
unsafe extern "C" fn append(part: mlir_sys::MlirStringRef, text: *mut std::ffi::c_void) {
    if part.length > 0 {
        // SAFETY: `line` passes a vector, and the part lives until this returns.
        unsafe {
            let part = std::slice::from_raw_parts(part.data.cast::<u8>(), part.length);
            (*text.cast::<Vec<u8>>()).extend_from_slice(part);
        }
    }
}

impl Drop for Printer {
    fn drop(&mut self) {
        // SAFETY: made by `new`, destroyed once.
        unsafe { mlir_sys::mlirAsmStateDestroy(self.state) }
    }
}

/// The bits of an unsigned integer type; none for others.
pub fn unsigned_width(ty: Type) -> Option<u32> {
    // SAFETY: the kind is tested before the width is read.
    unsafe {
        let raw = ty.to_raw();
        (mlir_sys::mlirTypeIsAInteger(raw) && mlir_sys::mlirIntegerTypeIsUnsigned(raw))
            .then(|| mlir_sys::mlirIntegerTypeGetWidth(raw))
    }
}

/// Lowers an operation of the `llvm` dialect (a `gpu.module` after the upstream conversions) to
/// LLVM IR text.
pub fn to_llvm_ir(context: &Context, operation: Op) -> Result<String, Error> {
    let (text, diagnostics) = without_foreign_attributes(context, operation, || {
        capture(context, || {
            // SAFETY: the LLVM context outlives the module made in it; both are disposed of here,
            // and the message is copied before it is freed.
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
        })
    });
    text.ok_or_else(|| {
        first_error(diagnostics).unwrap_or_else(|| {
            Error::internal("the translation to LLVM IR failed without a message")
        })
    })
}

/// Parses a type in the context of another; none where the text is no type.
pub fn parse_type<'c>(like: Type<'c>, text: &str) -> Option<Type<'c>> {
    let text = CString::new(text).ok()?;
    // SAFETY: the string lives until the call returns; a null type is answered by none.
    unsafe {
        let raw = mlir_sys::mlirTypeParseGet(
            mlir_sys::mlirTypeGetContext(like.to_raw()),
            mlir_sys::mlirStringRefCreateFromCString(text.as_ptr()),
        );
        Type::from_option_raw(raw)
    }
}
