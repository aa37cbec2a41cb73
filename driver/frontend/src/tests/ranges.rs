//! Bounds of computed coordinates: what is always inside is accepted, and what is accepted never
//! reads outside.

use super::fuzz::Random;
use super::messages;
use crate::oracle::{OracleError, run};
use crate::sizes::{Sizes, check, extents};
use crate::source::Source;
use cranelift_entity::EntityRef;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use stencil_runtime::array::Array;

/// A line of N cells that reads a table of M cells at a place; B holds u32, D holds u64.
fn table(place: &str) -> String {
    format!(
        "param N\nparam M\ngrid G = [0..N-1]\ngrid T = [0..M-1]\nfield A : f32 on G\n\
         const field K : f32 on T\nconst field B : u32 on G\nconst field D : u64 on G\n\
         const field E : i32 on G\nfn f -> A [i in 0..N-1] = K({place})\nsteps 1\n"
    )
}

/// The conditions beyond those that every such program has.
fn conditions(place: &str) -> Vec<String> {
    let text = table(place);
    let program = super::program(&text);
    let shown = |check: &crate::program::Check| check.value.show_condition(&program.params);
    let mut all: Vec<_> = program.checks.iter().map(shown).collect();
    all.retain(|condition| condition != "N >= 0" && condition != "M >= 0");
    all
}

#[test]
fn clamps_keep_a_read_inside_whenever_the_table_has_a_cell() {
    for place in [
        "max(0, min(i, M-1))",
        "min(max(0, i), M-1)",
        "min(M-1, max(i64(A[0]), 0))",
        "max(0, min(7, M-1))",
        "min(7, M-1)",
        "min(i, M-1)",
        "max(0, min(i64(A[0]) % 100, M-1))",
        "min(i64(u32(A[0])), M-1)",
        "i64(min(B[0], 4)) % M",
        "min(i64(D[0] % 1000), M-1)",
        "i64(max(0, min(E[0], 3))) % M",
        "(i64(A[0]) % M + M) % M",
        "if A[0] > 0 then min(i, M-1) else min(7, M-1)",
    ] {
        let found = conditions(place);
        let allowed = ["M >= 1", "N <= 1099511627776", "M <= 1099511627776"];
        assert!(found.iter().all(|one| allowed.contains(&one.as_str())), "{place}: {found:?}");
    }
}

#[test]
fn numbers_of_every_type_keep_their_bounds() {
    assert_eq!(conditions("min(u32(A[0]), 4)"), ["M >= 5"]);
    assert_eq!(conditions("min(B[0], 4)"), ["M >= 5"]);
    assert_eq!(conditions("D[0] % 3"), ["M >= 3"]);
    assert_eq!(conditions("B[0] % 3"), ["M >= 3"]);
    assert_eq!(conditions("D[0] / 2 % 5"), ["M >= 5"]);
    assert_eq!(conditions("min(D[0], 9)"), ["M >= 10"]);
    assert_eq!(conditions("max(0, min(E[0], 3))"), ["M >= 4"]);
    assert_eq!(conditions("abs(E[0] % 3)"), ["M >= 3"]);
    assert_eq!(conditions("E[0] % 3 + 2"), ["M >= 5"]);
    assert_eq!(conditions("(E[0] % 3 + 2) * (E[0] % 2 + 1)"), ["M >= 9"]);
    assert_eq!(conditions("i64(A[0]) % 10 / 2 + 4"), ["M >= 9"]);
    assert_eq!(conditions("u32(i64(A[0]) % 3 + 2)"), ["M >= 5"]);
    assert_eq!(conditions("min(B[0] + 4294967295, 2)"), ["M >= 3"]);
}

#[test]
fn clamps_keep_a_read_inside_far_from_the_origin_too() {
    for (first, last) in [
        ("4294967301", "N+4294967300"),
        ("-4294967301", "N-4294967302"),
        ("2147483647", "N+2147483646"),
        ("4294967301", "4294967309"),
        ("576460752303423488", "N+576460752303423487"),
        ("-576460752303423488", "N-576460752303423489"),
        ("-1152921504606846976", "N-1152921504606846975"),
    ] {
        let text = format!(
            "param N\ngrid G = [{first}..{last}]\nfield A : i64 on G\n\
             fn f -> A [{first}..{last}] = A(max({first}, min(A[0], {last})))\nsteps 1\n"
        );
        assert_eq!(messages(&text), [""; 0], "{first}..{last}");
    }
}

#[test]
fn steps_of_a_run_bound_its_step() {
    assert_eq!(conditions("t"), ["M-steps >= 0"]);
    assert_eq!(conditions("t + 1"), ["M-steps >= 1"]);
    assert_eq!(conditions("i + t"), ["-N+M-steps >= -1"]);
    assert_eq!(conditions("2*t"), ["M-2*steps >= -1"]);
    assert_eq!(conditions("M - t - 1"), ["M-steps >= 0"]);
    // Sums of steps can't wrap, and other bounds ask for less.
    assert_eq!(conditions("min(t + 1, M-1)"), ["M <= 1099511627776", "M >= 1"]);
    assert_eq!(conditions("t % 5"), ["M >= 5"]);
}

