//! The types that a number of a cell can have, and code that is the same for all of them.

use serde::{Deserialize, Serialize};
use std::fmt;

pub use half::{bf16, f16};

/// Type of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Element {
    /// IEEE half precision.
    F16,
    /// The upper half of a single: 8 bits of precision, the range of f32.
    Bf16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// 8-bit signed integer.
    I8,
    /// 16-bit signed integer.
    I16,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
}

impl Element {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::F16,
        Self::Bf16,
        Self::F32,
        Self::F64,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
    ];

    /// Bytes of one number.
    pub fn size(self) -> usize {
        with_cell!(self, T => size_of::<T>())
    }

    /// The name in programs, plans and messages: `f16`, `u8` and the like.
    pub fn name(self) -> &'static str {
        match self {
            Element::F16 => "f16",
            Element::Bf16 => "bf16",
            Element::F32 => "f32",
            Element::F64 => "f64",
            Element::I8 => "i8",
            Element::I16 => "i16",
            Element::I32 => "i32",
            Element::I64 => "i64",
            Element::U8 => "u8",
            Element::U16 => "u16",
            Element::U32 => "u32",
            Element::U64 => "u64",
        }
    }

    /// NumPy's name of the type, little endian: `<f4`, `<u8` and the like. NumPy has no bf16: its
    /// cells are two bytes without a meaning.
    pub fn descr(self) -> &'static str {
        match self {
            Element::F16 => "<f2",
            Element::Bf16 => "|V2",
            Element::F32 => "<f4",
            Element::F64 => "<f8",
            Element::I8 => "|i1",
            Element::I16 => "<i2",
            Element::I32 => "<i4",
            Element::I64 => "<i8",
            Element::U8 => "|u1",
            Element::U16 => "<u2",
            Element::U32 => "<u4",
            Element::U64 => "<u8",
        }
    }

    /// The inverse of [`Element::name`].
    pub fn from_name(name: &str) -> Option<Element> {
        Element::ALL.into_iter().find(|e| e.name() == name)
    }

    /// Whether this is a floating-point type.
    pub fn is_float(self) -> bool {
        matches!(self, Element::F16 | Element::Bf16 | Element::F32 | Element::F64)
    }

    /// Whether this is an unsigned integer type.
    pub fn is_unsigned(self) -> bool {
        matches!(self, Element::U8 | Element::U16 | Element::U32 | Element::U64)
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Runs `$body` with `$T` standing for the type of an [`Element`]'s cells.
#[macro_export]
macro_rules! with_cell {
    ($element:expr, $T:ident => $body:expr) => {
        $crate::with_cell!(@ $element, $T => $body;
            F16 $crate::element::f16, Bf16 $crate::element::bf16,
            F32 f32, F64 f64, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64)
    };
    (@ $element:expr, $T:ident => $body:expr; $($name:ident $type:ty),*) => {
        match $element {
            $($crate::element::Element::$name => {
                type $T = $type;
                $body
            })*
        }
    };
}
pub use with_cell;
