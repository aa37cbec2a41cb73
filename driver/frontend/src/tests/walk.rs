//! A plain interpreter of expressions: a walk over the tree for one cell.

use crate::program::*;
use std::collections::BTreeMap;
use stencil_runtime::array::{Data, Element, bf16, f16};
use stencil_runtime::number::half;

/// A value of any type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    F16(f16),
    Bf16(bf16),
    F32(f32),
    F64(f64),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    Bool(bool),
}

/// One cell of a run.
pub struct Cell<'a> {
    pub fields: [&'a Data; 2],
    pub width: usize,
    pub at: [i64; 2],
    pub step: i64,
    pub size: i64,
}

/// The value of an expression at a cell.
pub fn walk(expr: &Expr, cell: &Cell, locals: &mut BTreeMap<LocalId, Value>) -> Value {
    use Value::*;
    match &expr.kind {
        ExprKind::Float(value) => match expr.ty {
            Type::Element(Element::F16) => F16(half(*value)),
            Type::Element(Element::Bf16) => Bf16(bf16::from_f64(*value)),
            Type::Element(Element::F32) => F32(*value as f32),
            _ => F64(*value),
        },
        ExprKind::Int(value) => match expr.ty {
            Type::Element(Element::I8) => I8(*value as i8),
            Type::Element(Element::I16) => I16(*value as i16),
            Type::Element(Element::I32) => I32(*value as i32),
            Type::Element(Element::U8) => U8(*value as u8),
            Type::Element(Element::U16) => U16(*value as u16),
            Type::Element(Element::U32) => U32(*value as u32),
            Type::Element(Element::U64) => U64(*value as u64),
            _ => I64(*value as i64),
        },
        ExprKind::Read { field, offset, .. } => {
            let row = (cell.at[0] + offset[0]) as usize;
            let at = row * cell.width + (cell.at[1] + offset[1]) as usize;
            match cell.fields[cranelift_entity::EntityRef::index(*field)] {
                Data::F32(values) => F32(values[at]),
                Data::F64(values) => F64(values[at]),
                other => panic!("{other:?}"),
            }
        }
        ExprKind::Param(_) => I64(cell.size),
        ExprKind::Coordinate(dimension) => I64(cell.at[*dimension]),
        ExprKind::Step => I64(cell.step),
        ExprKind::Local(id) => locals[id],
        ExprKind::Let(id, value, body) => {
            let value = walk(value, cell, locals);
            locals.insert(*id, value);
            walk(body, cell, locals)
        }
        ExprKind::If(condition, yes, no) => match walk(condition, cell, locals) {
            Bool(true) => walk(yes, cell, locals),
            _ => walk(no, cell, locals),
        },
        ExprKind::Unary(UnaryOp::Inverse, a) => match walk(a, cell, locals) {
            I8(a) => I8(-1 - a),
            I16(a) => I16(-1 - a),
            I32(a) => I32(-1 - a),
            I64(a) => I64(-1 - a),
            U8(a) => U8(u8::MAX - a),
            U16(a) => U16(u16::MAX - a),
            U32(a) => U32(u32::MAX - a),
            U64(a) => U64(u64::MAX - a),
            other => panic!("{other:?}"),
        },
        ExprKind::Unary(_, a) => match walk(a, cell, locals) {
            F16(a) => F16(half(-a.to_f64())),
            Bf16(a) => Bf16(bf16::from_bits(a.to_bits() ^ 0x8000)),
            F32(a) => F32(-a),
            F64(a) => F64(-a),
            I8(a) => I8(a.wrapping_neg()),
            I16(a) => I16(a.wrapping_neg()),
            I32(a) => I32(a.wrapping_neg()),
            I64(a) => I64(a.wrapping_neg()),
            U8(a) => U8(a.wrapping_neg()),
            U16(a) => U16(a.wrapping_neg()),
            U32(a) => U32(a.wrapping_neg()),
            U64(a) => U64(a.wrapping_neg()),
            Bool(a) => Bool(!a),
        },
        ExprKind::Binary(op, a, b) => binary(*op, walk(a, cell, locals), walk(b, cell, locals)),
        ExprKind::Call(function, arguments) => {
            let values: Vec<Value> = arguments.iter().map(|a| walk(a, cell, locals)).collect();
            call(*function, values[0], values.last().copied().unwrap())
        }
        ExprKind::Cast(a) => cast(walk(a, cell, locals), expr.ty),
        ExprKind::Bool(_)
        | ExprKind::Scalar(_)
        | ExprKind::Nearest(_)
        | ExprKind::Gather { .. } => panic!(),
    }
}

