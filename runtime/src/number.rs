//! Single numbers: of a type that cells have, and as text that has no type yet.

use crate::element::{Element, bf16, f16};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A number passed to a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// IEEE half precision.
    F16(f16),
    /// The upper half of a single: 8 bits of precision, the range of f32.
    Bf16(bf16),
    /// IEEE single precision.
    F32(f32),
    /// IEEE double precision.
    F64(f64),
    /// 8-bit signed integer.
    I8(i8),
    /// 16-bit signed integer.
    I16(i16),
    /// 32-bit signed integer.
    I32(i32),
    /// 64-bit signed integer.
    I64(i64),
    /// 8-bit unsigned integer.
    U8(u8),
    /// 16-bit unsigned integer.
    U16(u16),
    /// 32-bit unsigned integer.
    U32(u32),
    /// 64-bit unsigned integer.
    U64(u64),
}

/// The nearest f16, ties to even. (Conversions that go through f32 round twice.)
pub fn half(value: f64) -> f16 {
    f16::from_f32(to_odd(value))
}

/// The nearest bf16; of two equally near ones that whose last bit is 0.
pub fn brain(value: f64) -> bf16 {
    bf16::from_f32(to_odd(value))
}

/// An f32 that is rounded to 16 bits as the number itself would be: rounding to odd keeps a value
/// that lies beside a tie beside it (Boldo, Melquiond: When double rounding is odd, 2005).
fn to_odd(value: f64) -> f32 {
    let near = value as f32;
    let bits = near.to_bits();
    if f64::from(near) == value || value.is_nan() || bits & 1 == 1 {
        return near;
    }
    let odd = if f64::from(near).abs() < value.abs() { bits + 1 } else { bits - 1 };
    f32::from_bits(odd)
}

impl Number {
    /// A float of the given type, rounded to nearest; none where the type is an integer's, or where
    /// a finite value is beyond the type.
    pub fn float(element: Element, value: f64) -> Option<Self> {
        let number = match element {
            Element::F16 => Self::F16(half(value)),
            Element::Bf16 => Self::Bf16(bf16::from_f32(value as f32)),
            Element::F32 => Self::F32(value as f32),
            Element::F64 => Self::F64(value),
            _ => return None,
        };
        (number.as_f64().is_finite() || !value.is_finite()).then_some(number)
    }

    /// An integer in the given type: exact in an integer type, else rounded to nearest; none where
    /// it is beyond the type.
    pub fn integer(element: Element, value: i128) -> Option<Self> {
        match element {
            Element::I8 => i8::try_from(value).ok().map(Self::I8),
            Element::I16 => i16::try_from(value).ok().map(Self::I16),
            Element::I32 => i32::try_from(value).ok().map(Self::I32),
            Element::I64 => i64::try_from(value).ok().map(Self::I64),
            Element::U8 => u8::try_from(value).ok().map(Self::U8),
            Element::U16 => u16::try_from(value).ok().map(Self::U16),
            Element::U32 => u32::try_from(value).ok().map(Self::U32),
            Element::U64 => u64::try_from(value).ok().map(Self::U64),
            // From the integer itself: through f64 it could round twice.
            Element::F32 => Some(Self::F32(value as f32)),
            Element::Bf16 => Self::float(element, f64::from(value as f32)),
            Element::F16 | Element::F64 => Self::float(element, value as f64),
        }
    }

    /// Its type.
    pub fn element(self) -> Element {
        match self {
            Self::F16(_) => Element::F16,
            Self::Bf16(_) => Element::Bf16,
            Self::F32(_) => Element::F32,
            Self::F64(_) => Element::F64,
            Self::I8(_) => Element::I8,
            Self::I16(_) => Element::I16,
            Self::I32(_) => Element::I32,
            Self::I64(_) => Element::I64,
            Self::U8(_) => Element::U8,
            Self::U16(_) => Element::U16,
            Self::U32(_) => Element::U32,
            Self::U64(_) => Element::U64,
        }
    }

