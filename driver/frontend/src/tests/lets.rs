//! Functions in expressions and combinations over constant ranges mean what they would written out.

use super::{line, messages, program};
use crate::oracle;
use crate::program::{Field, Role};
use crate::sizes::Sizes;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use stencil_runtime::array::{Array, Data, DataRef};

/// The cells of `A` after a step of a program of a line.
fn step(rest: &str) -> Vec<f32> {
    let program = program(&line(&format!("{rest}\nsteps 1")));
    let cells: Vec<f32> = (0..9).map(|cell| cell as f32 * 0.5 - 1.25).collect();
    let sizes: Sizes = program.params.keys().map(|id| (id, 9)).collect();
    let input = Array::new(vec![9], Data::F32(cells)).unwrap();
    let zeros = |field: &Field| (field.name.clone(), Array::zeros(field.element, &[9]).unwrap());
    let mut fields: BTreeMap<String, Array> = {
        let states = program.fields.values().filter(|field| field.role == Role::State);
        states.map(zeros).collect()
    };
    fields.insert("A".to_owned(), input);
    let mut go_on = |_, _| ControlFlow::Continue(());
    oracle::run(&program, &sizes, &BTreeMap::new(), 1, &mut fields, &mut go_on).unwrap();
    let DataRef::F32(cells) = fields["A"].data() else { panic!("no f32") };
    cells.to_vec()
}

#[track_caller]
fn same(short: &str, long: &str) {
    assert_eq!(step(short), step(long));
}

#[test]
fn a_call_is_the_body_with_its_arguments() {
    same(
        "let minmod(a, b) = if a * b > 0 then (if abs(a) < abs(b) then a else b) else 0\n\
         fn f -> A [1..N-2] = minmod(A[0] - A[-1], A[1] - A[0] * 1.5)",
        "fn f -> A [1..N-2] = { let a = A[0] - A[-1]; let b = A[1] - A[0] * 1.5;\n\
         if a * b > 0 then (if abs(a) < abs(b) then a else b) else 0 }",
    );
    // Arguments are computed by the names of the caller, bodies by their own.
    same(
        "let half(x) = x / 2\nlet both(x, y) = { let z = half(y); x - z * half(x) }\n\
         fn f -> A [i in 1..N-2] = { let x = A[1]; let z = both(A[-1], x); z + both(z, f32(i)) }",
        "fn f -> A [i in 1..N-2] = { let x = A[1]; let z = A[-1] - x / 2 * (A[-1] / 2);\n\
         z + (z - f32(i) / 2 * (z / 2)) }",
    );
    // Bodies see sizes, scalars, the step and cells beside the point of the call.
    same(
        "scalar s : f32 = 0.25\nlet slope(w) = w * s * (A[1] - A[-1]) + f32(N) + f32(t)\n\
         fn f -> A [1..N-2] = slope(3)",
        "scalar s : f32 = 0.25\nfn f -> A [1..N-2] = 3 * s * (A[1] - A[-1]) + f32(N) + f32(t)",
    );
    // A literal takes the type of each place, and no arguments are some.
    same(
        "let third() = 1/3\nlet twice(a) = a * 2\nfn f -> A [0] = third() + f32(twice(f64(0.1)))",
        "fn f -> A [0] = 1.0/3 + f32(f64(0.1) * 2)",
    );
    same(
        "let turn(v) = vec(-v.1, v.0)\nfn f -> A [1..N-2] = turn(turn(vec(A[1], A[-1]))).1",
        "fn f -> A [1..N-2] = -A[-1]",
    );
    same(
        "let outside(v) = 2 * v\nboundary A = outside(nearest)\nfn f -> A [0..N-1] = A[-1]",
        "boundary A = 2 * nearest\nfn f -> A [0..N-1] = A[-1]",
    );
}

#[test]
fn a_block_of_several_values_binds_what_they_share_once() {
    let start = "field B : f32 on G\nfield C : f64 on G\n";
    let text = |rest: &str| line(&format!("{start}{rest}\nsteps 1"));
    let pieces = |rest: &str| {
        let mut program = program(&text(rest));
        program.functions.remove(0).pieces
    };
    let both = pieces(
        "fn f -> (A, B) [i in 1..N-2] = { let s = A[1] / 3; let w = 1 / 3; { let p = s * w;\n\
         (p - s, f32(i) * p) } }",
    );
    assert_eq!((both[0].lets.len(), both[0].values.len()), (3, 2));
    // What is made of literals has the type of the fields where they have one.
    let types = |piece: &crate::program::Piece| {
        piece.lets.iter().map(|(_, value)| format!("{:?}", value.ty)).collect::<Vec<_>>()
    };
    assert_eq!(types(&both[0]), ["Element(F32)"; 3]);
    let mixed = pieces("fn f -> (A, C) [0] = { let w = 1 / 3.0; (f32(w), w) }");
    assert_eq!(types(&mixed[0]), ["Element(F64)"]);
    // One value may begin with a block.
    same(
        "fn f -> A [1..N-2] = { let a = A[1]; a * a } / 2 - A[-1]",
        "fn f -> A [1..N-2] = A[1] * A[1] / 2 - A[-1]",
    );
    same(
        "field B : f32 on G\nfn f -> (A, B) { [0] = { let a = A[1]; (a - 1, a) }\n\
         [N-1] = { (A[-1], { let a = 3; a }) } }",
        "field B : f32 on G\nfn f -> (A, B) { [0] = (A[1] - 1, A[1]) [N-1] = (A[-1], 3) }",
    );
}

