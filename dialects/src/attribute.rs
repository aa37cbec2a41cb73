//! Attributes as plain data: constructors, and readers that answer none for another kind.

use crate::error::Error;
use crate::mlir::{self, Op};
use melior::Context;
use melior::ir::attribute::{
    ArrayAttribute, AttributeLike, BoolAttribute, DenseI32ArrayAttribute, DenseI64ArrayAttribute,
    DictionaryAttribute, FlatSymbolRefAttribute, FloatAttribute, IntegerAttribute, StringAttribute,
    TypeAttribute,
};
use melior::ir::operation::OperationLike;
use melior::ir::r#type::IntegerType;
use melior::ir::{AffineMap, Attribute, Identifier, Type};

/// A string.
pub fn string<'c>(context: &'c Context, text: &str) -> Attribute<'c> {
    StringAttribute::new(context, text).into()
}

/// `@name`.
pub fn symbol<'c>(context: &'c Context, name: &str) -> Attribute<'c> {
    FlatSymbolRefAttribute::new(context, name).into()
}

/// `[a, b, ...]`.
pub fn array<'c>(context: &'c Context, elements: &[Attribute<'c>]) -> Attribute<'c> {
    ArrayAttribute::new(context, elements).into()
}

/// `[@a, @b, ...]`.
pub fn symbols<'c>(context: &'c Context, names: &[impl AsRef<str>]) -> Attribute<'c> {
    let elements: Vec<_> = names.iter().map(|name| symbol(context, name.as_ref())).collect();
    array(context, &elements)
}

/// `["a", "b", ...]`.
pub fn strings<'c>(context: &'c Context, names: &[impl AsRef<str>]) -> Attribute<'c> {
    let elements: Vec<_> = names.iter().map(|name| string(context, name.as_ref())).collect();
    array(context, &elements)
}

/// `array<i64: ...>`.
pub fn integers<'c>(context: &'c Context, values: &[i64]) -> Attribute<'c> {
    DenseI64ArrayAttribute::new(context, values).into()
}

/// `array<i32: ...>`.
pub fn integers32<'c>(context: &'c Context, values: &[i32]) -> Attribute<'c> {
    DenseI32ArrayAttribute::new(context, values).into()
}

/// `n : i64`.
pub fn integer<'c>(context: &'c Context, value: i64) -> Attribute<'c> {
    IntegerAttribute::new(IntegerType::new(context, 64).into(), value).into()
}

/// `true` or `false`.
pub fn boolean<'c>(context: &'c Context, value: bool) -> Attribute<'c> {
    BoolAttribute::new(context, value).into()
}

/// A type as an attribute.
pub fn ty<'c>(ty: Type<'c>) -> Attribute<'c> {
    TypeAttribute::new(ty).into()
}

/// `{name = attribute, ...}`.
pub fn dictionary<'c>(context: &'c Context, entries: &[(&str, Attribute<'c>)]) -> Attribute<'c> {
    let entries: Vec<_> = entries
        .iter()
        .map(|(name, attribute)| (Identifier::new(context, name), *attribute))
        .collect();
    DictionaryAttribute::new(context, &entries).into()
}

/// The text of a string attribute.
pub fn as_string<'c>(attribute: Attribute<'c>) -> Option<&'c str> {
    mlir::string(attribute)
}

/// The name of a symbol reference.
pub fn as_symbol<'c>(attribute: Attribute<'c>) -> Option<&'c str> {
    mlir::symbol(attribute)
}

/// The elements of an array.
pub fn as_array<'c>(attribute: Attribute<'c>) -> Option<Vec<Attribute<'c>>> {
    let array = ArrayAttribute::try_from(attribute).ok()?;
    (0..array.len()).map(|index| array.element(index).ok()).collect()
}

/// The names in an array of symbol references.
pub fn as_symbols<'c>(attribute: Attribute<'c>) -> Option<Vec<&'c str>> {
    as_array(attribute)?.into_iter().map(as_symbol).collect()
}

