//! The types that a number of a cell can have, and code that is the same for all of them.

use serde::{Deserialize, Serialize};
use std::fmt;

pub use half::f16;

/// Type of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Element {
    /// IEEE half precision.
    F16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
}

impl Element {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::F16, Self::F32, Self::F64, Self::I32, Self::I64, Self::U32, Self::U64];

    /// Bytes of one number.
    pub fn size(self) -> usize {
        with_cell!(self, T => size_of::<T>())
    }

    /// The name in programs, plans and messages: `f16`, `f32`, `f64`, `i32`, `i64`, `u32`, `u64`.
    pub fn name(self) -> &'static str {
        match self {
            Element::F16 => "f16",
            Element::F32 => "f32",
            Element::F64 => "f64",
            Element::I32 => "i32",
            Element::I64 => "i64",
            Element::U32 => "u32",
            Element::U64 => "u64",
        }
    }

    /// NumPy's name of the type, little endian: `<f4`, `<u8` and the like.
    pub fn descr(self) -> &'static str {
        match self {
            Element::F16 => "<f2",
            Element::F32 => "<f4",
            Element::F64 => "<f8",
            Element::I32 => "<i4",
            Element::I64 => "<i8",
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
        matches!(self, Element::F16 | Element::F32 | Element::F64)
    }

    /// Whether this is an unsigned integer type.
    pub fn is_unsigned(self) -> bool {
        matches!(self, Element::U32 | Element::U64)
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
            F16 $crate::element::f16, F32 f32, F64 f64, I32 i32, I64 i64, U32 u32, U64 u64)
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
