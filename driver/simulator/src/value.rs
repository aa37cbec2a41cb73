//! Scalar types and what operations on them do, one value per thread.
//!
//! A value is 64 bits: an f32 in the low half, an f16 in the low quarter, integers sign-extended, a
//! boolean as 0 or 1. Each operation rounds to its own type, as on the device; integers wrap.

use std::ops::Neg;
use stencil_runtime::array::f16;
use stencil_runtime::number::half;

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
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

impl Kind {
    /// Bytes in memory.
    pub fn bytes(self) -> u64 {
        match self {
            Self::I1 | Self::I8 => 1,
            Self::I16 | Self::F16 => 2,
            Self::I32 | Self::Index32 | Self::F32 => 4,
            Self::I64 | Self::Index64 | Self::F64 => 8,
        }
    }

    /// Bits of an integer; an index counts as 64, because its overflow is found, not wrapped.
    pub fn bits(self) -> u32 {
        match self {
            Self::I1 => 1,
            Self::I8 => 8,
            Self::I16 | Self::F16 => 16,
            Self::I32 | Self::F32 => 32,
            _ => 64,
        }
    }

    /// Whether this is a floating-point type.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }

    /// Brings an integer to its type.
    pub fn wrap(self, value: i64) -> u64 {
        match self {
            Self::I1 => value as u64 & 1,
            Self::I8 => value as i8 as u64,
            Self::I16 => value as i16 as u64,
            Self::I32 => value as i32 as u64,
            Self::F16 => u64::from(value as u16),
            Self::F32 => u64::from(value as u32),
            _ => value as u64,
        }
    }

    /// Bits from memory in the form of a register.
    pub fn loaded(self, bits: u64) -> u64 {
        if self == Self::Index32 { bits as i32 as u64 } else { self.wrap(bits as i64) }
    }

    /// A number in this type, rounded.
    pub fn number(self, value: f64) -> u64 {
        match self {
            Self::F16 => u64::from(half(value).to_bits()),
            Self::F32 => u64::from((value as f32).to_bits()),
            Self::F64 => value.to_bits(),
            _ => self.wrap(value as i64),
        }
    }

    fn unsigned(self, value: u64) -> u64 {
        match self.bits() {
            64 => value,
            bits => value & ((1 << bits) - 1),
        }
    }

    fn signed(self, value: u64) -> i64 {
        if self == Self::I1 { -(value as i64 & 1) } else { value as i64 }
    }
}

/// An operation on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the math and arith dialects")]
pub enum Unary {
    NegF,
    AbsF,
    Sqrt,
    Rsqrt,
    Cbrt,
    Exp,
    Exp2,
    ExpM1,
    Log,
    Log2,
    Log10,
    Log1p,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Floor,
    Ceil,
    Trunc,
    Round,
    RoundEven,
    AbsI,
    Ctpop,
    Ctlz,
    Cttz,
    IsNan,
    IsInf,
    IsFinite,
}

/// An operation on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the arith and math dialects")]
pub enum Binary {
    AddF,
    SubF,
    MulF,
    DivF,
    RemF,
    Maximum,
    Minimum,
    Maxnum,
    Minnum,
    Pow,
    Atan2,
    CopySign,
    AddI,
    SubI,
    MulI,
    DivS,
    DivU,
    RemS,
    RemU,
    FloorDiv,
    CeilDiv,
    CeilDivU,
    /// The remainder of [`Binary::FloorDiv`]: never negative for a positive divisor.
    Mod,
    And,
    Or,
    Xor,
    Shl,
    ShrS,
    ShrU,
    MaxS,
    MinS,
    MaxU,
    MinU,
}

impl Binary {
    /// Whether a divisor of 0 is an error.
    pub fn divides(self) -> bool {
        matches!(
            self,
            Self::DivS
                | Self::DivU
                | Self::RemS
                | Self::RemU
                | Self::FloorDiv
                | Self::CeilDiv
                | Self::CeilDivU
                | Self::Mod
        )
    }
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predicate {
    /// Of integers, by MLIR's number: eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge.
    Integer(u8),
    /// Of floats, by the outcomes that count as true: bit 0 equal, bit 1 greater, bit 2 less, bit 3
    /// unordered.
    Float(u8),
}

/// A conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    /// Sign-extension, truncation, or to and from index.
    Signed,
    /// Zero-extension.
    Unsigned,
    /// From a signed integer to a float.
    SignedToFloat,
    /// From an unsigned integer to a float.
    UnsignedToFloat,
    /// From a float to a signed integer; the ends of the range where it does not fit.
    FloatToSigned,
    /// From a float to an unsigned integer.
    FloatToUnsigned,
    /// Between floats.
    Float,
    /// The same bits.
    Bits,
}

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

