//! The arguments of a launch as kernels have them.

use crate::value::Kind;
use stencil_runtime::array::Element;
use stencil_runtime::number::Number;

/// The type of a kernel's memory for these cells: integers of the IR have no sign.
pub(crate) fn kind(element: Element) -> Kind {
    match element {
        Element::F16 => Kind::F16,
        Element::Bf16 => Kind::Bf16,
        Element::F32 => Kind::F32,
        Element::F64 => Kind::F64,
        Element::I8 | Element::U8 => Kind::I8,
        Element::I16 | Element::U16 => Kind::I16,
        Element::I32 | Element::U32 => Kind::I32,
        Element::I64 | Element::U64 => Kind::I64,
    }
}

/// A number in the form of a register; none if it is of another type.
pub(crate) fn number_bits(kind: Kind, number: Number) -> Option<u64> {
    match (kind, number) {
        (Kind::F16, Number::F16(value)) => Some(u64::from(value.to_bits())),
        (Kind::Bf16, Number::Bf16(value)) => Some(u64::from(value.to_bits())),
        (Kind::F32, Number::F32(value)) => Some(u64::from(value.to_bits())),
        (Kind::F64, Number::F64(value)) => Some(value.to_bits()),
        (Kind::I8, Number::I8(value)) => Some(value as u64),
        (Kind::I16, Number::I16(value)) => Some(value as u64),
        (Kind::I8, Number::U8(value)) => Some(value as i8 as u64),
        (Kind::I16, Number::U16(value)) => Some(value as i16 as u64),
        (Kind::I32 | Kind::Index32, Number::I32(value)) => Some(value as u64),
        (Kind::I64 | Kind::Index64, Number::I64(value)) => Some(value as u64),
        (Kind::I32, Number::U32(value)) => Some(value as i32 as u64),
        (Kind::I64, Number::U64(value)) => Some(value),
        _ => None,
    }
}