fn binary(op: BinaryOp, a: Value, b: Value) -> Value {
    use BinaryOp::*;
    use Value::*;
    macro_rules! compared {
        ($a:expr, $b:expr) => {
            match op {
                Eq => Some($a == $b),
                Ne => Some($a != $b),
                Lt => Some($a < $b),
                Le => Some($a <= $b),
                Gt => Some($a > $b),
                Ge => Some($a >= $b),
                _ => None,
            }
        };
    }
    macro_rules! floats {
        ($kind:ident, $a:expr, $b:expr) => {
            match op {
                Add => $kind($a + $b),
                Sub => $kind($a - $b),
                Mul => $kind($a * $b),
                Div => $kind($a / $b),
                _ => compared!($a, $b).map(Bool).unwrap(),
            }
        };
    }
    macro_rules! integers {
        ($kind:ident, $a:expr, $b:expr) => {
            match op {
                Add => $kind($a.wrapping_add($b)),
                Sub => $kind($a.wrapping_sub($b)),
                Mul => $kind($a.wrapping_mul($b)),
                Div => $kind($a.checked_div($b).unwrap_or(if $b == 0 { 0 } else { $a })),
                Rem => $kind($a.checked_rem($b).unwrap_or(if $b == 0 { $a } else { 0 })),
                BitAnd => $kind($a & $b),
                BitOr => $kind($a | $b),
                BitXor => $kind($a ^ $b),
                Shl => $kind($a << ($b.rem_euclid((8 * size_of_val(&$a)) as _))),
                Shr => $kind($a >> ($b.rem_euclid((8 * size_of_val(&$a)) as _))),
                _ => compared!($a, $b).map(Bool).unwrap(),
            }
        };
    }
    match (a, b) {
        // By way of f64, which has digits enough.
        (F16(a), F16(b)) => match floats!(F64, a.to_f64(), b.to_f64()) {
            F64(value) => F16(half(value)),
            other => other,
        },
        (Bf16(a), Bf16(b)) => match floats!(F32, a.to_f32(), b.to_f32()) {
            F32(value) => Bf16(bf16::from_f32(value)),
            other => other,
        },
        (F32(a), F32(b)) => floats!(F32, a, b),
        (F64(a), F64(b)) => floats!(F64, a, b),
        (I8(a), I8(b)) => integers!(I8, a, b),
        (I16(a), I16(b)) => integers!(I16, a, b),
        (I32(a), I32(b)) => integers!(I32, a, b),
        (I64(a), I64(b)) => integers!(I64, a, b),
        (U8(a), U8(b)) => integers!(U8, a, b),
        (U16(a), U16(b)) => integers!(U16, a, b),
        (U32(a), U32(b)) => integers!(U32, a, b),
        (U64(a), U64(b)) => integers!(U64, a, b),
        (Bool(a), Bool(b)) => Bool(if op == And { a && b } else { a || b }),
        pair => panic!("{pair:?}"),
    }
}

