//! The checker: types, literals, bounds. Messages of faulty programs are in the test suite's
//! `diagnostics/`; here is what those do not show.

use super::{line, messages, program, suite};
use crate::program::*;
use crate::source::Source;
use stencil_runtime::array::Element;
use stencil_runtime::number::Number;

fn value(program: &Program) -> &Expr {
    &program.functions[0].pieces[0].values[0]
}

#[test]
fn every_faulty_program_is_refused_with_a_place_and_words() {
    let sources = suite("diagnostics");
    assert!(sources.len() >= 30, "{}", sources.len());
    for source in sources {
        let (program, errors) = crate::load(&source, &[]);
        assert!(program.is_none(), "{} is accepted", source.name);
        assert!(!errors.is_empty(), "{}", source.name);
        for error in &errors {
            assert!(error.place().is_some(), "{}: {error:?}", source.name);
        }
        let places: Vec<_> = errors.iter().map(|error| error.place()).collect();
        assert!(places.is_sorted(), "{}", source.name);
    }
}

#[test]
fn literals_take_the_type_of_their_context_and_are_rounded_once() {
    // Between two f32 numbers, just above their middle: through f64 it would round down.
    let text = "1.00000005960464477540";
    let single: f32 = text.parse().unwrap();
    assert_ne!(single, text.parse::<f64>().unwrap() as f32);
    let checked = program(&line(&format!("fn f -> A [0..N-1] = {text}\nsteps 1")));
    assert_eq!(value(&checked).kind, ExprKind::Float(f64::from(single)));
    let checked = program(&line("fn f -> A [0..N-1] = 2 * A[0]\nsteps 1"));
    let ExprKind::Binary(_, two, _) = &value(&checked).kind else { panic!() };
    assert_eq!((&two.kind, two.ty), (&ExprKind::Float(2.0), Type::Element(Element::F32)));
    // A literal behind `let` takes the type of each use.
    program(&line(
        "fn f -> A [i in 0..N-1] = { let k = 2; if i % k == 0 then k * A[0] else -k }\nsteps 1",
    ));
    // The value of a block of literals, and of a comparison of literals.
    program(&line(
        "fn f -> A [0..N-1] = { let w = 1.0 / 9; if 1 < 2.5 then w else 3 / 4 }\nsteps 1",
    ));
    // Both zeros.
    let checked = program(&line("fn f -> A [0..N-1] = -0\nsteps 1"));
    let ExprKind::Float(zero) = value(&checked).kind else { panic!() };
    assert!(zero.is_sign_negative());
    // The smallest integer.
    program(&line("fn f -> A [i in 0..N-1] = f32(i + -9223372036854775808)\nsteps 1"));
}

#[test]
fn conversions_are_explicit() {
    let ok = [
        "f32(i) * A[0]",
        "f32(f64(A[0]) * 0.1)",
        "f32(i32(i) % 3)",
        "if i % 2 == 0 && t > 3 then A[0] else 0",
        "f32(N) * sqrt(2)",
        "min(A[0], 1) + pow(2, A[0]) + fma(A[0], 2, 3) + max(0, A[0])",
        "f32(min(i, 3)) + f32(abs(-3)) + f32(i64(2.7))",
    ];
    for text in ok {
        program(&line(&format!("fn f -> A [i in 0..N-1] = {text}\nsteps 1")));
    }
    let bad = [
        "i",
        "N * A[0]",
        "f64(A[0])",
        "sqrt(i)",
        "A[0] + t",
        "i32(i) + i",
        "!A[0]",
        "A[0] && A[0]",
    ];
    for text in bad {
        let found = messages(&line(&format!("fn f -> A [i in 0..N-1] = {text}\nsteps 1")));
        assert_eq!(found.len(), 1, "{text}: {found:?}");
    }
}

