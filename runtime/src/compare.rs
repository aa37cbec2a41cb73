//! The comparison of two arrays, bit by bit and by the size of the errors.

use crate::array::{Array, ArrayError, DataRef, bf16, f16};
use crate::on_threads::on_threads;
use serde::Serialize;
use std::fmt;

/// The result of [`compare`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Cells compared.
    pub cells: usize,
    /// Cells whose bits differ. Two NaNs count as the same, whatever their payload; the zeros of
    /// either sign count as different.
    pub differing: usize,
    /// Cells that are NaN on both sides, which agree about nothing.
    pub lost: usize,
    /// The first that differs.
    pub first: Option<Difference>,
    /// Largest `|a - b|`; infinite where one is a NaN or an infinity that the other is not.
    pub max_absolute: f64,
    /// Largest `|a - b| / max(|a|, |b|)`: 0 to 2, or infinite as above.
    pub max_relative: f64,
    /// Largest finite magnitude in the second array.
    pub largest: f64,
    /// Most representable numbers between the two, in the array's own type; for integers the
    /// difference. `u64::MAX` where just one is a NaN.
    pub max_ulp: u64,
}

/// A cell that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Its place, slowest dimension first.
    pub index: Vec<usize>,
    /// The number in the first array, as text that shows every bit.
    pub left: String,
    /// The number in the second.
    pub right: String,
}

impl Comparison {
    /// The largest error relative to the largest magnitude of the second array.
    pub fn error(&self) -> f64 {
        if self.exact() { 0.0 } else { self.max_absolute / self.largest.max(f64::MIN_POSITIVE) }
    }

    /// Whether every cell has the same bits.
    pub fn exact(&self) -> bool {
        self.differing == 0
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = &self.first else {
            return match self.lost {
                0 => write!(f, "all {} cells agree bit for bit", self.cells),
                lost => write!(
                    f,
                    "{lost} of {} cells are NaN on both sides (--check-finite finds the first), \
                     the others agree bit for bit",
                    self.cells
                ),
            };
        };
        write!(
            f,
            "{} of {} cells differ (first at {:?}: {} and {}); max relative error {:.3e}, absolute \
             {:.3e}, {} ulp",
            self.differing,
            self.cells,
            first.index,
            first.left,
            first.right,
            self.max_relative,
            self.max_absolute,
            self.max_ulp
        )
    }
}

/// Compares two arrays of one shape and type, cell by cell.
///
/// # Errors
/// When shapes or types differ.
pub fn compare(left: &Array, right: &Array) -> Result<Comparison, ArrayError> {
    let unlike = || ArrayError::Unlike { left: left.kind(), right: right.kind() };
    if left.shape() != right.shape() {
        return Err(unlike());
    }
    match (left.data(), right.data()) {
        (DataRef::F16(a), DataRef::F16(b)) => Ok(compare_cells(left.shape(), a, b)),
        (DataRef::Bf16(a), DataRef::Bf16(b)) => Ok(compare_cells(left.shape(), a, b)),
        (DataRef::F32(a), DataRef::F32(b)) => Ok(compare_cells(left.shape(), a, b)),
        (DataRef::F64(a), DataRef::F64(b)) => Ok(compare_cells(left.shape(), a, b)),
        (DataRef::I8(a), DataRef::I8(b)) => Ok(compare_cells(left.shape(), a, b)),
        (DataRef::I16(a), DataRef::I16(b)) => Ok(compare_cells(left.shape(), a, b)),
        (DataRef::I32(a), DataRef::I32(b)) => Ok(compare_cells(left.shape(), a, b)),
        (DataRef::I64(a), DataRef::I64(b)) => Ok(compare_cells(left.shape(), a, b)),
        (DataRef::U8(a), DataRef::U8(b)) => Ok(compare_cells(left.shape(), a, b)),
        (DataRef::U16(a), DataRef::U16(b)) => Ok(compare_cells(left.shape(), a, b)),
        (DataRef::U32(a), DataRef::U32(b)) => Ok(compare_cells(left.shape(), a, b)),
        (DataRef::U64(a), DataRef::U64(b)) => Ok(compare_cells(left.shape(), a, b)),
        _ => Err(unlike()),
    }
}

/// Operations that a comparison needs of a number.
trait Comparable: Copy + Sync + fmt::Debug {
    /// Same bits, or both NaN.
    fn same(self, other: Self) -> bool;
    /// As f64, for errors.
    fn value(self) -> f64;
    /// Position in the order of all numbers of the type, zeros of either sign at 0; `None` for NaN.
    fn rank(self) -> Option<i128>;
}

macro_rules! float_comparable {
    ($type:ty, $sign:expr) => {
        impl Comparable for $type {
            fn same(self, other: Self) -> bool {
                self.to_bits() == other.to_bits() || (self.is_nan() && other.is_nan())
            }
            fn value(self) -> f64 {
                f64::from(self)
            }
            fn rank(self) -> Option<i128> {
                if self.is_nan() {
                    return None;
                }
                let magnitude = i128::from(self.to_bits() & !$sign);
                Some(if self.to_bits() & $sign == 0 { magnitude } else { -magnitude })
            }
        }
    };
}
float_comparable!(f16, 0x8000u16);
float_comparable!(bf16, 0x8000u16);
float_comparable!(f32, 0x8000_0000u32);
float_comparable!(f64, 0x8000_0000_0000_0000u64);

macro_rules! integer_comparable {
    ($type:ty) => {
        impl Comparable for $type {
            fn same(self, other: Self) -> bool {
                self == other
            }
            fn value(self) -> f64 {
                self as f64
            }
            fn rank(self) -> Option<i128> {
                Some(i128::from(self))
            }
        }
    };
}
integer_comparable!(i8);
integer_comparable!(i16);
integer_comparable!(i32);
integer_comparable!(i64);
integer_comparable!(u8);
integer_comparable!(u16);
integer_comparable!(u32);
integer_comparable!(u64);