    /// The value as f64; a 64-bit integer is rounded.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::F16(value) => value.to_f64(),
            Self::Bf16(value) => value.to_f64(),
            Self::F32(value) => value.into(),
            Self::F64(value) => value,
            Self::I8(value) => value.into(),
            Self::I16(value) => value.into(),
            Self::I32(value) => value.into(),
            Self::I64(value) => value as f64,
            Self::U8(value) => value.into(),
            Self::U16(value) => value.into(),
            Self::U32(value) => value.into(),
            Self::U64(value) => value as f64,
        }
    }

    /// Its order beside a number of the same type; none beside a NaN or a number of another type.
    pub fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::F16(a), Self::F16(b)) => a.partial_cmp(&b),
            (Self::Bf16(a), Self::Bf16(b)) => a.partial_cmp(&b),
            (Self::F32(a), Self::F32(b)) => a.partial_cmp(&b),
            (Self::F64(a), Self::F64(b)) => a.partial_cmp(&b),
            (Self::I8(a), Self::I8(b)) => Some(a.cmp(&b)),
            (Self::I16(a), Self::I16(b)) => Some(a.cmp(&b)),
            (Self::I32(a), Self::I32(b)) => Some(a.cmp(&b)),
            (Self::I64(a), Self::I64(b)) => Some(a.cmp(&b)),
            (Self::U8(a), Self::U8(b)) => Some(a.cmp(&b)),
            (Self::U16(a), Self::U16(b)) => Some(a.cmp(&b)),
            (Self::U32(a), Self::U32(b)) => Some(a.cmp(&b)),
            (Self::U64(a), Self::U64(b)) => Some(a.cmp(&b)),
            _ => None,
        }
    }

    /// The bytes in memory, in this machine's order.
    pub fn bytes(self) -> Vec<u8> {
        match self {
            Self::F16(value) => value.to_ne_bytes().to_vec(),
            Self::Bf16(value) => value.to_ne_bytes().to_vec(),
            Self::F32(value) => value.to_ne_bytes().to_vec(),
            Self::F64(value) => value.to_ne_bytes().to_vec(),
            Self::I8(value) => value.to_ne_bytes().to_vec(),
            Self::I16(value) => value.to_ne_bytes().to_vec(),
            Self::I32(value) => value.to_ne_bytes().to_vec(),
            Self::I64(value) => value.to_ne_bytes().to_vec(),
            Self::U8(value) => value.to_ne_bytes().to_vec(),
            Self::U16(value) => value.to_ne_bytes().to_vec(),
            Self::U32(value) => value.to_ne_bytes().to_vec(),
            Self::U64(value) => value.to_ne_bytes().to_vec(),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::F16(value) => write!(f, "{:?}", value.to_f32()),
            Self::Bf16(value) => write!(f, "{:?}", value.to_f32()),
            Self::F32(value) => write!(f, "{value:?}"),
            Self::F64(value) => write!(f, "{value:?}"),
            Self::I8(value) => write!(f, "{value}"),
            Self::I16(value) => write!(f, "{value}"),
            Self::I32(value) => write!(f, "{value}"),
            Self::I64(value) => write!(f, "{value}"),
            Self::U8(value) => write!(f, "{value}"),
            Self::U16(value) => write!(f, "{value}"),
            Self::U32(value) => write!(f, "{value}"),
            Self::U64(value) => write!(f, "{value}"),
        }
    }
}

/// A number as it is written, of no type yet: no digit is lost before the type is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numeral(String);

impl Numeral {
    /// The number in a type: rounded to nearest for floats (for f16 from its f64), whole and in
    /// range for integers. None where there is no such number, or where rounding leaves 0 of it.
    pub fn number(&self, element: Element) -> Option<Number> {
        let mantissa = self.0.split(['e', 'E']).next().unwrap_or_default();
        let is_zero = !mantissa.contains(|letter| matches!(letter, '1'..='9'));
        self.nearest(element).filter(|number| number.as_f64() != 0.0 || is_zero)
    }

    fn nearest(&self, element: Element) -> Option<Number> {
        let wide: f64 = self.0.parse().ok()?;
        // Only the words `inf` and `infinity` mean it; digits that overflow do not.
        if wide.is_infinite() && self.0.contains(|letter: char| letter.is_ascii_digit()) {
            return None;
        }
        match element {
            Element::F32 => {
                let single: f32 = self.0.parse().ok()?;
                (single.is_finite() || !wide.is_finite()).then_some(Number::F32(single))
            }
            Element::F16 | Element::Bf16 | Element::F64 => Number::float(element, wide),
            _ => Number::integer(element, self.whole()?),
        }
    }

