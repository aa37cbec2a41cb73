//! Dense arrays of numbers: the data of a field outside the device.
//!
//! Arrays are row-major without padding. Beside storage this file holds seeded noise that any
//! language can reproduce ([`noise_bits`]).

use crate::number::{self, Number};
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

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

/// Why an array could not be made or compared.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArrayError {
    /// The product of the extents does not fit in this machine's address space.
    #[error(
        "size overflow: an array of {} {element} cells does not fit in memory addresses; use \
         smaller sizes",
        shape_text(shape)
    )]
    TooLarge {
        /// Cells per dimension.
        shape: Vec<usize>,
        /// Type of a cell.
        element: Element,
    },
    /// The machine refused the memory.
    #[error(
        "out of memory: no {bytes} bytes for an array of {} {element} cells; use smaller sizes",
        shape_text(shape)
    )]
    OutOfMemory {
        /// Cells per dimension.
        shape: Vec<usize>,
        /// Type of a cell.
        element: Element,
        /// Bytes wanted.
        bytes: usize,
    },
    /// The data's length is not the product of the extents.
    #[error("{found} cells of data do not fill a shape of {} ({wanted} cells)", shape_text(shape))]
    Length {
        /// Cells per dimension.
        shape: Vec<usize>,
        /// Cells found.
        found: usize,
        /// Cells that the shape holds.
        wanted: usize,
    },
    /// Two arrays that were to be compared have different shapes or types.
    #[error("can't compare {left} with {right}: shape and type must be the same")]
    Unlike {
        /// Type and shape of the first.
        left: String,
        /// Type and shape of the second.
        right: String,
    },
}

/// The numbers of an array, row-major.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// IEEE half precision.
    F16(Vec<f16>),
    /// IEEE single precision.
    F32(Vec<f32>),
    /// IEEE double precision.
    F64(Vec<f64>),
    /// 32-bit signed integers.
    I32(Vec<i32>),
    /// 64-bit signed integers.
    I64(Vec<i64>),
    /// 32-bit unsigned integers.
    U32(Vec<u32>),
    /// 64-bit unsigned integers.
    U64(Vec<u64>),
}

/// Runs `$body` with `$T` standing for the type of an [`Element`]'s cells.
#[macro_export]
macro_rules! with_cell {
    ($element:expr, $T:ident => $body:expr) => {
        $crate::with_cell!(@ $element, $T => $body;
            F16 $crate::array::f16, F32 f32, F64 f64, I32 i32, I64 i64, U32 u32, U64 u64)
    };
    (@ $element:expr, $T:ident => $body:expr; $($name:ident $type:ty),*) => {
        match $element {
            $($crate::array::Element::$name => {
                type $T = $type;
                $body
            })*
        }
    };
}
pub use with_cell;