/// By way of f32, whose digits suffice for `+ - * /`, roots and remainders to be rounded as if
/// once.
fn short(to: &mut [u64], a: &[u64], f: impl Fn(f32) -> f32) {
    map(to, a, |a| u64::from(f16::from_f32(f(f16::from_bits(a as u16).to_f32())).to_bits()));
}

fn narrow(to: &mut [u64], a: &[u64], f: impl Fn(f32) -> f32) {
    map(to, a, |a| u64::from(f(f32::from_bits(a as u32)).to_bits()));
}

fn wide(to: &mut [u64], a: &[u64], f: impl Fn(f64) -> f64) {
    map(to, a, |a| f(f64::from_bits(a)).to_bits());
}

fn short2(to: &mut [u64], a: &[u64], b: &[u64], f: impl Fn(f32, f32) -> f32) {
    let wide = |bits: u64| f16::from_bits(bits as u16).to_f32();
    map2(to, a, b, |a, b| u64::from(f16::from_f32(f(wide(a), wide(b))).to_bits()));
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
        Kind::F16 => f16::from_bits(bits as u16).to_f64(),
        Kind::F32 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

/// Applies an operation to every lane.
pub fn unary(op: Unary, kind: Kind, to: &mut [u64], a: &[u64]) {
    macro_rules! float {
        ($f:ident) => {
            match kind {
                Kind::F16 => short(to, a, f32::$f),
                Kind::F32 => narrow(to, a, f32::$f),
                _ => wide(to, a, f64::$f),
            }
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
        Unary::Rsqrt => short(to, a, |a| 1.0 / a.sqrt()),
        Unary::Cbrt => float!(cbrt),
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
        Unary::IsInf => test!(is_infinite),
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

/// Applies an operation to every lane. A division by 0 gives 0; who divides must look for it.
pub fn binary(op: Binary, kind: Kind, to: &mut [u64], a: &[u64], b: &[u64]) {
    macro_rules! float {
        (|$x:ident, $y:ident| $e:expr) => {
            match kind {
                Kind::F16 => short2(to, a, b, |$x, $y| $e),
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
        Binary::CeilDiv => {
            integer!(|x, y| if y == 0 { 0 } else { floor_div(x.wrapping_neg(), y).wrapping_neg() })
        }
        Binary::Mod => integer!(|x, y| if y == 0 {
            0
        } else {
            x.wrapping_sub(floor_div(x, y).wrapping_mul(y))
        }),
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
                ($op:tt) => { map2(to, a, b, |a, b| u64::from(kind.unsigned(a) $op kind.unsigned(b))) };
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
        Cast::SignedToFloat if into == Kind::F32 => {
            map(to, a, |a| u64::from((from.signed(a) as f32).to_bits()))
        }
        // What f64 rounds is beyond f16.
        Cast::SignedToFloat => map(to, a, |a| into.number(from.signed(a) as f64)),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn two(op: Binary, kind: Kind, a: u64, b: u64) -> u64 {
        let mut to = [0];
        binary(op, kind, &mut to, &[a], &[b]);
        to[0]
    }

    #[test]
    fn integers_wrap_in_their_own_width() {
        assert_eq!(two(Binary::AddI, Kind::I32, i32::MAX as u64, 1) as i64, i64::from(i32::MIN));
        assert_eq!(two(Binary::MulI, Kind::I8, 100, 3) as i64, 44);
        assert_eq!(two(Binary::ShrU, Kind::I32, -1_i64 as u64, 28), 15);
        assert_eq!(two(Binary::ShrS, Kind::I32, -16_i64 as u64, 2) as i64, -4);
        assert_eq!(two(Binary::DivU, Kind::I32, -1_i64 as u64, 2), 0x7fff_ffff);
        assert_eq!(two(Binary::FloorDiv, Kind::Index64, -7_i64 as u64, 2) as i64, -4);
        assert_eq!(two(Binary::CeilDiv, Kind::Index64, 7, 2), 4);
        assert_eq!(two(Binary::Mod, Kind::Index64, -1_i64 as u64, 8), 7);
        assert_eq!(two(Binary::DivS, Kind::I32, 5, 0), 0);
    }

    #[test]
    fn f32_rounds_after_each_operation_and_fma_once() {
        let bits = |x: f32| u64::from(x.to_bits());
        let (a, b) = (1.0_f32 + f32::EPSILON, 1.0_f32 - f32::EPSILON);
        let product = two(Binary::MulF, Kind::F32, bits(a), bits(b));
        assert_eq!(f32::from_bits(product as u32), 1.0);
        let mut to = [0];
        fma(Kind::F32, &mut to, (&[bits(a)], &[bits(b)], &[bits(1.0)]), false, true);
        assert_eq!(f32::from_bits(to[0] as u32), -f32::EPSILON * f32::EPSILON);
    }

    #[test]
    fn f16_rounds_after_each_operation_and_fma_once() {
        let bits = |x: f32| u64::from(f16::from_f32(x).to_bits());
        assert_eq!(two(Binary::AddF, Kind::F16, bits(2048.0), bits(1.0)), bits(2048.0));
        assert_eq!(two(Binary::AddF, Kind::F16, bits(65504.0), bits(65504.0)), bits(f32::INFINITY));
        let mut to = [0];
        fma(Kind::F16, &mut to, (&[bits(45.25)], &[bits(45.25)], &[bits(45.25)]), false, false);
        assert_eq!(to, [bits(2092.0)]);
        cast(
            Cast::Float,
            Kind::F64,
            Kind::F16,
            &mut to,
            &[(1.0 + 2.0_f64.powi(-11) + 2.0_f64.powi(-40)).to_bits()],
        );
        assert_eq!(to, [0x3c01]);
        cast(Cast::UnsignedToFloat, Kind::I32, Kind::F16, &mut to, &[-1_i64 as u64]);
        assert_eq!(to, [bits(f32::INFINITY)]);
    }

    #[test]
    fn minima_and_nan() {
        let bits = |x: f32| u64::from(x.to_bits());
        assert!(
            f32::from_bits(two(Binary::Minimum, Kind::F32, bits(f32::NAN), bits(1.0)) as u32)
                .is_nan()
        );
        assert_eq!(two(Binary::Minnum, Kind::F32, bits(f32::NAN), bits(1.0)), bits(1.0));
        assert_eq!(two(Binary::Minimum, Kind::F32, bits(0.0), bits(-0.0)), bits(-0.0));
        assert_eq!(two(Binary::Maximum, Kind::F32, bits(-0.0), bits(0.0)), bits(0.0));
    }

    #[test]
    fn comparisons_know_nan_and_sign() {
        let mut to = [9];
        let nan = f64::NAN.to_bits();
        compare(Predicate::Float(6), Kind::F64, &mut to, &[nan], &[nan]); // one
        assert_eq!(to, [0]);
        compare(Predicate::Float(14), Kind::F64, &mut to, &[nan], &[0]); // une
        assert_eq!(to, [1]);
        compare(Predicate::Integer(6), Kind::I32, &mut to, &[1], &[-1_i64 as u64]); // ult
        assert_eq!(to, [1]);
    }

    #[test]
    fn casts() {
        let mut to = [0];
        cast(Cast::Unsigned, Kind::I32, Kind::I64, &mut to, &[-1_i64 as u64]);
        assert_eq!(to, [0xffff_ffff]);
        cast(Cast::Bits, Kind::F32, Kind::I32, &mut to, &[0x8000_0000]);
        assert_eq!(to[0] as i64, i64::from(i32::MIN));
        cast(Cast::SignedToFloat, Kind::I64, Kind::F32, &mut to, &[(1 << 24) + 1]);
        assert_eq!(f32::from_bits(to[0] as u32), 16_777_216.0);
        cast(Cast::FloatToSigned, Kind::F64, Kind::I32, &mut to, &[1e10_f64.to_bits()]);
        assert_eq!(to[0] as i64, i64::from(i32::MAX));
    }
}
