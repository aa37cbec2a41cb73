//! Scalar types: their widths, and how their values lie in 64 bits.

use stencil_runtime::number::{brain, half};

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A boolean.
    I1,
    /// An 8-bit integer.
    I8,
    /// A 16-bit integer.
    I16,
    /// A 32-bit integer.
    I32,
    /// A 64-bit integer.
    I64,
    /// An index of 32 bits: a value beyond is an error.
    Index32,
    /// An index of 64 bits.
    Index64,
    /// IEEE half precision.
    F16,
    /// The upper half of a single.
    Bf16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

impl Kind {
    /// Bytes in memory.
    #[inline]
    pub fn bytes(self) -> u64 {
        match self {
            Self::I1 | Self::I8 => 1,
            Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::Index32 | Self::F32 => 4,
            Self::I64 | Self::Index64 | Self::F64 => 8,
        }
    }

    /// Bits of an integer; an index counts as 64, because its overflow is found, not wrapped.
    #[inline]
    pub fn bits(self) -> u32 {
        match self {
            Self::I1 => 1,
            Self::I8 => 8,
            Self::I16 | Self::F16 | Self::Bf16 => 16,
            Self::I32 | Self::F32 => 32,
            _ => 64,
        }
    }

    /// Whether this is a floating-point type.
    #[inline]
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }

    /// Brings an integer to its type.
    #[inline]
    pub fn wrap(self, value: i64) -> u64 {
        match self {
            Self::I1 => value as u64 & 1,
            Self::I8 => value as i8 as u64,
            Self::I16 => value as i16 as u64,
            Self::I32 => value as i32 as u64,
            Self::F16 | Self::Bf16 => u64::from(value as u16),
            Self::F32 => u64::from(value as u32),
            _ => value as u64,
        }
    }

    /// Bits from memory in the form of a register.
    #[inline]
    pub fn loaded(self, bits: u64) -> u64 {
        if self == Self::Index32 { bits as i32 as u64 } else { self.wrap(bits as i64) }
    }

    /// A number in this type, rounded.
    #[inline]
    pub fn number(self, value: f64) -> u64 {
        match self {
            Self::F16 => u64::from(half(value).to_bits()),
            Self::Bf16 => u64::from(brain(value).to_bits()),
            Self::F32 => u64::from((value as f32).to_bits()),
            Self::F64 => value.to_bits(),
            _ => self.wrap(value as i64),
        }
    }

    /// The bits of an integer, read without a sign.
    #[inline]
    pub(super) fn unsigned(self, value: u64) -> u64 {
        match self.bits() {
            64 => value,
            bits => value & ((1 << bits) - 1),
        }
    }

    /// The bits of an integer, read with a sign.
    #[inline]
    pub(super) fn signed(self, value: u64) -> i64 {
        if self == Self::I1 { -(value as i64 & 1) } else { value as i64 }
    }
}
