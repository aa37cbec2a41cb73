//! Scalar types and what operations on them do, one value per thread.
//!
//! A value is 64 bits: an f32 in the low half, an f16 in the low quarter, integers sign-extended, a
//! boolean as 0 or 1. Each operation rounds to its own type, as on the device; integers wrap.
//! `value/kind.rs` holds the types, `value/operation.rs` the names of the operations.

mod kind;
mod operation;
#[cfg(test)]
mod tests;

pub use kind::Kind;
pub use operation::{Binary, Cast, Predicate, Unary};
use std::ops::Neg;
use stencil_runtime::array::{bf16, f16};
use stencil_runtime::number::half;

fn map(to: &mut [u64], a: &[u64], f: impl Fn(u64) -> u64) {
    for (to, a) in to.iter_mut().zip(a) {
        *to = f(*a);
    }
}

fn map2(to: &mut [u64], a: &[u64], b: &[u64], f: impl Fn(u64, u64) -> u64) {
    for ((to, a), b) in to.iter_mut().zip(a).zip(b) {
        *to = f(*a, *b);
    }
}

/// Computes in f32. Its digits suffice for `+ - * /`, roots and remainders to be rounded as if
/// once.
fn short(kind: Kind, to: &mut [u64], a: &[u64], f: impl Fn(f32) -> f32) {
    map(to, a, |a| shortened(kind, f(single(kind, a))));
}

/// The bits of an f16 or a bf16 as f32.
fn single(kind: Kind, bits: u64) -> f32 {
    match kind {
        Kind::Bf16 => bf16::from_bits(bits as u16).to_f32(),
        _ => f16::from_bits(bits as u16).to_f32(),
    }
}

/// The bits of a number rounded to f16 or bf16.
fn shortened(kind: Kind, value: f32) -> u64 {
    u64::from(match kind {
        Kind::Bf16 => bf16::from_f32(value).to_bits(),
        _ => f16::from_f32(value).to_bits(),
    })
}

fn narrow(to: &mut [u64], a: &[u64], f: impl Fn(f32) -> f32) {
    map(to, a, |a| u64::from(f(f32::from_bits(a as u32)).to_bits()));
}

fn wide(to: &mut [u64], a: &[u64], f: impl Fn(f64) -> f64) {
    map(to, a, |a| f(f64::from_bits(a)).to_bits());
}

fn short2(kind: Kind, to: &mut [u64], a: &[u64], b: &[u64], f: impl Fn(f32, f32) -> f32) {
    map2(to, a, b, |a, b| shortened(kind, f(single(kind, a), single(kind, b))));
}

fn narrow2(to: &mut [u64], a: &[u64], b: &[u64], f: impl Fn(f32, f32) -> f32) {
    map2(to, a, b, |a, b| {
        u64::from(f(f32::from_bits(a as u32), f32::from_bits(b as u32)).to_bits())
    });
}

fn wide2(to: &mut [u64], a: &[u64], b: &[u64], f: impl Fn(f64, f64) -> f64) {
    map2(to, a, b, |a, b| f(f64::from_bits(a), f64::from_bits(b)).to_bits());
}

