//! The oracle against a second interpreter, a plain walk over the tree for one cell at a time, on
//! random expressions of all types. `walk.rs` is that interpreter.

use super::fuzz::Random;
use super::walk::{Cell, Value, walk};
use crate::oracle::run;
use crate::sizes::Sizes;
use crate::source::Source;
use std::collections::BTreeMap;
use stencil_runtime::array::{Array, Data};

/// The number types.
const NUMBERS: [&str; 12] =
    ["f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"];

/// Source text of a random expression of a type.
fn expression(
    random: &mut Random,
    ty: &str,
    depth: usize,
    locals: &mut Vec<(String, String)>,
) -> String {
    if depth == 0 || random.below(8) == 0 {
        return leaf(random, ty, locals);
    }
    let deeper = depth - 1;
    match random.below(10) {
        0 => {
            let condition = expression(random, "bool", deeper, locals);
            let (yes, no) =
                (expression(random, ty, deeper, locals), expression(random, ty, deeper, locals));
            format!("(if {condition} then {yes} else {no})")
        }
        1 => {
            let of = match random.below(8) {
                0 => "bool".to_string(),
                _ => random.pick(&NUMBERS).to_string(),
            };
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
        4 if ty.contains('f') => {
            let function = random.pick(&["sqrt", "abs", "floor", "exp", "rsqrt", "sign"]);
            format!("{function}({})", expression(random, ty, deeper, locals))
        }
        5 if ty != "bool" => format!("(-{})", expression(random, ty, deeper, locals)),
        6 if ty.starts_with(['i', 'u']) => {
            let (a, b) =
                (expression(random, ty, deeper, locals), expression(random, ty, deeper, locals));
            format!("({a} {} ({b} - 1))", random.pick(&["/", "%"]))
        }
        7 if ty.starts_with(['i', 'u']) => on_bits(random, ty, deeper, locals),
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

/// Source text of an operator on bits and its operands.
fn on_bits(
    random: &mut Random,
    ty: &str,
    deeper: usize,
    locals: &mut Vec<(String, String)>,
) -> String {
    let (a, b) = (expression(random, ty, deeper, locals), expression(random, ty, deeper, locals));
    // A count that is written as a literal would be refused where it is too large.
    let b = format!("({b} + {ty}(0))");
    match random.below(6) {
        5 => format!("(~{a})"),
        place => format!("({a} {} {b})", ["&", "|", "^", "<<", ">>"][place]),
    }
}

/// Source text of an expression without parts.
fn leaf(random: &mut Random, ty: &str, locals: &[(String, String)]) -> String {
    let known: Vec<String> =
        locals.iter().filter(|(_, of)| of == ty).map(|(name, _)| name.clone()).collect();
    if !known.is_empty() && random.below(2) == 0 {
        return known[random.below(known.len())].clone();
    }
    let number = random.below(7);
    match (ty, random.below(3)) {
        ("f32", 0) => {
            format!("A[{}, {}]", random.below(3) as i64 - 1, random.below(3) as i64 - 1)
        }
        ("f64", 0) => format!("B[{}, 0]", random.below(3) as i64 - 1),
        ("i64", 0) => random.pick(&["i", "j", "t", "N"]).to_string(),
        ("bool", _) => format!("(A[0, 0] < {number} / 7.0)"),
        (ty, 1) if ty.contains('f') => format!("{ty}({number}.25)"),
        (ty, _) if ty.starts_with('i') => format!("{ty}({})", number as i64 - 3),
        (ty, _) if ty.starts_with('u') => format!("{ty}({number})"),
        (ty, _) => format!("{ty}(-{number})"),
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