/// Runs `$body` with `$v` bound to what a variant of `$enum` ([`Data`] or [`DataMut`]) holds,
/// whatever its type, and `$wrap` to the variant.
#[macro_export]
macro_rules! each_cell {
    ($enum:ident, $data:expr, $wrap:ident($v:ident) => $body:expr) => {
        $crate::each_cell!(@ $enum, $data, $wrap($v) => $body; F16, F32, F64, I32, I64, U32, U64)
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

/// As [`each_cell`], of a [`Data`] alone.
macro_rules! each {
    ($data:expr, $v:ident => $body:expr) => {
        each_cell!(Data, $data, _wrap($v) => $body)
    };
}

/// A type that cells can have.
pub trait Cell: bytemuck::Pod + Default + PartialOrd + fmt::Debug + Send + Sync {
    /// Its name.
    const ELEMENT: Element;
    /// The cells of an array; none of an array of another type.
    fn of(data: &Data) -> Option<&[Self]>;
    /// The cells of an array, to be changed; none of an array of another type.
    fn of_mut<'a>(data: &'a mut DataMut<'_>) -> Option<&'a mut [Self]>;
    /// Cells as the data of an array.
    fn data(cells: Vec<Self>) -> Data;
    /// A cell as a number.
    fn number(self) -> Number;
    /// A number as a cell; none where it is of another type.
    fn of_number(number: Number) -> Option<Self>;
}

macro_rules! cells_of {
    ($($name:ident $type:ty),*) => {$(
        impl Cell for $type {
            const ELEMENT: Element = Element::$name;

            fn of(data: &Data) -> Option<&[Self]> {
                if let Data::$name(cells) = data { Some(cells) } else { None }
            }

            fn of_mut<'a>(data: &'a mut DataMut<'_>) -> Option<&'a mut [Self]> {
                if let DataMut::$name(cells) = data { Some(cells) } else { None }
            }

            fn data(cells: Vec<Self>) -> Data {
                Data::$name(cells)
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
cells_of!(F16 f16, F32 f32, F64 f64, I32 i32, I64 i64, U32 u32, U64 u64);

/// A dense array: row-major, no padding, the last dimension is contiguous.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    shape: Vec<usize>,
    data: Data,
}

impl Array {
    /// An array of the given numbers.
    ///
    /// # Errors
    /// When the data's length is not the product of the extents.
    pub fn new(shape: Vec<usize>, data: Data) -> Result<Array, ArrayError> {
        let found = each!(&data, v => v.len());
        let array = Array { shape, data };
        let wanted = cells(&array.shape, array.element())?;
        if wanted != found {
            return Err(ArrayError::Length { shape: array.shape, found, wanted });
        }
        Ok(array)
    }

    /// An array of zeros.
    ///
    /// # Errors
    /// When the size overflows or the machine has too little memory.
    pub fn zeros(element: Element, shape: &[usize]) -> Result<Array, ArrayError> {
        fn filled<T: Clone + Default>(
            element: Element,
            shape: &[usize],
        ) -> Result<Vec<T>, ArrayError> {
            let cells = cells(shape, element)?;
            let mut v: Vec<T> = Vec::new();
            v.try_reserve_exact(cells).map_err(|_| ArrayError::OutOfMemory {
                shape: shape.to_vec(),
                element,
                bytes: cells * element.size(),
            })?;
            v.resize(cells, T::default());
            Ok(v)
        }
        let data = with_cell!(element, T => T::data(filled::<T>(element, shape)?));
        Ok(Array { shape: shape.to_vec(), data })
    }

    /// Seeded noise, the same on every machine. With `z = noise_bits(seed, i)` ([`noise_bits`])
    /// and `i` the row-major number of the cell, a cell is
    ///
    /// | type | value | range |
    /// |---|---|---|
    /// | f64 | `(z >> 11) * 2^-53` | [0, 1) |
    /// | f32 | the f64 rounded to nearest, ties to even | [0, 1]: one in 2^25 rounds up to 1 |
    /// | f16 | the f64 rounded to nearest, ties to even | [0, 1]: one in 2^12 rounds up to 1 |
    /// | i32, i64, u32, u64 | `z >> 56` | 0 to 255 |
    ///
    /// In NumPy (arithmetic of `uint64` wraps):
    ///
    /// ```python
    /// def noise(seed, shape, dtype):
    ///     i = np.arange(1, np.prod(shape, dtype=np.uint64) + np.uint64(1), dtype=np.uint64)
    ///     z = np.uint64(seed) + i * np.uint64(0x9E3779B97F4A7C15)
    ///     z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    ///     z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    ///     z = z ^ (z >> np.uint64(31))
    ///     if np.issubdtype(dtype, np.integer):
    ///         return (z >> np.uint64(56)).astype(dtype).reshape(shape)
    ///     return ((z >> np.uint64(11)) * 2.0**-53).astype(dtype).reshape(shape)
    /// ```
    ///
    /// # Errors
    /// When the size overflows or the machine has too little memory.
    pub fn noise(element: Element, shape: &[usize], seed: u64) -> Result<Array, ArrayError> {
        Self::noise_of(element, shape, seed, |cell| cell)
    }

    /// As [`Array::noise`], with the bits of number `place(i)` for cell `i`.
    pub(crate) fn noise_of(
        element: Element,
        shape: &[usize],
        seed: u64,
        place: impl Fn(u64) -> u64 + Sync,
    ) -> Result<Array, ArrayError> {
        let fill = Noise { seed, place };
        fn unit(z: u64) -> f64 {
            (z >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
        }
        let mut array = Array::zeros(element, shape)?;
        match &mut array.data {
            Data::F16(v) => fill.cells(v, |z| number::half(unit(z))),
            Data::F32(v) => fill.cells(v, |z| unit(z) as f32),
            Data::F64(v) => fill.cells(v, unit),
            Data::I32(v) => fill.cells(v, |z| (z >> 56) as i32),
            Data::I64(v) => fill.cells(v, |z| (z >> 56) as i64),
            Data::U32(v) => fill.cells(v, |z| (z >> 56) as u32),
            Data::U64(v) => fill.cells(v, |z| z >> 56),
        }
        Ok(array)
    }

    /// Cells per dimension, slowest first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Type of a cell.
    pub fn element(&self) -> Element {
        fn of<T: Cell>(_: &[T]) -> Element {
            T::ELEMENT
        }
        each!(&self.data, v => of(v))
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        each!(&self.data, v => v.len())
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// The numbers, to be changed in place.
    pub fn data_mut(&mut self) -> DataMut<'_> {
        match &mut self.data {
            Data::F16(v) => DataMut::F16(v),
            Data::F32(v) => DataMut::F32(v),
            Data::F64(v) => DataMut::F64(v),
            Data::I32(v) => DataMut::I32(v),
            Data::I64(v) => DataMut::I64(v),
            Data::U32(v) => DataMut::U32(v),
            Data::U64(v) => DataMut::U64(v),
        }
    }

    /// Takes the array apart.
    pub fn into_parts(self) -> (Vec<usize>, Data) {
        (self.shape, self.data)
    }

    /// The memory of the numbers, in this machine's byte order.
    pub fn bytes(&self) -> &[u8] {
        each!(&self.data, v => bytemuck::cast_slice(v))
    }

    /// The memory of the numbers, to be overwritten.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        each!(&mut self.data, v => bytemuck::cast_slice_mut(v))
    }

    /// A cell; `None` outside the array.
    pub fn number(&self, index: usize) -> Option<Number> {
        each!(&self.data, v => v.get(index).map(|x| x.number()))
    }

    /// A cell as f64 (integers beyond 2^53 are rounded); `None` outside the array.
    pub fn get(&self, index: usize) -> Option<f64> {
        self.number(index).map(Number::as_f64)
    }

    /// Type and shape for messages: `f32 344x403`.
    pub fn kind(&self) -> String {
        format!("{} {}", self.element(), shape_text(&self.shape))
    }
}

/// Fills cells from the bits of their places.
struct Noise<F> {
    seed: u64,
    place: F,
}

impl<F: Fn(u64) -> u64 + Sync> Noise<F> {
    fn cells<T: Send>(&self, cells: &mut [T], value: impl Fn(u64) -> T + Sync) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let length = cells.len().div_ceil(threads).max(1 << 20);
        std::thread::scope(|scope| {
            for (first, part) in (0u64..).step_by(length).zip(cells.chunks_mut(length)) {
                let value = &value;
                scope.spawn(move || {
                    for (cell, i) in part.iter_mut().zip(first..) {
                        *cell = value(noise_bits(self.seed, (self.place)(i)));
                    }
                });
            }
        });
    }
}

/// The numbers of an array, to be changed in place; the length is fixed.
#[derive(Debug, PartialEq)]
pub enum DataMut<'a> {
    /// IEEE half precision.
    F16(&'a mut [f16]),
    /// IEEE single precision.
    F32(&'a mut [f32]),
    /// IEEE double precision.
    F64(&'a mut [f64]),
    /// 32-bit signed integers.
    I32(&'a mut [i32]),
    /// 64-bit signed integers.
    I64(&'a mut [i64]),
    /// 32-bit unsigned integers.
    U32(&'a mut [u32]),
    /// 64-bit unsigned integers.
    U64(&'a mut [u64]),
}

/// A shape for messages: `344x403`; `scalar` for none.
pub fn shape_text(shape: &[usize]) -> String {
    if shape.is_empty() {
        return "scalar".to_string();
    }
    shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x")
}

/// The random bits of cell `i`: output number `i` (from 0) of splitmix64 started at `seed`
/// (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
pub fn noise_bits(seed: u64, i: u64) -> u64 {
    let z = seed.wrapping_add(i.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The number of cells of a shape; no more than the machine can address in bytes.
fn cells(shape: &[usize], element: Element) -> Result<usize, ArrayError> {
    let too_large = || ArrayError::TooLarge { shape: shape.to_vec(), element };
    // An extent of 0 counts as 1 here, so that no product of some extents overflows anywhere.
    let most = shape
        .iter()
        .try_fold(1usize, |n, &extent| n.checked_mul(extent.max(1)))
        .ok_or_else(too_large)?;
    match most.checked_mul(element.size()) {
        Some(bytes) if isize::try_from(bytes).is_ok() => {
            Ok(if shape.contains(&0) { 0 } else { most })
        }
        _ => Err(too_large()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_splitmix64() {
        // The first outputs for seed 1234567 of the reference implementation (Vigna, splitmix64.c).
        let wanted =
            [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431];
        for (i, bits) in wanted.into_iter().enumerate() {
            assert_eq!(noise_bits(1234567, i as u64), bits);
        }
    }

    #[test]
    fn noise_is_what_numpy_makes_of_the_recipe() {
        let wanted = [
            0x3fd8_f2f8_7916_4c82,
            0x3f91_30f3_5fd0_f180,
            0x3fec_d308_1017_5625,
            0x3fe2_a75d_6e0c_e7c5,
        ];
        let array = Array::noise(Element::F64, &[2, 2], 7).unwrap();
        assert_eq!(array.data(), &Data::F64(wanted.map(f64::from_bits).to_vec()));
        let array = Array::noise(Element::I64, &[2, 2], 7).unwrap();
        assert_eq!(array.data(), &Data::I64(vec![99, 4, 230, 149]));
    }

    #[test]
    fn noise_of_all_types_comes_from_the_same_bits() {
        let shape = [3, 1000];
        let wide = Array::noise(Element::F64, &shape, 7).unwrap();
        let narrow = Array::noise(Element::F32, &shape, 7).unwrap();
        let whole = Array::noise(Element::I32, &shape, 7).unwrap();
        let (Data::F64(wide), Data::F32(narrow), Data::I32(whole)) =
            (wide.data(), narrow.data(), whole.data())
        else {
            panic!("wrong types");
        };
        for ((w, n), i) in wide.iter().zip(narrow).zip(whole) {
            assert!((0.0..1.0).contains(w));
            assert_eq!(*w as f32, *n);
            assert_eq!((w * 256.0).floor() as i32, *i);
        }
        let mean = wide.iter().sum::<f64>() / wide.len() as f64;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert_ne!(Array::noise(Element::F64, &shape, 8).unwrap().data(), &Data::F64(wide.clone()));
    }

    #[test]
    fn shapes_that_overflow_are_refused() {
        let error = Array::zeros(Element::F64, &[1 << 40, 1 << 40]).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("size overflow: an array of 1099511627776x1099511627776 f64"),
            "{error}"
        );
        assert_eq!(Array::zeros(Element::F32, &[0, 1 << 40]).unwrap().len(), 0);
        assert!(Array::zeros(Element::F32, &[0, usize::MAX, usize::MAX]).is_err());
        let error = Array::new(vec![2, 2], Data::I32(vec![1, 2, 3])).unwrap_err();
        assert_eq!(error.to_string(), "3 cells of data do not fill a shape of 2x2 (4 cells)");
    }

    #[test]
    fn bytes_are_the_memory() {
        let mut a = Array::zeros(Element::I32, &[2]).unwrap();
        a.bytes_mut().copy_from_slice(bytemuck::cast_slice(&[7i32, -1]));
        assert_eq!(a.data(), &Data::I32(vec![7, -1]));
        assert_eq!(a.bytes().len(), 8);
    }
}
