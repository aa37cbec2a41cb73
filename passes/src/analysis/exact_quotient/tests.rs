//! Quotients of the host against its divisions, bit for bit.

use super::{Arithmetic, Divisor};
use std::convert::Infallible;

/// Arithmetic of the host on numbers of 32 bits.
struct Single;

macro_rules! host {
    ($host:ident, $float:ty) => {
        impl Arithmetic for $host {
            type Number = $float;
            type Fault = Infallible;

            fn constant(&self, value: f64) -> Result<$float, Infallible> {
                Ok(value as $float)
            }
            fn negative(&self, a: $float) -> Result<$float, Infallible> {
                Ok(-a)
            }
            fn product(&self, a: $float, b: $float) -> Result<$float, Infallible> {
                Ok(a * b)
            }
            fn difference(&self, a: $float, b: $float) -> Result<$float, Infallible> {
                Ok(a - b)
            }
            fn fused(&self, [a, b]: [$float; 2], c: $float) -> Result<$float, Infallible> {
                Ok(a.mul_add(b, c))
            }
            fn unless_infinite(&self, x: $float, quotient: $float) -> Result<$float, Infallible> {
                Ok(if x.abs() == <$float>::INFINITY { x } else { quotient })
            }
        }
    };
}

/// The same on numbers of 64 bits.
struct Double;

host!(Single, f32);
host!(Double, f64);

/// Whether a quotient has other bits than the division's; any NaN is as good as another.
fn differs(divisor: &Divisor, by: f32, bits: u32) -> bool {
    let x = f32::from_bits(bits);
    let Ok(quotient) = divisor.quotient(&Single, x);
    let expected = x / by;
    quotient.to_bits() != expected.to_bits() && !(quotient.is_nan() && expected.is_nan())
}

fn differs_wide(divisor: &Divisor, by: f64, x: f64) -> bool {
    let Ok(quotient) = divisor.quotient(&Double, x);
    let expected = x / by;
    quotient.to_bits() != expected.to_bits() && !(quotient.is_nan() && expected.is_nan())
}

/// Divisors of many forms: of programs, next to powers of two, and the largest ones.
const DIVISORS: [f64; 24] = [
    3.0, 5.0, 6.0, 7.0, 9.0, 10.0, 12.0, 18.0, 25.0, 36.0, 48.0, 118.0, 127.0, 129.0, 159.0, 300.0,
    -5.0, -6.0, 65535.0, 65537.0, 196_608.0, 262_141.0, 262_142.0, 262_143.0,
];

/// Exponents of f32 at which forms change: subnormal dividends, subnormal quotients, the spacing of
/// the shift, ordinary numbers, and the largest with infinities and NaNs.
const EXPONENTS: [u32; 10] = [0, 1, 2, 4, 7, 16, 24, 127, 254, 255];

/// The numbers of an exponent and of a sign.
const MANTISSAS: u32 = 1 << 23;

/// With `STENCIL_EVERY_DIVIDEND` set, all `2^32` dividends of each divisor.
#[test]
fn quotients_have_the_bits_of_divisions() {
    let every = std::env::var_os("STENCIL_EVERY_DIVIDEND").is_some();
    for (place, by) in DIVISORS.into_iter().enumerate() {
        let divisor = Divisor::of(by, 32).unwrap();
        let wrong = if every {
            (0..=u32::MAX).find(|bits| differs(&divisor, by as f32, *bits))
        } else {
            // Two divisors have all dividends of these exponents, the others some of all.
            let step = if by == 5.0 || by == 118.0 { 1 } else { 61 };
            let ends = EXPONENTS.into_iter().flat_map(|exponent| {
                let sign = (place as u32 + exponent) % 2;
                let signed = sign * 256 + exponent;
                (signed * MANTISSAS..=signed * MANTISSAS + (MANTISSAS - 1)).step_by(step)
            });
            let all = (0..=u32::MAX).step_by(7919);
            all.chain(ends).find(|bits| differs(&divisor, by as f32, *bits))
        };
        assert_eq!(wrong.map(f32::from_bits), None, "divided by {by}");
    }
}

