//! The oracle against a second interpreter, a plain walk over the tree for one cell at a time, on
//! random expressions of all types.

use super::fuzz::Random;
use crate::oracle::run;
use crate::program::*;
use crate::sizes::Sizes;
use crate::source::Source;
use std::collections::BTreeMap;
use stencil_runtime::array::{Array, Data, Element, f16};
use stencil_runtime::number::half;

/// The number types.
const NUMBERS: [&str; 7] = ["f16", "f32", "f64", "i32", "i64", "u32", "u64"];

/// Source text of a random expression of a type.
fn expression(
    random: &mut Random,
    ty: &str,
    depth: usize,
    locals: &mut Vec<(String, String)>,
) -> String {
    if depth == 0 || random.below(8) == 0 {
        let known: Vec<String> =
            locals.iter().filter(|(_, of)| of == ty).map(|(name, _)| name.clone()).collect();
        if !known.is_empty() && random.below(2) == 0 {
            return known[random.below(known.len())].clone();
        }
        let number = random.below(7);
        return match (ty, random.below(3)) {
            ("f32", 0) => {
                format!("A[{}, {}]", random.below(3) as i64 - 1, random.below(3) as i64 - 1)
            }
            ("f64", 0) => format!("B[{}, 0]", random.below(3) as i64 - 1),
            ("i64", 0) => random.pick(&["i", "j", "t", "N"]).to_string(),
            ("bool", _) => format!("(A[0, 0] < {number} / 7.0)"),
            (ty @ ("f16" | "f32" | "f64"), 1) => format!("{ty}({number}.25)"),
            ("i32" | "i64", _) => format!("{ty}({})", number as i64 - 3),
            ("u32" | "u64", _) => format!("{ty}({number})"),
            (ty, _) => format!("{ty}(-{number})"),
        };
    }
    let deeper = depth - 1;
    match random.below(9) {
        0 => {
            let condition = expression(random, "bool", deeper, locals);
            let (yes, no) =
                (expression(random, ty, deeper, locals), expression(random, ty, deeper, locals));
            format!("(if {condition} then {yes} else {no})")
        }
        1 => {
            let of =
                random.pick(&["f16", "f32", "f64", "i32", "i64", "u32", "u64", "bool"]).to_string();
            let value = expression(random, &of, deeper, locals);
            let name = format!("x{}", locals.len());
            locals.push((name.clone(), of));
            let body = expression(random, ty, deeper, locals);
            locals.pop();
            format!("{{ let {name} = {value}; {body} }}")
        }
        2 if ty != "bool" => {
            let from = random.pick(&NUMBERS);
            format!("{ty}({})", expression(random, from, deeper, locals))
        }
        3 if ty != "bool" => {
            let function = random.pick(&["min", "max"]);
            let (a, b) =
                (expression(random, ty, deeper, locals), expression(random, ty, deeper, locals));
            format!("{function}({a}, {b})")
        }
        4 if matches!(ty, "f16" | "f32" | "f64") => {
            let function = random.pick(&["sqrt", "abs", "floor", "exp", "rsqrt"]);
            format!("{function}({})", expression(random, ty, deeper, locals))
        }
        5 if ty != "bool" => format!("(-{})", expression(random, ty, deeper, locals)),
        6 if matches!(ty, "i32" | "i64" | "u32" | "u64") => {
            let (a, b) =
                (expression(random, ty, deeper, locals), expression(random, ty, deeper, locals));
            format!("({a} {} ({b} - 1))", random.pick(&["/", "%"]))
        }
        _ if ty == "bool" => match random.below(3) {
            0 => format!("(!{})", expression(random, ty, deeper, locals)),
            1 => {
                let of = random.pick(&NUMBERS);
                let (a, b) = (
                    expression(random, of, deeper, locals),
                    expression(random, of, deeper, locals),
                );
                format!("({a} {} {b})", random.pick(&["<", "<=", ">", ">=", "==", "!="]))
            }
            _ => {
                let (a, b) = (
                    expression(random, ty, deeper, locals),
                    expression(random, ty, deeper, locals),
                );
                format!("({a} {} {b})", random.pick(&["&&", "||"]))
            }
        },
        _ => {
            let (a, b) =
                (expression(random, ty, deeper, locals), expression(random, ty, deeper, locals));
            format!("({a} {} {b})", random.pick(&["+", "-", "*"]))
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    F16(f16),
    F32(f32),
    F64(f64),
    I32(i32),
    I64(i64),
    U32(u32),
    U64(u64),
    Bool(bool),
}

/// One cell of a run.
struct Cell<'a> {
    fields: [&'a Data; 2],
    width: usize,
    at: [i64; 2],
    step: i64,
    size: i64,
}

/// The value of an expression at a cell.
fn walk(expr: &Expr, cell: &Cell, locals: &mut BTreeMap<LocalId, Value>) -> Value {
    use Value::*;
    match &expr.kind {
        ExprKind::Float(value) => match expr.ty {
            Type::Element(Element::F16) => F16(half(*value)),
            Type::Element(Element::F32) => F32(*value as f32),
            _ => F64(*value),
        },
        ExprKind::Int(value) => match expr.ty {
            Type::Element(Element::I32) => I32(*value as i32),
            Type::Element(Element::U32) => U32(*value as u32),
            Type::Element(Element::U64) => U64(*value as u64),
            _ => I64(*value as i64),
        },
        ExprKind::Read { field, offset } => {
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
        ExprKind::Unary(_, a) => match walk(a, cell, locals) {
            F16(a) => F16(half(-a.to_f64())),
            F32(a) => F32(-a),
            F64(a) => F64(-a),
            I32(a) => I32(a.wrapping_neg()),
            I64(a) => I64(a.wrapping_neg()),
            U32(a) => U32(0_u32.wrapping_sub(a)),
            U64(a) => U64(0_u64.wrapping_sub(a)),
            Bool(a) => Bool(!a),
        },
        ExprKind::Binary(op, a, b) => {
            use BinaryOp::*;
            let pair = (walk(a, cell, locals), walk(b, cell, locals));
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
                        _ => compared!($a, $b).map(Bool).unwrap(),
                    }
                };
            }
            match pair {
                // By way of f64, which has digits enough.
                (F16(a), F16(b)) => match floats!(F64, a.to_f64(), b.to_f64()) {
                    F64(value) => F16(half(value)),
                    other => other,
                },
                (F32(a), F32(b)) => floats!(F32, a, b),
                (F64(a), F64(b)) => floats!(F64, a, b),
                (I32(a), I32(b)) => integers!(I32, a, b),
                (I64(a), I64(b)) => integers!(I64, a, b),
                (U32(a), U32(b)) => integers!(U32, a, b),
                (U64(a), U64(b)) => integers!(U64, a, b),
                (Bool(a), Bool(b)) => Bool(if *op == And { a && b } else { a || b }),
                pair => panic!("{pair:?}"),
            }
        }
        ExprKind::Call(function, arguments) => {
            let values: Vec<Value> = arguments.iter().map(|a| walk(a, cell, locals)).collect();
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
                        MathFunction::Floor => a.floor(),
                        MathFunction::Exp => a.exp(),
                        other => panic!("{other:?}"),
                    })
                }};
            }
            match (values[0], values.last().copied().unwrap()) {
                (F16(a), _) if *function == MathFunction::Rsqrt => {
                    F16(half(1.0 / half(f64::from(a).sqrt()).to_f64()))
                }
                (F16(a), F16(b)) => match float!(F32, a.to_f32(), b.to_f32()) {
                    F32(value) => F16(f16::from_f32(value)),
                    other => other,
                },
                (F32(a), F32(b)) => float!(F32, a, b),
                (F64(a), F64(b)) => float!(F64, a, b),
                (I32(a), I32(b)) => {
                    I32(if *function == MathFunction::Min { a.min(b) } else { a.max(b) })
                }
                (U32(a), U32(b)) => {
                    U32(if *function == MathFunction::Min { a.min(b) } else { a.max(b) })
                }
                (U64(a), U64(b)) => {
                    U64(if *function == MathFunction::Min { a.min(b) } else { a.max(b) })
                }
                (I64(a), I64(b)) => {
                    I64(if *function == MathFunction::Min { a.min(b) } else { a.max(b) })
                }
                pair => panic!("{pair:?}"),
            }
        }
        ExprKind::Cast(a) => {
            macro_rules! cast {
                ($a:expr) => {
                    match expr.ty {
                        Type::Element(Element::F16) => F16(half($a as f64)),
                        Type::Element(Element::U32) => U32($a as u32),
                        Type::Element(Element::U64) => U64($a as u64),
                        Type::Element(Element::F32) => F32($a as f32),
                        Type::Element(Element::F64) => F64($a as f64),
                        Type::Element(Element::I32) => I32($a as i32),
                        Type::Element(Element::I64) => I64($a as i64),
                        Type::Bool => panic!(),
                    }
                };
            }
            match walk(a, cell, locals) {
                F16(a) => cast!(a.to_f32()),
                U32(a) => cast!(a),
                U64(a) => cast!(a),
                F32(a) => cast!(a),
                F64(a) => cast!(a),
                I32(a) => cast!(a),
                I64(a) => cast!(a),
                Bool(_) => panic!(),
            }
        }
        ExprKind::Bool(_)
        | ExprKind::Scalar(_)
        | ExprKind::Nearest(_)
        | ExprKind::Gather { .. } => panic!(),
    }
}

