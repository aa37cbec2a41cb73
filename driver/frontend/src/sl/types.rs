//! The types of SL, conversions between them as in C, and the words that C reserves.

use crate::program::{Expr, ExprKind, Type};
use crate::source::Span;
use stencil_runtime::array::Element;

/// Words that begin a type, also those that SL has not.
const TYPE_WORDS: [&str; 16] = [
    "int", "int64", "float", "double", "signed", "unsigned", "long", "short", "char", "void",
    "bool", "_Bool", "int32_t", "int64_t", "uint32_t", "uint64_t",
];

/// Other words that can't be names.
const RESERVED: [&str; 20] = [
    "auto", "break", "case", "const", "continue", "default", "do", "else", "enum", "extern", "for",
    "goto", "if", "return", "sizeof", "static", "struct", "switch", "typedef", "while",
];

/// Whether a type begins with this word.
pub fn starts_type(word: &str) -> bool {
    TYPE_WORDS.contains(&word)
}

/// Whether a word can't be a name.
pub fn is_reserved(word: &str) -> bool {
    starts_type(word) || RESERVED.contains(&word)
}

/// The remedy where a statement of C begins with this word that SL has not.
pub fn refused_statement(word: &str) -> Option<&'static str> {
    match word {
        "while" | "do" => Some("use `for` with bounds that are constants"),
        "switch" | "case" | "default" => Some("use `if` and `else`"),
        "goto" | "break" | "continue" => Some("put the rest of the loop into an `if`"),
        "struct" | "union" | "enum" | "typedef" => Some("declare variables one by one"),
        "static" | "extern" | "auto" | "register" | "volatile" => Some("leave the word out"),
        "sizeof" => Some("all sizes are those of the types"),
        "else" => Some("an `else` follows the statement of its `if`"),
        _ => None,
    }
}

/// The type that some words name.
pub fn named(words: &[&str]) -> Option<Element> {
    let (sign, rest) = match words {
        [sign @ ("signed" | "unsigned"), rest @ ..] => (*sign, rest),
        rest => ("", rest),
    };
    match (sign, rest) {
        ("signed", [] | ["int"]) | ("", ["int"]) => Some(Element::I32),
        ("unsigned", [] | ["int"]) => Some(Element::U32),
        ("" | "signed", ["int64"]) => Some(Element::I64),
        ("unsigned", ["int64"]) => Some(Element::U64),
        ("", ["float"]) => Some(Element::F32),
        ("", ["double"]) => Some(Element::F64),
        _ => None,
    }
}

/// What a type is called in SL.
pub fn name(element: Element) -> &'static str {
    match element {
        Element::I32 => "int",
        Element::U32 => "unsigned int",
        Element::I64 => "int64",
        Element::U64 => "unsigned int64",
        Element::F32 => "float",
        _ => "double",
    }
}

/// The type in which C computes with two numbers.
pub fn common(a: Element, b: Element) -> Element {
    const ORDER: [Element; 6] =
        [Element::F64, Element::F32, Element::U64, Element::I64, Element::U32, Element::I32];
    ORDER.into_iter().find(|element| *element == a || *element == b).unwrap_or(Element::F64)
}

/// An integer literal in the range of its type.
pub fn integer(value: i128, element: Element, span: Span) -> Expr {
    let value = match element {
        Element::I32 => i128::from(value as i32),
        Element::U32 => i128::from(value as u32),
        Element::U64 => i128::from(value as u64),
        _ => i128::from(value as i64),
    };
    Expr { kind: ExprKind::Int(value), ty: Type::Element(element), span }
}

/// The type of a number; that of a condition is `int`, as in C.
pub fn element(expr: &Expr) -> Element {
    match expr.ty {
        Type::Element(element) => element,
        Type::Bool => Element::I32,
    }
}

/// An expression converted to a type, as in C. A condition becomes 1 or 0.
pub fn convert(expr: Expr, to: Element) -> Expr {
    let (span, ty) = (expr.span, Type::Element(to));
    match (&expr.kind, expr.ty) {
        (_, Type::Element(from)) if from == to => expr,
        (ExprKind::Bool(value), _) => convert(integer((*value).into(), Element::I32, span), to),
        (_, Type::Bool) => {
            let number = |value| Box::new(convert(integer(value, Element::I32, span), to));
            Expr { kind: ExprKind::If(Box::new(expr), number(1), number(0)), ty, span }
        }
        (ExprKind::Int(value), _) if to == Element::F32 => {
            Expr { kind: ExprKind::Float(f64::from(*value as f32)), ty, span }
        }
        (ExprKind::Int(value), _) if to == Element::F64 => {
            Expr { kind: ExprKind::Float(*value as f64), ty, span }
        }
        (ExprKind::Int(value), _) => integer(*value, to, span),
        (ExprKind::Float(value), _)
            if to == Element::F64 || to == Element::F32 && (*value as f32).is_finite() =>
        {
            let value = if to == Element::F32 { f64::from(*value as f32) } else { *value };
            Expr { kind: ExprKind::Float(value), ty, span }
        }
        _ => Expr { kind: ExprKind::Cast(Box::new(expr)), ty, span },
    }
}

/// An expression as a condition: a number is true where it is not 0.
pub fn condition(expr: Expr) -> Expr {
    let span = expr.span;
    let kind = match (&expr.kind, expr.ty) {
        (_, Type::Bool) => return expr,
        (ExprKind::Int(value), _) => ExprKind::Bool(*value != 0),
        (_, Type::Element(element)) => {
            let zero = Box::new(convert(integer(0, Element::I32, span), element));
            ExprKind::Binary(crate::program::BinaryOp::Ne, Box::new(expr), zero)
        }
    };
    Expr { kind, ty: Type::Bool, span }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_types_are_those_of_c() {
        use Element::{F32, F64, I32, I64, U32, U64};
        for (a, b, both) in [
            (I32, U32, U32),
            (U32, I64, I64),
            (I64, U64, U64),
            (U64, F32, F32),
            (F32, F64, F64),
            (I32, I32, I32),
        ] {
            assert_eq!((common(a, b), common(b, a)), (both, both));
        }
        assert_eq!(named(&["unsigned"]), Some(U32));
        assert_eq!(named(&["unsigned", "float"]), None);
        assert_eq!(named(&["int", "unsigned"]), None);
    }

    #[test]
    fn literals_are_converted_when_the_program_is_compiled() {
        let span = Span::default();
        let kind = |expr: Expr| expr.kind;
        let minus = || integer(-1, Element::I32, span);
        assert_eq!(kind(convert(minus(), Element::U32)), ExprKind::Int(u32::MAX.into()));
        assert_eq!(kind(convert(minus(), Element::F32)), ExprKind::Float(-1.0));
        assert_eq!(kind(condition(minus())), ExprKind::Bool(true));
        let large = integer((1 << 24) + 1, Element::I32, span);
        assert_eq!(kind(convert(large, Element::F32)), ExprKind::Float(16_777_216.0));
    }
}