/// A function of one value, which is then both, or of two.
fn call(function: MathFunction, a: Value, b: Value) -> Value {
    use Value::*;
    macro_rules! float {
        ($kind:ident, $a:expr, $b:expr) => {{
            let (a, b) = ($a, $b);
            let low = if a.total_cmp(&b).is_lt() { a } else { b };
            let high = if a.total_cmp(&b).is_lt() { b } else { a };
            $kind(match function {
                MathFunction::Min | MathFunction::Max if a.is_nan() => b,
                MathFunction::Min | MathFunction::Max if b.is_nan() => a,
                MathFunction::Min => low,
                MathFunction::Max => high,
                MathFunction::Sqrt => a.sqrt(),
                MathFunction::Rsqrt => 1.0 / a.sqrt(),
                MathFunction::Abs => a.abs(),
                MathFunction::Sign if a == 0.0 || a.is_nan() => a,
                MathFunction::Sign => a.signum(),
                MathFunction::Floor => a.floor(),
                MathFunction::Exp => a.exp(),
                other => panic!("{other:?}"),
            })
        }};
    }
    match (a, b) {
        (F16(a), _) if function == MathFunction::Rsqrt => {
            F16(half(1.0 / half(f64::from(a).sqrt()).to_f64()))
        }
        (F16(a), F16(b)) => match float!(F32, a.to_f32(), b.to_f32()) {
            F32(value) => F16(f16::from_f32(value)),
            other => other,
        },
        (Bf16(a), Bf16(b)) => match float!(F32, a.to_f32(), b.to_f32()) {
            F32(value) => Bf16(bf16::from_f32(value)),
            other => other,
        },
        (F32(a), F32(b)) => float!(F32, a, b),
        (F64(a), F64(b)) => float!(F64, a, b),
        (I8(a), I8(b)) => I8(if function == MathFunction::Min { a.min(b) } else { a.max(b) }),
        (I16(a), I16(b)) => I16(if function == MathFunction::Min { a.min(b) } else { a.max(b) }),
        (I32(a), I32(b)) => I32(if function == MathFunction::Min { a.min(b) } else { a.max(b) }),
        (I64(a), I64(b)) => I64(if function == MathFunction::Min { a.min(b) } else { a.max(b) }),
        (U8(a), U8(b)) => U8(if function == MathFunction::Min { a.min(b) } else { a.max(b) }),
        (U16(a), U16(b)) => U16(if function == MathFunction::Min { a.min(b) } else { a.max(b) }),
        (U32(a), U32(b)) => U32(if function == MathFunction::Min { a.min(b) } else { a.max(b) }),
        (U64(a), U64(b)) => U64(if function == MathFunction::Min { a.min(b) } else { a.max(b) }),
        pair => panic!("{pair:?}"),
    }
}

fn cast(value: Value, ty: Type) -> Value {
    use Value::*;
    macro_rules! cast {
        ($a:expr) => {
            match ty {
                Type::Element(Element::F16) => F16(half($a as f64)),
                Type::Element(Element::Bf16) => Bf16(bf16::from_f32($a as f32)),
                Type::Element(Element::F32) => F32($a as f32),
                Type::Element(Element::F64) => F64($a as f64),
                Type::Element(Element::I8) => I8($a as i8),
                Type::Element(Element::I16) => I16($a as i16),
                Type::Element(Element::I32) => I32($a as i32),
                Type::Element(Element::I64) => I64($a as i64),
                Type::Element(Element::U8) => U8($a as u8),
                Type::Element(Element::U16) => U16($a as u16),
                Type::Element(Element::U32) => U32($a as u32),
                Type::Element(Element::U64) => U64($a as u64),
                Type::Bool => panic!(),
            }
        };
    }
    match value {
        F16(a) => cast!(a.to_f32()),
        Bf16(a) => cast!(a.to_f32()),
        F32(a) => cast!(a),
        F64(a) => cast!(a),
        I8(a) => cast!(a),
        I16(a) => cast!(a),
        I32(a) => cast!(a),
        I64(a) => cast!(a),
        U8(a) => cast!(a),
        U16(a) => cast!(a),
        U32(a) => cast!(a),
        U64(a) => cast!(a),
        Bool(_) => panic!(),
    }
}