#[test]
fn the_oracle_agrees_with_a_walk_over_the_tree() {
    let mut random = Random(0xabcd_ef01_2345_6789);
    let (rows, width) = (4usize, 300usize);
    for round in 0..1500 {
        let single = expression(&mut random, "f32", 5, &mut Vec::new());
        let double = expression(&mut random, "f64", 5, &mut Vec::new());
        let text = format!(
            "param N\nparam M\ngrid G = [0..N-1, 0..M-1]\nfield A : f32 on G\nfield B : f64 on G\n\
             fn f -> (A, B) [i in 1..N-2, j in 1..M-2] = ({single}, {double})\nsteps 1\n"
        );
        let (program, errors) = crate::load(&Source::new("random", text.as_str()), &[]);
        let program = program.unwrap_or_else(|| panic!("{text}\n{errors:?}"));
        let cells = rows * width;
        let a = Data::F32((0..cells).map(|_| random.below(1000) as f32 / 500.0).collect());
        let b = Data::F64((0..cells).map(|_| random.below(1000) as f64 / 500.0 - 1.0).collect());
        let sizes: Sizes = program.params.keys().zip([rows as i64, width as i64]).collect();
        let array = |data: &Data| Array::new(vec![rows, width], data.clone()).unwrap();
        let mut fields =
            BTreeMap::from([("A".to_string(), array(&a)), ("B".to_string(), array(&b))]);
        run(&program, &sizes, &BTreeMap::new(), 1, &mut fields, &mut |_, _| {
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
        let values = &program.functions[0].pieces[0].values;
        for i in 1..rows - 1 {
            for j in 1..width - 1 {
                let cell = Cell {
                    fields: [&a, &b],
                    width,
                    at: [i as i64, j as i64],
                    step: 0,
                    size: rows as i64,
                };
                let wanted: Vec<Value> =
                    values.iter().map(|value| walk(value, &cell, &mut BTreeMap::new())).collect();
                let at = i * width + j;
                let found = [fields["A"].get(at).unwrap(), fields["B"].get(at).unwrap()];
                let [Value::F32(single), Value::F64(double)] = wanted[..] else { panic!() };
                // NaNs count as equal, the two zeros do not.
                let same =
                    |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
                assert!(
                    same(found[0], f64::from(single)) && same(found[1], double),
                    "{round} at {i},{j}\n{text}"
                );
            }
        }
    }
}
