//! Seeded noise that any language can reproduce.

use super::{Array, ArrayError, Backing, DataMut, Element, bf16};
use crate::number;
use crate::on_threads::on_threads;

impl Array {
    /// Seeded noise, the same on every machine. With `z = noise_bits(seed, i)` ([`noise_bits`])
    /// and `i` the row-major number of the cell, a cell is
    ///
    /// | type | value | range |
    /// |---|---|---|
    /// | f64 | `(z >> 11) * 2^-53` | [0, 1) |
    /// | f32 | the f64 rounded to nearest, ties to even | [0, 1]: one in 2^25 rounds up to 1 |
    /// | f16 | the f64 rounded to nearest, ties to even | [0, 1]: one in 2^12 rounds up to 1 |
    /// | bf16 | the f64 rounded to f32, and then to bf16 | [0, 1]: one in 2^9 rounds up to 1 |
    /// | i8 | `z >> 57` | 0 to 127 |
    /// | other integers | `z >> 56` | 0 to 255 |
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
    ///         bits = 7 if dtype == np.int8 else 8
    ///         return (z >> np.uint64(64 - bits)).astype(dtype).reshape(shape)
    ///     return ((z >> np.uint64(11)) * 2.0**-53).astype(dtype).reshape(shape)
    /// ```
    ///
    /// # Errors
    /// When the size overflows or the machine has too little memory.
    pub fn noise(element: Element, shape: &[usize], seed: u64) -> Result<Array, ArrayError> {
        Self::noise_of(element, (shape, &Backing::Memory), seed, |cell| cell)
    }

    /// As [`Array::noise`], with the bits of number `place(i)` for cell `i`.
    pub(crate) fn noise_of(
        element: Element,
        (shape, backing): (&[usize], &Backing),
        seed: u64,
        place: impl Fn(u64) -> u64 + Sync,
    ) -> Result<Array, ArrayError> {
        let fill = Noise { seed, place };
        fn unit(z: u64) -> f64 {
            (z >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
        }
        let mut array = Array::zeros_on(element, shape, backing)?;
        match array.data_mut() {
            DataMut::F16(v) => fill.cells(v, |z| number::half(unit(z))),
            DataMut::Bf16(v) => fill.cells(v, |z| bf16::from_f32(unit(z) as f32)),
            DataMut::F32(v) => fill.cells(v, |z| unit(z) as f32),
            DataMut::F64(v) => fill.cells(v, unit),
            DataMut::I8(v) => fill.cells(v, |z| (z >> 57) as i8),
            DataMut::I16(v) => fill.cells(v, |z| (z >> 56) as i16),
            DataMut::I32(v) => fill.cells(v, |z| (z >> 56) as i32),
            DataMut::I64(v) => fill.cells(v, |z| (z >> 56) as i64),
            DataMut::U8(v) => fill.cells(v, |z| (z >> 56) as u8),
            DataMut::U16(v) => fill.cells(v, |z| (z >> 56) as u16),
            DataMut::U32(v) => fill.cells(v, |z| (z >> 56) as u32),
            DataMut::U64(v) => fill.cells(v, |z| z >> 56),
        }
        Ok(array)
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
        let parts = (0u64..).step_by(length).zip(cells.chunks_mut(length));
        on_threads(parts.collect(), |(first, part)| {
            for (cell, i) in part.iter_mut().zip(first..) {
                *cell = value(noise_bits(self.seed, (self.place)(i)));
            }
        });
    }
}

/// The random bits of cell `i`: output number `i` (from 0) of splitmix64 started at `seed`
/// (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
pub fn noise_bits(seed: u64, i: u64) -> u64 {
    let z = seed.wrapping_add(i.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::DataRef;

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
        assert_eq!(array.data(), DataRef::F64(&wanted.map(f64::from_bits)));
        let array = Array::noise(Element::I64, &[2, 2], 7).unwrap();
        assert_eq!(array.data(), DataRef::I64(&[99, 4, 230, 149]));
    }

    #[test]
    fn noise_of_all_types_comes_from_the_same_bits() {
        let shape = [3, 1000];
        let wide = Array::noise(Element::F64, &shape, 7).unwrap();
        let narrow = Array::noise(Element::F32, &shape, 7).unwrap();
        let whole = Array::noise(Element::I32, &shape, 7).unwrap();
        let (DataRef::F64(wide), DataRef::F32(narrow), DataRef::I32(whole)) =
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
        assert_ne!(Array::noise(Element::F64, &shape, 8).unwrap().data(), DataRef::F64(wide));
    }
}