/// Numbers without a pattern (xorshift).
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Dividends of 53 bits whose quotients lie as close to the middle between two numbers as any:
/// `2X - (2k+1) c` is so small a number.
fn close(by: u64, state: &mut u64) -> Vec<f64> {
    // X has more bits than a number by those of c, which must be 0.
    let zeros = 64 - by.leading_zeros();
    let odd = by >> by.trailing_zeros();
    let mut inverse = 1_u64;
    for _ in 0..6 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
    }
    let mask = (1_u128 << (zeros + 1)) - 1;
    let mut found = Vec::new();
    for off in (-15_i64..=15).filter(|off| off % 2 != 0 && by % 2 == 1) {
        // (2k+1) c = -off, modulo 2^(zeros + 1)
        let low = u128::from(inverse.wrapping_mul(off.wrapping_neg() as u64)) & mask;
        let high = u128::from(random(state) >> 10 | 1 << 53) & !mask;
        let twice = (high | low) * u128::from(by);
        let twice = if off < 0 { twice - off.unsigned_abs() as u128 } else { twice + off as u128 };
        let x = (twice >> 1) as f64;
        if twice & mask == 0 && (x as u128) << 1 == twice {
            found.push(x);
        }
    }
    found
}

#[test]
fn wide_quotients_have_the_bits_of_divisions() {
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let wide = [(1_u64 << 47) - 1, (1 << 47) - 2, (1 << 46) + 1, 1_000_000_007];
    let mut hard = 0;
    for by in DIVISORS.into_iter().chain(wide.into_iter().map(|by| by as f64)) {
        let divisor = Divisor::of(by, 64).unwrap();
        let check = |x: f64| assert!(!differs_wide(&divisor, by, x), "{x:e} / {by}");
        for x in [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MAX, f64::MIN] {
            check(x);
        }
        for _ in 0..20_000 {
            check(f64::from_bits(random(&mut state)));
            // Subnormal quotients: any, small ones, and midpoints.
            check(f64::from_bits(random(&mut state) >> 8));
            check(f64::from_bits(random(&mut state) % (1 << 20)));
            let odd = random(&mut state) % (1 << 5) * 2 + 1;
            check(f64::from_bits(by.abs() as u64 / 2 * odd));
        }
        for _ in 0..2_000 {
            for x in close(by.abs() as u64, &mut state) {
                hard += 1;
                // A quotient in the middle of the range, and at its lower end.
                for scale in [1.0, 2.0_f64.powi(-900)] {
                    check(x * scale);
                    check(-x * scale);
                }
            }
        }
    }
    assert!(hard > 100_000, "{hard} dividends close to midpoints");
}

#[test]
fn divisors_are_small_integers() {
    for bits in [32, 64] {
        let others = [0.0, 1.0, 2.0, -4.0, 1024.0, 2.5, 0.1, 1e30, f64::INFINITY, f64::NAN];
        for by in others {
            assert_eq!(Divisor::of(by, bits), None, "{by}");
        }
    }
    assert_eq!(Divisor::of(262_145.0, 32), None);
    assert_eq!(Divisor::of(5.0, 16), None);
    assert!(Divisor::of(262_145.0, 64).is_some());
}

/// Errors that the tests above must find, each with a dividend at which it shows.
#[test]
fn other_constants_are_wrong() {
    let find = |divisor: Divisor, by: f32| {
        let ends = EXPONENTS.into_iter().flat_map(|exponent| {
            (exponent * MANTISSAS..=exponent * MANTISSAS + (MANTISSAS - 1)).step_by(61)
        });
        let all = (0..=u32::MAX).step_by(7919);
        all.chain(ends).any(|bits| differs(&divisor, by, bits))
    };
    let five = Divisor::of(5.0, 32).unwrap();
    let even = Divisor::of(118.0, 32).unwrap();
    assert!(!find(five, 5.0) && !find(even, 118.0));
    let next = |number: f64| f64::from((number as f32).next_up());
    // The reciprocal above the exact one.
    assert!(find(Divisor { reciprocal: next(even.reciprocal), ..even }, 118.0));
    // Ties to the nearest number, not to the even one.
    assert!(find(Divisor { shift: None, ..even }, 118.0));
    // Numbers at the shift that lie too far from each other, and too near.
    assert!(find(Divisor { shift: even.shift.map(|shift| shift * 2.0), ..even }, 118.0));
    assert!(find(Divisor { shift: even.shift.map(|shift| shift / 2.0), ..even }, 118.0));
    // The sign of the divisor.
    assert!(find(Divisor { is_negative: true, ..five }, 5.0));
}