#[test]
fn params_with_values_are_folded_and_overridden() {
    let text = "param N = 8\nparam R = N / 3\ngrid G = [0..N-1]\nfield A : f64 on G\n\
                fn f -> A [R..N-R-1] = A[-R] + A[R]\nsteps N\n";
    let load = |defines: &[(&str, i64)]| {
        let defines: Vec<_> =
            defines.iter().map(|(name, value)| (name.to_string(), *value)).collect();
        let (program, errors) = crate::load(&Source::new("t", text), &defines);
        program.ok_or_else(|| errors.into_iter().map(|e| e.message).collect::<Vec<_>>())
    };
    let checked = load(&[]).unwrap();
    assert_eq!(checked.checks, []);
    assert_eq!(checked.steps, Affine::number(8));
    assert_eq!(checked.functions[0].pieces[0].region.upper, [Affine::number(5)]);
    let checked = load(&[("N", 100)]).unwrap();
    assert_eq!(checked.functions[0].pieces[0].region.lower, [Affine::number(33)]);
    assert_eq!(load(&[("Q", 1)]).unwrap_err(), ["-D Q=...: the program has no param `Q`"]);
    assert!(load(&[("R", -1)]).is_err());
}

fn conditions(text: &str) -> Vec<String> {
    let checked = program(text);
    checked.checks.iter().map(|check| check.value.show_condition(&checked.params)).collect()
}

#[test]
fn what_the_sizes_decide_is_left_to_the_run() {
    // The rim needs no condition beyond the sizes' own: an empty piece reads nothing.
    assert_eq!(conditions(&line("fn f -> A [1..N-2] = A[-1] + A[1]\nsteps 1")), ["N >= 0"]);
    // One point needs a grid that has it, and the read a neighbour.
    let found = conditions(&line("fn f -> A { [0] = A[1] [1..N-1] = A[-1] }\nsteps 1"));
    assert_eq!(found, ["N >= 0", "N >= 1", "N >= 2"]);
    // Both ends: they must not be the same point.
    let found = conditions(&line("fn f -> A { [0] = 1 [N-1] = 2 [1..N-2] = A[0] }\nsteps N - 5"));
    // A run may be given other steps, so those of the text are no condition.
    assert_eq!(found, ["N >= 0", "N >= 1", "N >= 1", "N >= 2"]);
    // A box without a point at every size does nothing; two literals are a mistake.
    for empty in ["[N..N-1]", "[K..3]"] {
        let text = line(&format!("param K = 5\nfn f -> A {empty} = A[-9]\nsteps 1"));
        assert_eq!(conditions(&text), ["N >= 0"], "{empty}");
    }
    assert_eq!(
        messages(&line("fn f -> A [5..3] = A[0]\nsteps 1")),
        ["the range 5..3 holds no point"]
    );
    // A coordinate within a grid whose size is fixed.
    let text = "param M = 7\ngrid H = [0..M-1]\nconst field K : f32 on H\n\
                fn f -> A [i in 0..N-1] = A[0] + K(min(i, M-1))\nsteps 1";
    assert_eq!(conditions(&line(text)), ["N >= 0"]);
    // Two sizes.
    let text = "param N\nparam K\ngrid G = [0..N-1]\nfield A : f32 on G\n\
                fn f -> A { [0..K-1] = 1 [K..N-1] = 2 }\nsteps 1";
    assert_eq!(conditions(text), ["N >= 0", "K >= 0", "N-K >= 0"]);
    assert_eq!(
        conditions("param N\ngrid G = [2..N]\nfield A : f32 on G\nfn f -> A [2..N] = 1\nsteps 1"),
        ["N >= 0", "N >= 1"]
    );
}

#[test]
fn functions_and_fields_keep_their_order() {
    let checked = program(
        "param N\nparam M\ngrid G = [0..N-1, 0..M-1]\nfield A : f32 on G\ntemp field B : f64 on G\n\
         const field K : f32 on G\nscalar s : f64 = 0.1\nscalar r : f32 = 0.1\n\
         fn f -> (B, A) [0..N-1, 0..M-1] = (s, r * K[0,0])\nfn g -> A [0, 0..M-1] = 1\nsteps 3\n",
    );
    let names: Vec<_> =
        checked.fields.values().map(|field| (field.name.as_str(), field.role)).collect();
    assert_eq!(names, [("A", Role::State), ("B", Role::Temp), ("K", Role::Const)]);
    let defaults: Vec<_> = checked.scalars.values().map(|scalar| scalar.default.clone()).collect();
    assert_eq!(defaults, [Some(Number::F64(0.1).into()), Some(Number::F32(0.1).into())]);
    let functions: Vec<_> =
        checked.functions.iter().map(|f| (f.name.as_str(), f.updates.len())).collect();
    assert_eq!(functions, [("f", 2), ("g", 1)]);
    assert_eq!(checked.name, "test");
}