    /// The number, if it is whole and of so many digits: `1.5e3` is.
    fn whole(&self) -> Option<i128> {
        let (mantissa, exponent) = self.0.split_once(['e', 'E']).unwrap_or((&self.0, "0"));
        let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{before}{after}");
        let kept = digits.trim_end_matches('0');
        if matches!(kept, "" | "+" | "-") {
            return Some(0);
        }
        let zeros = i64::try_from(digits.len() - kept.len()).ok()?;
        let fraction = i64::try_from(after.len()).ok()?;
        let places = exponent.parse::<i64>().ok()?.checked_add(zeros)?.checked_sub(fraction)?;
        let factor = 10_i128.checked_pow(u32::try_from(places).ok()?)?;
        kept.parse::<i128>().ok()?.checked_mul(factor)
    }
}

/// A text that is no number.
#[derive(Debug, Error)]
#[error("it is no number; give one such as 0.25, or true or false for a bool")]
pub struct NoNumber;

/// A number as it is written; `true` and `false` are 1 and 0.
impl FromStr for Numeral {
    type Err = NoNumber;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "true" => Ok(Self("1".to_owned())),
            "false" => Ok(Self("0".to_owned())),
            _ => text.parse::<f64>().map(|_| Self(text.to_owned())).map_err(|_| NoNumber),
        }
    }
}

impl From<Number> for Numeral {
    fn from(number: Number) -> Self {
        Self(number.to_string())
    }
}

impl From<f64> for Numeral {
    fn from(number: f64) -> Self {
        Self(format!("{number:?}"))
    }
}

impl fmt::Display for Numeral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A JSON number; an infinity has none.
impl Serialize for Numeral {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Ok(value) = self.0.parse() {
            return serializer.serialize_i64(value);
        }
        if let Ok(value) = self.0.parse() {
            return serializer.serialize_u64(value);
        }
        match self.0.parse::<f64>() {
            Ok(value) if value.is_finite() => serializer.serialize_f64(value),
            _ => Err(ser::Error::custom(format!("`{self}` has no form in JSON"))),
        }
    }
}

