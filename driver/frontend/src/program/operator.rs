//! Operators and math functions.

/// Operators on one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `-a`
    Neg,
    /// `!a`
    Not,
    /// `~a`
    Inverse,
}

/// Operators on two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`; of integers toward zero, and 0 where `b` is 0.
    Div,
    /// `a % b`; the sign of `a`, and of integers `a` where `b` is 0.
    Rem,
    /// `a & b`
    BitAnd,
    /// `a | b`
    BitOr,
    /// `a ^ b`
    BitXor,
    /// `a << b`; `b` is taken modulo the bits of the type.
    Shl,
    /// `a >> b`; `b` is taken modulo the bits of the type, and the sign of `a` is kept.
    Shr,
    /// `a == b`
    Eq,
    /// `a != b`
    Ne,
    /// `a < b`
    Lt,
    /// `a <= b`
    Le,
    /// `a > b`
    Gt,
    /// `a >= b`
    Ge,
    /// `a && b`
    And,
    /// `a || b`
    Or,
}

impl BinaryOp {
    /// Whether it works on the bits of integers.
    pub fn is_bitwise(self) -> bool {
        matches!(self, Self::BitAnd | Self::BitOr | Self::BitXor) || self.is_shift()
    }

    /// Whether it is a shift.
    pub fn is_shift(self) -> bool {
        matches!(self, Self::Shl | Self::Shr)
    }
}

/// Math functions of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MathFunction {
    /// Smaller of two; of a number and a NaN the number.
    Min,
    /// Larger of two; of a number and a NaN the number.
    Max,
    /// Absolute value.
    Abs,
    /// Square root, correctly rounded.
    Sqrt,
    /// `1 / sqrt(a)`, each operation rounded.
    Rsqrt,
    /// Cubic root.
    Cbrt,
    /// 1 above 0, -1 below, and else the value itself.
    Sign,
    /// Natural exponential.
    Exp,
    /// 2 to the power `a`.
    Exp2,
    /// Natural logarithm.
    Log,
    /// Logarithm to the base 2.
    Log2,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// Tangent.
    Tan,
    /// The angle of the point with the ordinate `a` and the abscissa `b`.
    Atan2,
    /// Error function.
    Erf,
    /// Hyperbolic tangent.
    Tanh,
    /// `a` to the power `b`.
    Pow,
    /// Largest integer not above.
    Floor,
    /// Smallest integer not below.
    Ceil,
    /// `a * b + c`, rounded once.
    Fma,
}