/// The texts in an array of strings.
pub fn as_strings<'c>(attribute: Attribute<'c>) -> Option<Vec<&'c str>> {
    as_array(attribute)?.into_iter().map(as_string).collect()
}

/// The value of an integer attribute of at most 64 bits, or of type `index`; that of an unsigned
/// one of 64 bits as the signed number of the same bits.
pub fn as_integer(attribute: Attribute) -> Option<i64> {
    let integer = IntegerAttribute::try_from(attribute).ok()?;
    let ty = integer.r#type();
    mlir::bit_width(ty).is_none_or(|bits| bits <= 64).then(|| match mlir::unsigned_width(ty) {
        Some(_) => integer.unsigned_value() as i64,
        None => integer.value(),
    })
}

/// The value of `true` or `false`.
pub fn as_boolean(attribute: Attribute) -> Option<bool> {
    BoolAttribute::try_from(attribute).ok().map(|attribute| attribute.value())
}

/// The value of a floating-point attribute.
pub fn as_float(attribute: Attribute) -> Option<f64> {
    FloatAttribute::try_from(attribute).ok().map(|attribute| attribute.value())
}

/// The type of an integer or floating-point attribute.
pub fn type_of_number<'c>(attribute: Attribute<'c>) -> Option<Type<'c>> {
    let float = FloatAttribute::try_from(attribute).ok().map(|attribute| attribute.r#type());
    float.or_else(|| IntegerAttribute::try_from(attribute).ok().map(|attribute| attribute.r#type()))
}

/// The values of `array<i64: ...>`, `array<i32: ...>` or `[1, 2]`.
pub fn as_integers(attribute: Attribute) -> Option<Vec<i64>> {
    if let Ok(dense) = DenseI64ArrayAttribute::try_from(attribute) {
        (0..dense.len()).map(|index| dense.element(index).ok()).collect()
    } else if let Ok(dense) = DenseI32ArrayAttribute::try_from(attribute) {
        (0..dense.len()).map(|index| dense.element(index).ok().map(i64::from)).collect()
    } else {
        as_array(attribute)?.into_iter().map(as_integer).collect()
    }
}

/// The type that a type attribute holds.
pub fn as_type<'c>(attribute: Attribute<'c>) -> Option<Type<'c>> {
    attribute
        .is_type()
        .then(|| TypeAttribute::try_from(attribute).ok().map(|attribute| attribute.value()))?
}

/// The affine map that an attribute holds.
pub fn as_map<'c>(attribute: Attribute<'c>) -> Option<AffineMap<'c>> {
    mlir::attribute_map(attribute)
}

/// An entry of a dictionary.
pub fn entry<'c>(attribute: Attribute<'c>, name: &str) -> Option<Attribute<'c>> {
    DictionaryAttribute::try_from(attribute).ok()?.element_by_name(name)
}

/// Reads an attribute of an operation with one of the readers above; an error that names both when
/// it is missing or of another kind.
pub fn read<'c, R>(
    op: Op<'c>,
    name: &str,
    reader: impl FnOnce(Attribute<'c>) -> Option<R>,
) -> Result<R, Error> {
    read_optional(op, name, reader)?.ok_or_else(|| {
        Error::new(
            mlir::place(op.location()),
            format!("{}: the attribute '{name}' is missing", mlir::name(op)),
        )
    })
}

/// As [`read`], and none where the attribute is missing.
pub fn read_optional<'c, R>(
    op: Op<'c>,
    name: &str,
    reader: impl FnOnce(Attribute<'c>) -> Option<R>,
) -> Result<Option<R>, Error> {
    let Some(attribute) = mlir::attribute(op, name) else { return Ok(None) };
    reader(attribute).map(Some).ok_or_else(|| {
        Error::new(
            mlir::place(op.location()),
            format!("{}: the attribute '{name}' is of the wrong kind: {attribute}", mlir::name(op)),
        )
    })
}