/// Cells that a thread compares at least.
const PART: usize = 1 << 20;

fn compare_cells<T: Comparable>(shape: &[usize], left: &[T], right: &[T]) -> Comparison {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let length = left.len().div_ceil(threads).max(PART);
    let parts = (0..).step_by(length).zip(left.chunks(length).zip(right.chunks(length)));
    let parts = on_threads(parts.collect(), |(first, (left, right))| {
        compare_part(shape, first, left, right)
    });
    let mut result = compare_part(shape, 0, &left[..0], &right[..0]);
    for part in parts {
        result.cells += part.cells;
        result.differing += part.differing;
        result.lost += part.lost;
        result.first = result.first.or(part.first);
        result.max_absolute = result.max_absolute.max(part.max_absolute);
        result.max_relative = result.max_relative.max(part.max_relative);
        result.largest = result.largest.max(part.largest);
        result.max_ulp = result.max_ulp.max(part.max_ulp);
    }
    result
}

/// Compares some of the cells, the first of which has number `first` in the array.
fn compare_part<T: Comparable>(
    shape: &[usize],
    first: usize,
    left: &[T],
    right: &[T],
) -> Comparison {
    let mut result = Comparison {
        cells: left.len(),
        differing: 0,
        lost: 0,
        first: None,
        max_absolute: 0.0,
        max_relative: 0.0,
        largest: 0.0,
        max_ulp: 0,
    };
    for (i, (&a, &b)) in left.iter().zip(right).enumerate() {
        let (x, y) = (a.value(), b.value());
        if y.is_finite() {
            result.largest = result.largest.max(y.abs());
        }
        if a.same(b) {
            result.lost += usize::from(a.rank().is_none());
            continue;
        }
        result.differing += 1;
        if result.first.is_none() {
            let index = place(shape, first + i);
            result.first =
                Some(Difference { index, left: format!("{a:?}"), right: format!("{b:?}") });
        }
        let absolute = (x - y).abs();
        let (absolute, relative) = if !absolute.is_finite() {
            (f64::INFINITY, f64::INFINITY)
        } else if absolute == 0.0 {
            (0.0, 0.0)
        } else {
            (absolute, absolute / x.abs().max(y.abs()))
        };
        let ulp = match (a.rank(), b.rank()) {
            (Some(a), Some(b)) => u64::try_from(a.abs_diff(b)).unwrap_or(u64::MAX),
            _ => u64::MAX,
        };
        result.max_absolute = result.max_absolute.max(absolute);
        result.max_relative = result.max_relative.max(relative);
        result.max_ulp = result.max_ulp.max(ulp);
    }
    result
}

/// The coordinates of row-major cell number `i`.
fn place(shape: &[usize], mut i: usize) -> Vec<usize> {
    let mut index: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&extent| {
            let x = i % extent.max(1);
            i /= extent.max(1);
            x
        })
        .collect();
    index.reverse();
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Data;

    fn f32s(v: &[f32]) -> Array {
        Array::new(vec![v.len()], Data::F32(v.to_vec())).unwrap()
    }

    #[test]
    fn comparison_counts_bits() {
        let a = Array::new(vec![2, 3], Data::F32(vec![1.0, 2.0, f32::NAN, 0.0, 5.0, 6.0])).unwrap();
        let b =
            Array::new(vec![2, 3], Data::F32(vec![1.0, 2.0, -f32::NAN, -0.0, 5.0, 3.0])).unwrap();
        let found = compare(&a, &b).unwrap();
        assert_eq!((found.cells, found.differing, found.lost), (6, 2, 1));
        assert_eq!(
            found.first,
            Some(Difference { index: vec![1, 0], left: "0.0".into(), right: "-0.0".into() })
        );
        assert_eq!((found.max_absolute, found.max_relative, found.max_ulp), (3.0, 0.5, 1 << 23));
        let same = compare(&a, &a).unwrap();
        assert!(same.exact() && same.to_string().starts_with("1 of 6 cells are NaN on both"));
    }

    #[test]
    fn comparison_of_neighbours_zeros_and_nan() {
        let next = f32::from_bits(1.0f32.to_bits() + 1);
        assert_eq!(compare(&f32s(&[1.0]), &f32s(&[next])).unwrap().max_ulp, 1);
        let zeros = compare(&f32s(&[0.0]), &f32s(&[-0.0])).unwrap();
        assert_eq!((zeros.differing, zeros.max_ulp, zeros.max_relative), (1, 0, 0.0));
        let nan = compare(&f32s(&[f32::NAN]), &f32s(&[1.0])).unwrap();
        assert_eq!((nan.max_ulp, nan.max_absolute), (u64::MAX, f64::INFINITY));
        let opposite = compare(&f32s(&[f32::MAX]), &f32s(&[f32::MIN])).unwrap();
        assert_eq!(opposite.max_relative, 2.0);
    }

    #[test]
    #[should_panic(expected = "as planned")]
    fn a_part_that_panics_is_not_left_out() {
        #[derive(Clone, Copy, Debug)]
        struct Broken;
        impl Comparable for Broken {
            fn same(self, _: Self) -> bool {
                panic!("as planned")
            }
            fn value(self) -> f64 {
                0.0
            }
            fn rank(self) -> Option<i128> {
                None
            }
        }
        compare_cells(&[1], &[Broken], &[Broken]);
    }

    #[test]
    fn unlike_arrays_are_not_compared() {
        let error = compare(&f32s(&[1.0]), &f32s(&[1.0, 2.0])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "can't compare f32 1 with f32 2: shape and type must be the same"
        );
    }
}
