//! The numbers of an array, of any type, and code that is the same for all types.

use crate::element::{Element, bf16, f16};
use crate::number::Number;
use std::fmt;

/// The numbers of an array, row-major.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// IEEE half precision.
    F16(Vec<f16>),
    /// The upper half of a single: 8 bits of precision, the range of f32.
    Bf16(Vec<bf16>),
    /// IEEE single precision.
    F32(Vec<f32>),
    /// IEEE double precision.
    F64(Vec<f64>),
    /// 8-bit signed integers.
    I8(Vec<i8>),
    /// 16-bit signed integers.
    I16(Vec<i16>),
    /// 32-bit signed integers.
    I32(Vec<i32>),
    /// 64-bit signed integers.
    I64(Vec<i64>),
    /// 8-bit unsigned integers.
    U8(Vec<u8>),
    /// 16-bit unsigned integers.
    U16(Vec<u16>),
    /// 32-bit unsigned integers.
    U32(Vec<u32>),
    /// 64-bit unsigned integers.
    U64(Vec<u64>),
}

/// Runs `$body` with `$v` bound to what a variant of `$enum` ([`Data`], [`DataRef`] or [`DataMut`])
/// holds, whatever its type, and `$wrap` to the variant.
#[macro_export]
macro_rules! each_cell {
    ($enum:ident, $data:expr, $wrap:ident($v:ident) => $body:expr) => {
        $crate::each_cell!(@ $enum, $data, $wrap($v) => $body;
            F16, Bf16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64)
    };
    (@ $enum:ident, $data:expr, $wrap:ident($v:ident) => $body:expr; $($name:ident),*) => {
        match $data {
            $($enum::$name($v) => {
                let $wrap = $enum::$name;
                $body
            })*
        }
    };
}
pub use each_cell;

/// As [`each_cell`], of a [`DataRef`] alone.
macro_rules! each {
    ($data:expr, $v:ident => $body:expr) => {
        each_cell!(DataRef, $data, _wrap($v) => $body)
    };
}

impl Data {
    /// The numbers, to be read.
    pub fn view(&self) -> DataRef<'_> {
        each_cell!(Data, self, _wrap(v) => Cell::view(v))
    }

    /// The numbers, to be changed in place.
    pub fn view_mut(&mut self) -> DataMut<'_> {
        each_cell!(Data, self, _wrap(v) => Cell::view_mut(v))
    }
}

/// A type that cells can have.
pub trait Cell: bytemuck::Pod + Default + PartialOrd + fmt::Debug + Send + Sync {
    /// Its name.
    const ELEMENT: Element;
    /// The cells of an array; none of an array of another type.
    fn of(data: DataRef<'_>) -> Option<&[Self]>;
    /// The cells of an array, to be changed; none of an array of another type.
    fn of_mut<'a>(data: &'a mut DataMut<'_>) -> Option<&'a mut [Self]>;
    /// Cells as the data of an array.
    fn data(cells: Vec<Self>) -> Data;
    /// Cells of an array, to be read.
    fn view(cells: &[Self]) -> DataRef<'_>;
    /// Cells of an array, to be changed.
    fn view_mut(cells: &mut [Self]) -> DataMut<'_>;
    /// A cell as a number.
    fn number(self) -> Number;
    /// A number as a cell; none where it is of another type.
    fn of_number(number: Number) -> Option<Self>;
}

macro_rules! cells_of {
    ($($name:ident $type:ty),*) => {$(
        impl Cell for $type {
            const ELEMENT: Element = Element::$name;

            fn of(data: DataRef<'_>) -> Option<&[Self]> {
                if let DataRef::$name(cells) = data { Some(cells) } else { None }
            }

            fn of_mut<'a>(data: &'a mut DataMut<'_>) -> Option<&'a mut [Self]> {
                if let DataMut::$name(cells) = data { Some(cells) } else { None }
            }

            fn data(cells: Vec<Self>) -> Data {
                Data::$name(cells)
            }

            fn view(cells: &[Self]) -> DataRef<'_> {
                DataRef::$name(cells)
            }

            fn view_mut(cells: &mut [Self]) -> DataMut<'_> {
                DataMut::$name(cells)
            }

            fn number(self) -> Number {
                Number::$name(self)
            }

            fn of_number(number: Number) -> Option<Self> {
                if let Number::$name(value) = number { Some(value) } else { None }
            }
        }
    )*};
}
cells_of!(
    F16 f16, Bf16 bf16, F32 f32, F64 f64,
    I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64
);
pub(super) use each;

/// The numbers of an array, to be read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DataRef<'a> {
    /// IEEE half precision.
    F16(&'a [f16]),
    /// The upper half of a single: 8 bits of precision, the range of f32.
    Bf16(&'a [bf16]),
    /// IEEE single precision.
    F32(&'a [f32]),
    /// IEEE double precision.
    F64(&'a [f64]),
    /// 8-bit signed integers.
    I8(&'a [i8]),
    /// 16-bit signed integers.
    I16(&'a [i16]),
    /// 32-bit signed integers.
    I32(&'a [i32]),
    /// 64-bit signed integers.
    I64(&'a [i64]),
    /// 8-bit unsigned integers.
    U8(&'a [u8]),
    /// 16-bit unsigned integers.
    U16(&'a [u16]),
    /// 32-bit unsigned integers.
    U32(&'a [u32]),
    /// 64-bit unsigned integers.
    U64(&'a [u64]),
}

/// The numbers of an array, to be changed in place; the length is fixed.
#[derive(Debug, PartialEq)]
pub enum DataMut<'a> {
    /// IEEE half precision.
    F16(&'a mut [f16]),
    /// The upper half of a single: 8 bits of precision, the range of f32.
    Bf16(&'a mut [bf16]),
    /// IEEE single precision.
    F32(&'a mut [f32]),
    /// IEEE double precision.
    F64(&'a mut [f64]),
    /// 8-bit signed integers.
    I8(&'a mut [i8]),
    /// 16-bit signed integers.
    I16(&'a mut [i16]),
    /// 32-bit signed integers.
    I32(&'a mut [i32]),
    /// 64-bit signed integers.
    I64(&'a mut [i64]),
    /// 8-bit unsigned integers.
    U8(&'a mut [u8]),
    /// 16-bit unsigned integers.
    U16(&'a mut [u16]),
    /// 32-bit unsigned integers.
    U32(&'a mut [u32]),
    /// 64-bit unsigned integers.
    U64(&'a mut [u64]),
}
