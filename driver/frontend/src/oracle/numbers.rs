//! Arithmetic of the number types: each operation in its own type, rounded once.

use super::registers::Lane;
use crate::program::{BinaryOp, MathFunction};
use stencil_runtime::array::{bf16, f16};
use stencil_runtime::number::half;

/// A number on its way from one type to another.
#[derive(Clone, Copy)]
pub enum Wide {
    Float(f64),
    Signed(i64),
    Unsigned(u64),
}

/// Arithmetic of a number type; integers wrap.
pub trait Number: Lane {
    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    fn mul(self, b: Self) -> Self;
    fn div(self, b: Self) -> Self;
    fn rem(self, b: Self) -> Self;
    fn neg(self) -> Self;
    /// `~a`; the checker lets it, and operators on bits, work on integers alone.
    fn inverse(self) -> Self {
        self
    }
    /// An operator on bits.
    fn bits(_: BinaryOp, a: Self, _: Self) -> Self {
        a
    }
    fn widen(self) -> Wide;
    fn narrow(wide: Wide) -> Self;
    fn call(function: MathFunction, a: Self, b: Self, c: Self) -> Self;
}

/// Floats to integers at the limits, 0 from NaN; integers wrap among themselves; to floats rounded
/// once.
macro_rules! narrow {
    () => {
        fn narrow(wide: Wide) -> Self {
            match wide {
                Wide::Float(value) => value as Self,
                Wide::Signed(value) => value as Self,
                Wide::Unsigned(value) => value as Self,
            }
        }
    };
}

macro_rules! float {
    ($($name:ident $erf:path),*) => {$(
        impl Number for $name {
            fn add(self, b: Self) -> Self {
                self + b
            }
            fn sub(self, b: Self) -> Self {
                self - b
            }
            fn mul(self, b: Self) -> Self {
                self * b
            }
            fn div(self, b: Self) -> Self {
                self / b
            }
            fn rem(self, b: Self) -> Self {
                self % b
            }
            fn neg(self) -> Self {
                -self
            }
            fn widen(self) -> Wide {
                Wide::Float(self.into())
            }
            narrow!();
            fn call(function: MathFunction, a: Self, b: Self, c: Self) -> Self {
                match function {
                    // Of a number and a NaN the number; of the two zeros the negative one.
                    MathFunction::Min => {
                        let first = b.is_nan() || a < b || (a == b && a.is_sign_negative());
                        if first { a } else { b }
                    }
                    // Of the two zeros the positive one.
                    MathFunction::Max => {
                        let first = b.is_nan() || a > b || (a == b && a.is_sign_positive());
                        if first { a } else { b }
                    }
                    MathFunction::Abs => a.abs(),
                    MathFunction::Sqrt => a.sqrt(),
                    MathFunction::Rsqrt => 1.0 / a.sqrt(),
                    MathFunction::Cbrt => a.cbrt(),
                    MathFunction::Sign if a > 0.0 => 1.0,
                    MathFunction::Sign if a < 0.0 => -1.0,
                    MathFunction::Sign => a,
                    MathFunction::Exp => a.exp(),
                    MathFunction::Exp2 => a.exp2(),
                    MathFunction::Log => a.ln(),
                    MathFunction::Log2 => a.log2(),
                    MathFunction::Sin => a.sin(),
                    MathFunction::Cos => a.cos(),
                    MathFunction::Tan => a.tan(),
                    MathFunction::Atan2 => a.atan2(b),
                    MathFunction::Erf => $erf(a),
                    MathFunction::Tanh => a.tanh(),
                    MathFunction::Pow => a.powf(b),
                    MathFunction::Floor => a.floor(),
                    MathFunction::Ceil => a.ceil(),
                    MathFunction::Fma => a.mul_add(b, c),
                }
            }
        }
    )*};
}
float!(f32 libm::erff, f64 libm::erf);