#[test]
fn a_run_of_too_many_steps_is_refused() {
    let program = super::program(&table("t + 1"));
    let refused = |m: i64, steps: u64| {
        let sizes = Sizes::from([(EntityRef::new(0), 6), (EntityRef::new(1), m)]);
        let mut fields = inputs(6, m as usize);
        let outcome = run(&program, &sizes, &BTreeMap::new(), steps, &mut fields, &mut |_, _| {
            ControlFlow::Continue(())
        });
        outcome.err().map(|error| error.to_string())
    };
    assert_eq!(refused(5, 4), None);
    let message = "`K(t + 1)` in the piece `[i in 0..N-1]` of `f` may lie outside the grid's \
                   0..M-1 unless M-steps >= 1; here N = 6, M = 5, steps = 5";
    assert_eq!(refused(5, 5).as_deref(), Some(message));
    // Nothing is read.
    assert_eq!(refused(0, 0), None);
}

#[test]
fn wrapped_and_unbounded_places_are_refused() {
    for place in [
        "i64(A[0])",
        "B[0]",
        "D[0]",
        "E[0]",
        "min(i64(A[0]) % 100, M-1)",
        "min(E[0], 3)",
        "abs(E[0])",
        "min(i32(i64(A[0])) - 1, 3)",
        "min(i64(D[0]), 3)",
        "-1 - t",
        "i32(t)",
        "max(0, i64(A[0]))",
    ] {
        let found = messages(&table(place));
        assert!(found.len() == 1 && found[0].contains("may lie outside"), "{place}: {found:?}");
    }
}

/// A random integer expression of a type.
fn integer(random: &mut Random, ty: &str, depth: usize) -> String {
    let number = random.below(6);
    if depth == 0 {
        let leaves: &[&str] = match ty {
            "i64" => &["i", "N", "M", "t", "M-1", "N-1", "i64(A[0])", "i-N"],
            "i32" => &["E[0]", "i32(i)", "i32(A[0])"],
            "u32" => &["B[0]", "u32(i)", "u32(A[0])"],
            _ => &["D[0]", "u64(i)", "u64(B[0])"],
        };
        return match random.below(3) {
            0 => format!("{ty}({number})"),
            _ => random.pick(leaves).to_owned(),
        };
    }
    let one = |random: &mut Random| integer(random, ty, depth - 1);
    match random.below(11) {
        0 => format!("min({}, {})", one(random), one(random)),
        1 => format!("max({}, {})", one(random), one(random)),
        2 => format!("({} + {})", one(random), one(random)),
        3 => format!("({} - {})", one(random), one(random)),
        4 => format!("({} * {})", one(random), one(random)),
        5 => format!("({} % {})", one(random), one(random)),
        6 => format!("({} / {})", one(random), number + 1),
        7 => format!("abs({})", one(random)),
        8 => format!("(if A[0] > 0 then {} else {})", one(random), one(random)),
        9 => {
            let from = random.pick(&["i64", "i32", "u32", "u64"]);
            format!("{ty}({})", integer(random, from, depth - 1))
        }
        _ => format!("max({ty}(0), min({}, {ty}({number})))", one(random)),
    }
}

/// Values of the fields: at the limits of their types, and ordinary ones.
fn inputs(n: usize, m: usize) -> BTreeMap<String, Array> {
    use stencil_runtime::array::Data;
    let take = |all: &[f64]| (0..n).map(|cell| all[cell % all.len()]).collect::<Vec<_>>();
    let floats = take(&[1e30, -3.0, f64::NAN, 2.0, -1e30, 7.0]);
    let ints = |limits: [i128; 6]| (0..n).map(|cell| limits[cell % 6]).collect::<Vec<_>>();
    let array = |data| Array::new(vec![n], data).unwrap();
    let (i, u, l) = (
        ints([i32::MIN.into(), i32::MAX.into(), -1, 0, 5, -7]),
        ints([0, u32::MAX.into(), 1 << 31, 3, 9, 1]),
        ints([0, u64::MAX.into(), 1 << 63, 4, 11, (1 << 63) - 1]),
    );
    BTreeMap::from([
        ("A".into(), array(Data::F32(floats.iter().map(|value| *value as f32).collect()))),
        ("B".into(), array(Data::U32(u.iter().map(|value| *value as u32).collect()))),
        ("D".into(), array(Data::U64(l.iter().map(|value| *value as u64).collect()))),
        ("E".into(), array(Data::I32(i.iter().map(|value| *value as i32).collect()))),
        ("K".into(), Array::new(vec![m], Data::F32(vec![1.0; m])).unwrap()),
    ])
}

#[test]
fn what_is_accepted_never_reads_outside() {
    let mut random = Random(0x51ed_270b_9abc_def1);
    let (mut accepted, mut ran) = (0, 0);
    for _ in 0..3000 {
        let ty = random.pick(&["i64", "i64", "i32", "u32", "u64"]);
        let depth = 1 + random.below(3);
        let text = table(&integer(&mut random, ty, depth));
        let (program, _) = crate::load(&Source::new("t", text.as_str()), &[]);
        let Some(program) = program else { continue };
        accepted += 1;
        for (n, m) in [(1, 1), (6, 1), (6, 9), (13, 40)] {
            let sizes = Sizes::from([(EntityRef::new(0), n), (EntityRef::new(1), m)]);
            if check(&program, &sizes, 3).is_err() || extents(&program, &sizes).is_err() {
                continue;
            }
            ran += 1;
            let mut fields = inputs(n as usize, m as usize);
            let outcome = run(&program, &sizes, &BTreeMap::new(), 3, &mut fields, &mut |_, _| {
                ControlFlow::Continue(())
            });
            assert!(!matches!(outcome, Err(OracleError::Outside { .. })), "{n} {m}\n{text}");
            outcome.unwrap();
        }
    }
    assert!(accepted > 300 && ran > 500, "{accepted} {ran}");
}