#[test]
fn repeated_functions_mean_what_they_would_written_several_times() {
    let (f, g) = ("-> A [1..N-2] = (A[-1] + A[1]) / 2 + s", "-> A [i in 0..N-1] = A[0] * f32(i)");
    let start = "reduce s : f32 = max(A[0]) on [0..N-1]\nfn a -> A [0] = A[1]";
    same(
        &format!(
            "{start} param K = 1 repeat K + 2 {{ fn f {f} fn g {g} }} repeat 2 {{ fn h {f} }}"
        ),
        &format!(
            "{start} fn f {f} fn g {g} fn f1 {f} fn g1 {g} fn f2 {f} fn g2 {g} fn h {f} fn h1 {f}"
        ),
    );
}

#[test]
fn repeated_items_run_in_the_order_in_which_they_stand() {
    let (f, g) = ("-> A [1..N-2] = (A'[-1] + A[1]) / 2 + s", "-> B [0..N-1] = A[0] + f32(t)");
    let (r, q) = ("f32 = max(A[0]) on [0..N-1]", "f32 = sum(B[0] * s) on [1..N-2]");
    same(
        &format!(
            "temp field B : f32 on G reduce s : {r} repeat 2 {{ fn f {f} repeat 2 {{ \
             reduce p : {q} fn g {g} }} fn h -> A [0] = p }}"
        ),
        &format!(
            "temp field B : f32 on G reduce s : {r} fn f {f} reduce p : {q} fn g {g} \
             reduce p1 : {q} fn g1 {g} fn h -> A [0] = p1 fn f1 {f} \
             reduce p2 : {q} fn g2 {g} reduce p3 : {q} fn g3 {g} fn h1 -> A [0] = p3"
        ),
    );
    // A value from the repetition before.
    same(
        "repeat 3 { fn f -> A [0..N-1] = A[0] + r reduce r : f32 = max(A[0]) on [0..N-1] \
         initially 2 }",
        "fn f -> A [0..N-1] = A[0] + r2 reduce r : f32 = max(A[0]) on [0..N-1] \
         fn f1 -> A [0..N-1] = A[0] + r reduce r1 : f32 = max(A[0]) on [0..N-1] \
         fn f2 -> A [0..N-1] = A[0] + r1 reduce r2 : f32 = max(A[0]) on [0..N-1] initially 2",
    );
}

#[test]
fn a_scalar_may_be_a_condition() {
    let function = "fn f -> A [1..N-2] = if warm && !cold then A[-1] else A[1]";
    same(
        &format!("scalar warm : bool = true\nscalar cold : bool = false\n{function}"),
        "fn f -> A [1..N-2] = A[-1]",
    );
    same(
        &format!("scalar warm : bool = true\nscalar cold : bool = true\n{function}"),
        "fn f -> A [1..N-2] = A[1]",
    );
}

#[test]
fn a_range_is_written_out_from_the_left() {
    same(
        "param R = 2\nfn f -> A [R..N-1-R] = sum(k in -R..R) (1 + k) * A[k] / 7",
        "fn f -> A [2..N-3] = (1 + -2) * A[-2] / 7 + (1 + -1) * A[-1] / 7 + 1 * A[0] / 7\n\
         + 2 * A[1] / 7 + 3 * A[2] / 7",
    );
    same(
        "fn f -> A [1..N-2] = (prod(k in 0..1) A[k]) + (max(k in -1..1) abs(A[k])) - \
         min(j in -1..1) A[j] + A[0]",
        "fn f -> A [1..N-2] = A[0] * A[1] + max(max(abs(A[-1]), abs(A[0])), abs(A[1]))\n\
         - min(min(A[-1] + A[0], A[0] + A[0]), A[1] + A[0])",
    );
    same(
        "let w(k) = 1 / f32(2 + k * k)\n\
         fn f -> A [1..N-2] = sum(k in -1..1) { let a = A[k]; a * w(k) }",
        "fn f -> A [1..N-2] = A[-1] * (1 / f32(3)) + A[0] * (1 / f32(2)) + A[1] * (1 / f32(3))",
    );
    same(
        "fn f -> A [2..N-3] = sum(i in -1..1) sum(j in 0..1) A[i + j] * (i - j)",
        "fn f -> A [2..N-3] = (A[-1] * -1 + A[0] * -2) + (A[0] * 0 + A[1] * -1)\n\
         + (A[1] * 1 + A[2] * 0)",
    );
}

#[test]
fn what_would_be_too_long_is_refused_soon() {
    let mut text = "let g0(a) = a + a * a\n".to_owned();
    for level in 1..60 {
        let before = level - 1;
        text += &format!("let g{level}(a) = g{before}(a) * g{before}(a + 1)\n");
    }
    let found = messages(&line(&(text + "fn g -> A [0] = g59(A[0])\nsteps 1")));
    assert!(found[0].starts_with("calls written out have more than 10000 operations"), "{found:?}");
    assert!(found.len() < 5, "{found:?}");
    let long = "fn g -> A [0] = sum(i in 1..900) sum(j in 1..900) A[0] * i\nsteps 1";
    let found = messages(&line(long));
    assert_eq!(found, ["ranges written out have more than 10000 operations"]);
    let mut text = "let g0(a) = a + 1\n".to_owned();
    for level in 1..120 {
        text += &format!("let g{level}(a) = -(-(-(-(-g{}(a)))))\n", level - 1);
    }
    let found = messages(&line(&(text + "fn g -> A [0] = g119(A[0])\nsteps 1")));
    assert!(found[0].contains("or more than 400 within each other"), "{found:?}");
}
