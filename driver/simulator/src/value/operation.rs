//! The names of operations on values.

/// An operation on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the math and arith dialects")]
pub enum Unary {
    NegF,
    AbsF,
    Sqrt,
    Rsqrt,
    Cbrt,
    Erf,
    Erfc,
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
    Asinh,
    Acosh,
    Atanh,
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
    /// A comparison of integers, by MLIR's number: eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge.
    Integer(u8),
    /// A comparison of floats, by the outcomes that count as true: bit 0 equal, bit 1 greater, bit
    /// 2 less, bit 3 unordered.
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
