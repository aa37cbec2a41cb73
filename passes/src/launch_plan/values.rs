//! Maps, types and numbers of the IR as those of a plan.

use melior::ir::{AffineMap, Attribute, Type};
use stencil_dialects::affine;
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::Member;
use stencil_runtime::array::Element;
use stencil_runtime::expr::Expr;
use stencil_runtime::number::Number;
use stencil_runtime::plan;

/// A number that the verifier has found to be a count.
pub fn count<N: TryFrom<i64>>(number: i64) -> Result<N, Error> {
    N::try_from(number).map_err(|_| Error::internal(format!("{number} is no count")))
}

/// The results of a map over the named sizes.
pub fn all(map: AffineMap, names: &[&str]) -> Result<Vec<Expr>, Error> {
    (0..map.result_count())
        .map(|index| {
            expression(&affine::text(
                map.result(index).map_err(|error| Error::internal(error.to_string()))?,
                names,
            ))
        })
        .collect()
}

/// The one result of a map.
pub fn single(map: AffineMap, names: &[&str]) -> Result<Expr, Error> {
    all(map, names)?.into_iter().next().ok_or_else(|| Error::internal("an empty map"))
}

/// An expression from its text.
pub fn expression(text: &str) -> Result<Expr, Error> {
    text.parse::<Expr>().map_err(|error| Error::internal(format!("'{text}': {error}")))
}

/// The type of a cell.
pub fn element(ty: Type, unsigned: bool) -> Result<Element, Error> {
    let name = ty.to_string();
    let name = if unsigned { name.replacen('i', "u", 1) } else { name };
    Element::from_name(&name)
        .ok_or_else(|| Error::user(format!("there are no cells of type {name}")))
}

/// The place of a field in a declared one.
pub fn member(member: Member) -> Result<plan::Member, Error> {
    let bytes = |number: i64| {
        usize::try_from(number)
            .map_err(|_| Error::user(format!("a part of @{} at {number} bytes", member.field)))
    };
    Ok(plan::Member {
        field: member.field.to_owned(),
        offset: bytes(member.offset)?,
        size: bytes(member.size)?,
    })
}

/// A default as a number of its scalar's type.
pub fn number(element: Element, default: Attribute) -> Option<Number> {
    if let Some(value) = attribute::as_float(default) {
        return Number::float(element, value);
    }
    let bits = attribute::as_integer(default)?;
    Number::integer(
        element,
        if element.is_unsigned() { i128::from(bits as u64) } else { bits.into() },
    )
}