/// By way of f32, which rounds `+ - * /` and roots to the same f16 as rounding them once; by f64
/// where f32 has too few digits for that.
impl Number for f16 {
    fn add(self, b: Self) -> Self {
        f16::from_f32(self.to_f32() + b.to_f32())
    }
    fn sub(self, b: Self) -> Self {
        f16::from_f32(self.to_f32() - b.to_f32())
    }
    fn mul(self, b: Self) -> Self {
        f16::from_f32(self.to_f32() * b.to_f32())
    }
    fn div(self, b: Self) -> Self {
        f16::from_f32(self.to_f32() / b.to_f32())
    }
    fn rem(self, b: Self) -> Self {
        f16::from_f32(self.to_f32() % b.to_f32())
    }
    fn neg(self) -> Self {
        -self
    }
    fn widen(self) -> Wide {
        Wide::Float(self.to_f64())
    }
    fn narrow(wide: Wide) -> Self {
        half(f64::narrow(wide))
    }
    fn call(function: MathFunction, a: Self, b: Self, c: Self) -> Self {
        match function {
            MathFunction::Rsqrt => f16::from_f32_const(1.0).div(f16::from_f32(a.to_f32().sqrt())),
            MathFunction::Fma => half(a.to_f64() * b.to_f64() + c.to_f64()),
            _ => f16::from_f32(f32::call(function, a.to_f32(), b.to_f32(), c.to_f32())),
        }
    }
}

/// Each operation is that of f32, rounded; other numbers become one by way of f32.
impl Number for bf16 {
    fn add(self, b: Self) -> Self {
        bf16::from_f32(self.to_f32() + b.to_f32())
    }
    fn sub(self, b: Self) -> Self {
        bf16::from_f32(self.to_f32() - b.to_f32())
    }
    fn mul(self, b: Self) -> Self {
        bf16::from_f32(self.to_f32() * b.to_f32())
    }
    fn div(self, b: Self) -> Self {
        bf16::from_f32(self.to_f32() / b.to_f32())
    }
    fn rem(self, b: Self) -> Self {
        bf16::from_f32(self.to_f32() % b.to_f32())
    }
    fn neg(self) -> Self {
        -self
    }
    fn widen(self) -> Wide {
        Wide::Float(self.to_f64())
    }
    fn narrow(wide: Wide) -> Self {
        bf16::from_f32(f32::narrow(wide))
    }
    fn call(function: MathFunction, a: Self, b: Self, c: Self) -> Self {
        bf16::from_f32(f32::call(function, a.to_f32(), b.to_f32(), c.to_f32()))
    }
}

macro_rules! integer {
    ($($name:ident $wide:ident),*) => {$(
        impl Number for $name {
            fn add(self, b: Self) -> Self {
                self.wrapping_add(b)
            }
            fn sub(self, b: Self) -> Self {
                self.wrapping_sub(b)
            }
            fn mul(self, b: Self) -> Self {
                self.wrapping_mul(b)
            }
            fn div(self, b: Self) -> Self {
                if b == 0 { 0 } else { self.wrapping_div(b) }
            }
            fn rem(self, b: Self) -> Self {
                if b == 0 { self } else { self.wrapping_rem(b) }
            }
            fn neg(self) -> Self {
                self.wrapping_neg()
            }
            fn inverse(self) -> Self {
                !self
            }
            fn bits(op: BinaryOp, a: Self, b: Self) -> Self {
                match op {
                    BinaryOp::BitAnd => a & b,
                    BinaryOp::BitOr => a | b,
                    BinaryOp::BitXor => a ^ b,
                    // The count is taken modulo the bits of the type.
                    BinaryOp::Shl => a.wrapping_shl(b as u32),
                    BinaryOp::Shr => a.wrapping_shr(b as u32),
                    _ => a,
                }
            }
            fn widen(self) -> Wide {
                Wide::$wide(self.into())
            }
            narrow!();
            /// The checker lets no other function work on integers.
            fn call(function: MathFunction, a: Self, b: Self, _: Self) -> Self {
                match function {
                    MathFunction::Min => a.min(b),
                    MathFunction::Max => a.max(b),
                    MathFunction::Sign => $name::from(a > 0) - $name::from(a != 0 && a < 1),
                    MathFunction::Abs if a < $name::default() => a.wrapping_neg(),
                    _ => a,
                }
            }
        }
    )*};
}
integer!(
    i8 Signed, i16 Signed, i32 Signed, i64 Signed,
    u8 Unsigned, u16 Unsigned, u32 Unsigned, u64 Unsigned
);