/// The bits of a float as f64, which holds them all.
fn float(kind: Kind, bits: u64) -> f64 {
    match kind {
        Kind::F16 | Kind::Bf16 => f64::from(single(kind, bits)),
        Kind::F32 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

/// Applies an operation to every lane.
pub fn unary(op: Unary, kind: Kind, to: &mut [u64], a: &[u64]) {
    macro_rules! library {
        ($single:path, $double:path) => {
            match kind {
                Kind::F16 | Kind::Bf16 => short(kind, to, a, $single),
                Kind::F32 => narrow(to, a, $single),
                _ => wide(to, a, $double),
            }
        };
    }
    macro_rules! float {
        ($f:ident) => {
            library!(f32::$f, f64::$f)
        };
    }
    macro_rules! test {
        ($f:ident) => {
            map(to, a, |a| u64::from(float(kind, a).$f()))
        };
    }
    match op {
        Unary::NegF => float!(neg),
        Unary::AbsF => float!(abs),
        Unary::Sqrt => float!(sqrt),
        Unary::Rsqrt if kind == Kind::F64 => wide(to, a, |a| 1.0 / a.sqrt()),
        Unary::Rsqrt if kind == Kind::F32 => narrow(to, a, |a| 1.0 / a.sqrt()),
        // The root is rounded too, as on a processor.
        Unary::Rsqrt => {
            short(kind, to, a, f32::sqrt);
            to.iter_mut().for_each(|root| *root = shortened(kind, 1.0 / single(kind, *root)));
        }
        Unary::Cbrt => float!(cbrt),
        Unary::Erf => library!(libm::erff, libm::erf),
        Unary::Erfc => library!(libm::erfcf, libm::erfc),
        Unary::Asinh => library!(libm::asinhf, libm::asinh),
        Unary::Acosh => library!(libm::acoshf, libm::acosh),
        Unary::Atanh => library!(libm::atanhf, libm::atanh),
        Unary::Exp => float!(exp),
        Unary::Exp2 => float!(exp2),
        Unary::ExpM1 => float!(exp_m1),
        Unary::Log => float!(ln),
        Unary::Log2 => float!(log2),
        Unary::Log10 => float!(log10),
        Unary::Log1p => float!(ln_1p),
        Unary::Sin => float!(sin),
        Unary::Cos => float!(cos),
        Unary::Tan => float!(tan),
        Unary::Asin => float!(asin),
        Unary::Acos => float!(acos),
        Unary::Atan => float!(atan),
        Unary::Sinh => float!(sinh),
        Unary::Cosh => float!(cosh),
        Unary::Tanh => float!(tanh),
        Unary::Floor => float!(floor),
        Unary::Ceil => float!(ceil),
        Unary::Trunc => float!(trunc),
        Unary::Round => float!(round),
        Unary::RoundEven => float!(round_ties_even),
        Unary::AbsI => map(to, a, |a| kind.wrap((a as i64).wrapping_abs())),
        Unary::Ctpop => map(to, a, |a| u64::from(kind.unsigned(a).count_ones())),
        Unary::Ctlz => {
            map(to, a, |a| u64::from(kind.unsigned(a).leading_zeros() + kind.bits() - 64))
        }
        Unary::Cttz => {
            map(to, a, |a| u64::from(kind.unsigned(a).trailing_zeros().min(kind.bits())))
        }
        Unary::IsNan => test!(is_nan),
        Unary::IsFinite => test!(is_finite),
    }
}

fn maximum<T: PartialOrd + Copy>(
    a: T,
    b: T,
    nan: impl Fn(T) -> bool,
    negative: impl Fn(T) -> bool,
) -> T {
    if nan(a) {
        a
    } else if nan(b) || b > a || (a == b && negative(a)) {
        b
    } else {
        a
    }
}

fn minimum<T: PartialOrd + Copy>(
    a: T,
    b: T,
    nan: impl Fn(T) -> bool,
    negative: impl Fn(T) -> bool,
) -> T {
    if nan(a) {
        a
    } else if nan(b) || b < a || (a == b && negative(b)) {
        b
    } else {
        a
    }
}

/// Applies an operation to every lane. A division by 0 gives 0; the caller must look for it.
pub fn binary(op: Binary, kind: Kind, to: &mut [u64], a: &[u64], b: &[u64]) {
    macro_rules! float {
        (|$x:ident, $y:ident| $e:expr) => {
            match kind {
                Kind::F16 | Kind::Bf16 => short2(kind, to, a, b, |$x, $y| $e),
                Kind::F32 => narrow2(to, a, b, |$x, $y| $e),
                _ => wide2(to, a, b, |$x, $y| $e),
            }
        };
    }
    macro_rules! integer {
        (|$x:ident, $y:ident| $e:expr) => {
            map2(to, a, b, |a, b| {
                let ($x, $y) = (kind.signed(a), kind.signed(b));
                kind.wrap($e)
            })
        };
    }
    macro_rules! unsigned {
        (|$x:ident, $y:ident| $e:expr) => {
            map2(to, a, b, |a, b| {
                let ($x, $y) = (kind.unsigned(a), kind.unsigned(b));
                kind.wrap(($e) as i64)
            })
        };
    }
    match op {
        Binary::AddF => float!(|x, y| x + y),
        Binary::SubF => float!(|x, y| x - y),
        Binary::MulF => float!(|x, y| x * y),
        Binary::DivF => float!(|x, y| x / y),
        Binary::RemF => float!(|x, y| x % y),
        Binary::Maximum => float!(|x, y| maximum(x, y, |x| x.is_nan(), |x| x.is_sign_negative())),
        Binary::Minimum => float!(|x, y| minimum(x, y, |x| x.is_nan(), |x| x.is_sign_negative())),
        Binary::Maxnum => float!(|x, y| if x.is_nan() {
            y
        } else if y.is_nan() {
            x
        } else {
            maximum(x, y, |_| false, |x| x.is_sign_negative())
        }),
        Binary::Minnum => float!(|x, y| if x.is_nan() {
            y
        } else if y.is_nan() {
            x
        } else {
            minimum(x, y, |_| false, |x| x.is_sign_negative())
        }),
        Binary::Pow => float!(|x, y| x.powf(y)),
        Binary::Atan2 => float!(|x, y| x.atan2(y)),
        Binary::CopySign => float!(|x, y| x.copysign(y)),
        // The common operations on full-width integers are loops without a branch.
        Binary::AddI if kind.bits() == 64 => map2(to, a, b, u64::wrapping_add),
        Binary::SubI if kind.bits() == 64 => map2(to, a, b, u64::wrapping_sub),
        Binary::MulI if kind.bits() == 64 => map2(to, a, b, u64::wrapping_mul),
        Binary::AddI => integer!(|x, y| x.wrapping_add(y)),
        Binary::SubI => integer!(|x, y| x.wrapping_sub(y)),
        Binary::MulI => integer!(|x, y| x.wrapping_mul(y)),
        Binary::DivS => integer!(|x, y| if y == 0 { 0 } else { x.wrapping_div(y) }),
        Binary::RemS => integer!(|x, y| if y == 0 { 0 } else { x.wrapping_rem(y) }),
        Binary::FloorDiv => integer!(|x, y| if y == 0 { 0 } else { floor_div(x, y) }),
        Binary::CeilDiv => integer!(|x, y| if y == 0 { 0 } else { ceil_div(x, y) }),
        Binary::Mod => integer!(|x, y| if y == 0 { 0 } else { floor_mod(x, y) }),
        Binary::DivU => unsigned!(|x, y| x.checked_div(y).unwrap_or(0)),
        Binary::RemU => unsigned!(|x, y| x.checked_rem(y).unwrap_or(0)),
        Binary::CeilDivU => unsigned!(|x, y| if y == 0 { 0 } else { x.div_ceil(y) }),
        Binary::And => map2(to, a, b, |a, b| a & b),
        Binary::Or => map2(to, a, b, |a, b| a | b),
        Binary::Xor => map2(to, a, b, |a, b| a ^ b),
        Binary::Shl => unsigned!(|x, y| if y < u64::from(kind.bits()) { x << y } else { 0 }),
        Binary::ShrU => unsigned!(|x, y| if y < u64::from(kind.bits()) { x >> y } else { 0 }),
        Binary::ShrS => integer!(|x, y| x >> (kind.unsigned(y as u64)).min(63)),
        Binary::MaxS => integer!(|x, y| x.max(y)),
        Binary::MinS => integer!(|x, y| x.min(y)),
        Binary::MaxU => unsigned!(|x, y| x.max(y)),
        Binary::MinU => unsigned!(|x, y| x.min(y)),
    }
}

fn floor_div(x: i64, y: i64) -> i64 {
    let quotient = x.wrapping_div(y);
    if x.wrapping_rem(y) != 0 && (x < 0) != (y < 0) { quotient.wrapping_sub(1) } else { quotient }
}

fn ceil_div(x: i64, y: i64) -> i64 {
    let rounded_down = x.wrapping_rem(y) != 0 && (x < 0) == (y < 0);
    x.wrapping_div(y).wrapping_add(i64::from(rounded_down))
}

/// The remainder of [`floor_div`].
fn floor_mod(x: i64, y: i64) -> i64 {
    x.wrapping_sub(floor_div(x, y).wrapping_mul(y))
}

/// `a * b + c` rounded once, per lane.
pub fn fma(
    kind: Kind,
    to: &mut [u64],
    (a, b, c): (&[u64], &[u64], &[u64]),
    negate_product: bool,
    negate_addend: bool,
) {
    let (product, addend) =
        (if negate_product { -1.0 } else { 1.0 }, if negate_addend { -1.0 } else { 1.0 });
    for (((to, a), b), c) in to.iter_mut().zip(a).zip(b).zip(c) {
        *to = if kind == Kind::F16 {
            // The product is exact in f64, and what its sum loses there lies far below a tie of
            // f16.
            let [a, b, c] = [*a, *b, *c].map(|bits| float(kind, bits));
            u64::from(half(a * product * b + c * addend).to_bits())
        } else if kind == Kind::Bf16 {
            let [a, b, c] = [*a, *b, *c].map(|bits| single(kind, bits));
            shortened(kind, (a * product as f32).mul_add(b, c * addend as f32))
        } else if kind == Kind::F32 {
            let (a, b, c) =
                (f32::from_bits(*a as u32), f32::from_bits(*b as u32), f32::from_bits(*c as u32));
            u64::from((a * product as f32).mul_add(b, c * addend as f32).to_bits())
        } else {
            (f64::from_bits(*a) * product)
                .mul_add(f64::from_bits(*b), f64::from_bits(*c) * addend)
                .to_bits()
        };
    }
}

/// Compares per lane.
pub fn compare(predicate: Predicate, kind: Kind, to: &mut [u64], a: &[u64], b: &[u64]) {
    match predicate {
        Predicate::Integer(predicate) => {
            macro_rules! signed {
                ($op:tt) => { map2(to, a, b, |a, b| u64::from(kind.signed(a) $op kind.signed(b))) };
            }
            macro_rules! unsigned {
                ($op:tt) => {
                    map2(to, a, b, |a, b| u64::from(kind.unsigned(a) $op kind.unsigned(b)))
                };
            }
            match predicate {
                0 => map2(to, a, b, |a, b| u64::from(a == b)),
                1 => map2(to, a, b, |a, b| u64::from(a != b)),
                2 => signed!(<),
                3 => signed!(<=),
                4 => signed!(>),
                5 => signed!(>=),
                6 => unsigned!(<),
                7 => unsigned!(<=),
                8 => unsigned!(>),
                _ => unsigned!(>=),
            }
        }
        Predicate::Float(bits) => {
            let test = move |order: Option<std::cmp::Ordering>| {
                let bit = match order {
                    Some(std::cmp::Ordering::Equal) => 1,
                    Some(std::cmp::Ordering::Greater) => 2,
                    Some(std::cmp::Ordering::Less) => 4,
                    None => 8,
                };
                u64::from(bits & bit != 0)
            };
            map2(to, a, b, |a, b| test(float(kind, a).partial_cmp(&float(kind, b))));
        }
    }
}

/// Converts per lane.
pub fn cast(cast: Cast, from: Kind, into: Kind, to: &mut [u64], a: &[u64]) {
    let float = |a: u64| float(from, a);
    match cast {
        Cast::Signed => map(to, a, |a| into.wrap(from.signed(a))),
        Cast::Unsigned => map(to, a, |a| into.wrap(from.unsigned(a) as i64)),
        // From i64 to f32 directly: through f64 it would round twice.
        Cast::SignedToFloat if into == Kind::Bf16 => {
            map(to, a, |a| shortened(into, from.signed(a) as f32))
        }
        Cast::SignedToFloat if into == Kind::F32 => {
            map(to, a, |a| u64::from((from.signed(a) as f32).to_bits()))
        }
        // Integers that f64 would round are beyond f16.
        Cast::SignedToFloat => map(to, a, |a| into.number(from.signed(a) as f64)),
        Cast::UnsignedToFloat if into == Kind::Bf16 => {
            map(to, a, |a| shortened(into, from.unsigned(a) as f32))
        }
        Cast::UnsignedToFloat if into == Kind::F32 => {
            map(to, a, |a| u64::from((from.unsigned(a) as f32).to_bits()))
        }
        Cast::UnsignedToFloat => map(to, a, |a| into.number(from.unsigned(a) as f64)),
        Cast::FloatToSigned => map(to, a, |a| match into {
            Kind::I32 => (float(a) as i32) as u64,
            Kind::I16 => (float(a) as i16) as u64,
            Kind::I8 => (float(a) as i8) as u64,
            _ => into.wrap(float(a) as i64),
        }),
        Cast::FloatToUnsigned => map(to, a, |a| match into {
            Kind::I32 => into.wrap(i64::from(float(a) as u32)),
            Kind::I16 => into.wrap(i64::from(float(a) as u16)),
            Kind::I8 => into.wrap(i64::from(float(a) as u8)),
            _ => into.wrap(float(a) as u64 as i64),
        }),
        Cast::Float => map(to, a, |a| into.number(float(a))),
        Cast::Bits => map(to, a, |a| into.wrap(a as i64)),
    }
}