impl<'de> Deserialize<'de> for Numeral {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = serde_json::Number::deserialize(deserializer)?.to_string();
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str, element: Element) -> Option<Number> {
        text.parse::<Numeral>().unwrap().number(element)
    }

    #[test]
    fn integers_are_exact_and_in_range() {
        assert_eq!(number("2147483647", Element::I32), Some(Number::I32(i32::MAX)));
        assert_eq!(number("2147483648", Element::I32), None);
        assert_eq!(number("2147483648", Element::U32), Some(Number::U32(1 << 31)));
        assert_eq!(number("-1", Element::U32), None);
        assert_eq!(number("1e3", Element::I32), Some(Number::I32(1000)));
        assert_eq!(number("0.5", Element::I32), None);
        assert_eq!(number("9007199254740993", Element::I64), Some(Number::I64(9007199254740993)));
        assert_eq!(number("9007199254740993.0", Element::I64), Some(Number::I64(9007199254740993)));
        let exact = Some(Number::I64(-9007199254740993));
        assert_eq!(number("-9.007199254740993e15", Element::I64), exact);
        assert_eq!(number("-.5e1", Element::I8), Some(Number::I8(-5)));
        assert_eq!(number("100e-2", Element::U8), Some(Number::U8(1)));
        assert_eq!(number("0e-9", Element::U8), Some(Number::U8(0)));
        assert_eq!(number("1.5e-1", Element::U8), None);
        assert_eq!(number("1e40", Element::U64), None);
        assert_eq!(number("18446744073709551615", Element::U64), Some(Number::U64(u64::MAX)));
        assert_eq!(number("18446744073709551616", Element::U64), None);
        assert_eq!(number("-9223372036854775808", Element::I64), Some(Number::I64(i64::MIN)));
        assert_eq!(number("nan", Element::I64), None);
        assert_eq!(number("inf", Element::I64), None);
    }

    #[test]
    fn numbers_of_one_type_are_compared() {
        assert_eq!(Number::U64(u64::MAX).compare(Number::U64(1)), Some(Ordering::Greater));
        assert_eq!(Number::I32(-1).compare(Number::I32(1)), Some(Ordering::Less));
        assert_eq!(Number::F32(0.0).compare(Number::F32(-0.0)), Some(Ordering::Equal));
        assert_eq!(Number::F64(f64::NAN).compare(Number::F64(f64::NAN)), None);
        assert_eq!(Number::F32(1.0).compare(Number::F64(1.0)), None);
    }

    #[test]
    fn floats_are_rounded_once_and_in_range() {
        // 2^24 + 1 and a bit: through f64 the bit would be lost to the tie.
        assert_eq!(
            number("16777217.0000000000000001", Element::F32),
            Some(Number::F32(16777218.0))
        );
        assert_eq!(number("1e39", Element::F32), None);
        assert_eq!(number("1e999", Element::F64), None);
        assert_eq!(number("1e-50", Element::F32), None);
        assert_eq!(number("-1e-400", Element::F64), None);
        assert_eq!(number("1e-400", Element::I32), None);
        assert_eq!(number("-0e-999", Element::F32), Some(Number::F32(-0.0)));
        assert_eq!(number("1e-45", Element::F32), Some(Number::F32(f32::from_bits(1))));
        assert_eq!(number("65519", Element::F16), Some(Number::F16(f16::MAX)));
        assert_eq!(number("65520", Element::F16), None);
        assert_eq!(number("-inf", Element::F16), Some(Number::F16(f16::NEG_INFINITY)));
        assert_eq!(Numeral::from(Number::F32(0.1)).number(Element::F32), Some(Number::F32(0.1)));
        let half = Number::F16(f16::from_bits(0x2e66));
        assert_eq!(Numeral::from(half).number(Element::F16), Some(half));
    }

    #[test]
    fn halves_are_rounded_once() {
        // A tie and what lies beside it by less than an f32 can tell.
        let (tie, bit) = (1.0 + 2.0_f64.powi(-11), 2.0_f64.powi(-40));
        assert_eq!(half(tie), f16::from_f32(1.0));
        assert_eq!(half(tie + bit), f16::from_bits(0x3c01));
        assert_eq!(half(-tie - bit), f16::from_bits(0xbc01));
        assert_eq!(half(1.0 + 3.0 * 2.0_f64.powi(-11) - bit), f16::from_bits(0x3c01));
        assert_eq!(half(65520.0), f16::INFINITY);
        assert_eq!(half(65520.0 - 2.0_f64.powi(-36)), f16::MAX);
        assert_eq!(half(-1e300), f16::NEG_INFINITY);
        assert_eq!(half(2.0_f64.powi(-25)), f16::from_bits(0));
        assert_eq!(half(2.0_f64.powi(-25) * (1.0 + 1e-15)), f16::from_bits(1));
        assert_eq!(half(-1e-300).to_bits(), 0x8000);
        assert!(half(f64::NAN).is_nan());
        // Every f16 is its own nearest.
        for bits in 0..=u16::MAX {
            let value = f16::from_bits(bits);
            assert!(value.is_nan() || half(value.to_f64()).to_bits() == bits, "{bits:#x}");
        }
    }

    #[test]
    fn numerals_are_json_numbers() {
        for text in ["18446744073709551615", "-3", "0.1", "1e30"] {
            let numeral: Numeral = text.parse().unwrap();
            let json = serde_json::to_string(&numeral).unwrap();
            let read: Numeral = serde_json::from_str(&json).unwrap();
            assert_eq!(read.number(Element::F64), numeral.number(Element::F64), "{json}");
        }
        assert_eq!(
            serde_json::to_string(&Numeral::from(Number::U64(u64::MAX))).unwrap(),
            "18446744073709551615"
        );
        assert!(serde_json::to_string(&Numeral::from(f64::INFINITY)).is_err());
        assert!("1x".parse::<Numeral>().is_err());
    }
}
