//! Quotients by constants without a division: the same bits for every dividend.
//!
//! Source: Markstein, Computation of elementary functions on the IBM RISC System/6000 processor,
//! IBM Journal of Research and Development 34(1), 1990: a quotient is estimated, and corrected by
//! its remainder, which is exact. Brisebarre, Muller and Raina, Accelerating correctly rounded
//! floating-point division when the divisor is known in advance, IEEE Transactions on Computers
//! 53(8), 2004, have a shorter form. It fails where a product is subnormal. The forms here hold for
//! all dividends, because the divisor is a small integer.
//!
//! Let `c` be the divisor, an integer from 3 to `2^(p-6)` that is no power of two, `p` the bits of
//! the significand, and `v` the smallest subnormal number. All operations round to nearest, ties to
//! even; `fma(a, b, c)` rounds `a * b + c` once.
//!
//! | odd `c`, `z = 1 / c` rounded to nearest | even `c`, `z = 1 / c` rounded down |
//! |---|---|
//! | `d = x * z` | `n = M - fma(x, z, M)`, `M = 1.5 * 2^p * v`; `d = -n` |
//! | `w = fma(d, c, -x)` | `w = fma(n, -c, -x)` |
//! | `q = fma(w, -z, d)` | `q = fma(w, -z, -n)` |
//!
//! Where `x` is infinite, `w` is no number, and the result is `x`. A negative divisor divides `-x`.
//!
//! **Distance.** Let `u` be the spacing of numbers at `x / c`. Since `c > 1`, `x` is a multiple of
//! `u`: `x = X u`. A midpoint of two numbers is `(2k+1) u / 2`. The quotient's distance to it is
//! `|2X - (2k+1) c| u / 2c`: 0, or at least `u / 2c`. If it is 0, `c` is even and the quotient
//! subnormal: a midpoint of normal numbers has more than `p` bits, and so has its product with `c`,
//! which would be `x`.
//!
//! **Remainder.** `z` is off by less than `2^(1-p)` of its value, so `x z` by less than `2u`. With
//! the roundings behind it, of which the one to the spacing at `M` is the largest,
//! `|d - x / c| <= 6u`. `d` and `x` are multiples of `u / 2`, and so is `d c - x`. It is at most
//! `6u c < 2^p u / 2`: `w` is exact.
//!
//! **Rounding.** The last operation rounds `d - (d - x / c) c z`. It is off the quotient by
//! `|d - x / c| |1 - c z| <= 6u 2^(1-p) < u / 2c`: no midpoint lies between, and both round alike.
//!
//! **Ties.** Let `c` be even and `x / c` a midpoint. Then `v = u`, and `x` has an odd part of at
//! most `p` bits, so `|x / c| <= 2^(p-1) v / 3`. Numbers at `M` have the spacing `2v`: `d` is an
//! even multiple of `v`, off `x z` by at most `v`, and off `x / c` by less than `1.5v`, so by
//! `v / 2`. As `0 < c z < 1`, the last operation rounds a number between `d` and the midpoint. It
//! gives `d`, the even neighbour.
//!
//! **Zeros.** For `x = 0` and `x = -0` the last operation is `0 + 0` or `-0 + -0`, with the sign of
//! `x`. A quotient that rounds to 0 has the sign of the number that is rounded.

/// The arithmetic in which a quotient is computed.
pub trait Arithmetic {
    /// A number.
    type Number: Copy;
    /// Why an operation can't be made.
    type Fault;

    /// A constant.
    fn constant(&self, value: f64) -> Result<Self::Number, Self::Fault>;
    /// `-a`
    fn negative(&self, a: Self::Number) -> Result<Self::Number, Self::Fault>;
    /// `a * b`
    fn product(&self, a: Self::Number, b: Self::Number) -> Result<Self::Number, Self::Fault>;
    /// `a - b`
    fn difference(&self, a: Self::Number, b: Self::Number) -> Result<Self::Number, Self::Fault>;
    /// `a * b + c`, rounded once.
    fn fused(
        &self,
        factors: [Self::Number; 2],
        c: Self::Number,
    ) -> Result<Self::Number, Self::Fault>;
    /// `quotient`, or `x` where that is infinite.
    fn unless_infinite(
        &self,
        x: Self::Number,
        quotient: Self::Number,
    ) -> Result<Self::Number, Self::Fault>;
}

/// A divisor whose quotients need no division.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Divisor {
    /// Its absolute value.
    magnitude: f64,
    is_negative: bool,
    /// `z` of the head of this file.
    reciprocal: f64,
    /// `M` of the head of this file, for an even divisor.
    shift: Option<f64>,
}

impl Divisor {
    /// A divisor of numbers with so many bits. None for others than small integers, for powers of
    /// two, whose reciprocal is exact, and for types other than `f32` and `f64`.
    pub fn of(divisor: f64, bits: u32) -> Option<Self> {
        let magnitude = divisor.abs();
        let (largest, shift, nearest) = match bits {
            32 => (2.0_f64.powi(18), 1.5 * 2.0_f64.powi(-125), f64::from(1.0 / magnitude as f32)),
            64 => (2.0_f64.powi(47), 1.5 * 2.0_f64.powi(-1021), 1.0 / magnitude),
            _ => return None,
        };
        if !(3.0..=largest).contains(&magnitude) || magnitude.fract() != 0.0 {
            return None;
        }
        let whole = magnitude as u64;
        if whole.is_power_of_two() {
            return None;
        }
        let is_even = whole.is_multiple_of(2);
        // The sign of the sum is exact.
        let is_above = nearest.mul_add(magnitude, -1.0) > 0.0;
        let reciprocal = match bits {
            _ if !is_even || !is_above => nearest,
            32 => f64::from((nearest as f32).next_down()),
            _ => nearest.next_down(),
        };
        let is_negative = divisor < 0.0;
        Some(Self { magnitude, is_negative, reciprocal, shift: is_even.then_some(shift) })
    }

    /// The operations of a quotient that floating-point units run, without the look at infinity.
    pub fn operations(&self) -> u32 {
        if self.shift.is_some() { 4 } else { 3 }
    }

    /// The quotient of `x`.
    pub fn quotient<A: Arithmetic>(&self, on: &A, x: A::Number) -> Result<A::Number, A::Fault> {
        let (x, less) = match self.is_negative {
            false => (x, on.negative(x)?),
            true => (on.negative(x)?, x),
        };
        let reciprocal = on.constant(self.reciprocal)?;
        let (estimate, remainder) = match self.shift {
            None => {
                let estimate = on.product(x, reciprocal)?;
                (estimate, on.fused([estimate, on.constant(self.magnitude)?], less)?)
            }
            Some(shift) => {
                let shift = on.constant(shift)?;
                let less_estimate = on.difference(shift, on.fused([x, reciprocal], shift)?)?;
                let divisor = on.constant(-self.magnitude)?;
                let remainder = on.fused([less_estimate, divisor], less)?;
                (on.negative(less_estimate)?, remainder)
            }
        };
        let quotient = on.fused([remainder, on.constant(-self.reciprocal)?], estimate)?;
        on.unless_infinite(x, quotient)
    }
}

#[cfg(test)]
mod tests;
