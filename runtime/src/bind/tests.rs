//! Sizes, scalars and buffers of small plans.

use super::*;
use crate::plan::tests::heat;

fn request(sizes: &[(&str, i64)], shapes: &[(&str, &[usize])]) -> Request {
    Request {
        sizes: sizes.iter().map(|(name, value)| (name.to_string(), *value)).collect(),
        shapes: shapes.iter().map(|(name, shape)| (name.to_string(), shape.to_vec())).collect(),
        ..Request::default()
    }
}

fn error(sizes: &[(&str, i64)], shapes: &[(&str, &[usize])]) -> String {
    bind(&heat(), &request(sizes, shapes)).unwrap_err().to_string()
}

#[test]
fn sizes_come_from_the_user_or_from_arrays() {
    let from_user = bind(&heat(), &request(&[("N", 8), ("M", 3)], &[])).unwrap();
    let from_arrays = bind(&heat(), &request(&[], &[("A", &[8, 7])])).unwrap();
    let from_both = bind(&heat(), &request(&[("M", 3), ("Q", 5)], &[("K", &[8])])).unwrap();
    assert_eq!(from_user, from_arrays);
    assert_eq!(from_user, from_both);
    assert_eq!(from_user.shapes, [vec![8, 7], vec![8], vec![5]]);
    assert_eq!(
        from_user.values[1],
        [Held { buffer: 2, cells: from_user.buffers[2].all_cells(), number: 0 }]
    );
    assert_eq!(from_user.device_bytes(), 2 * 8 * 7 * 4 + 8 * 4 + 5 * 8);
    assert_eq!((from_user.steps, from_user.sizes["steps"]), (10, 10));
    assert_eq!(from_user.scalars["alpha"], Number::F32(0.1));
    assert_eq!(from_user.sizes_text(), "M = 3, N = 8, Q = 5, steps = 10");
}

#[test]
fn equations_are_solved_in_any_order() {
    let mut plan = heat();
    plan.fields[0].extents = vec!["N + M".parse().unwrap(), "N * M".parse().unwrap()];
    let bound = bind(&plan, &request(&[], &[("A", &[11, 24]), ("K", &[8])])).unwrap();
    assert_eq!((bound.sizes["N"], bound.sizes["M"]), (8, 3));
    let text =
        bind(&plan, &request(&[], &[("A", &[11, 25]), ("K", &[8])])).unwrap_err().to_string();
    assert_eq!(
        text,
        "array `A` is 11x25, but its dimension 1 must be 24, `N * M` (N = 8, dimension 0 of \
         array `K`; M = 3, dimension 0 of array `A`)"
    );
}

#[test]
fn contradictions_name_both_sides() {
    for (text, wanted) in [
        (
            error(&[("N", 400)], &[("A", &[344, 403])]),
            "array `A` is 344x403, but its dimension 0 must be 400, `N` (N = 400, given)",
        ),
        (
            error(&[], &[("A", &[344, 403]), ("K", &[343])]),
            "array `K` is 343, but its dimension 0 must be 344, `N` (N = 344, dimension 0 of \
             array `A`)",
        ),
        (
            error(&[], &[("A", &[344, 402])]),
            "array `A` is 344x402, but no whole `M` makes its dimension 1 (`2 * M + 1`) so",
        ),
        (
            error(&[], &[("A", &[344])]),
            "array `A` is 344; the program wants 2 dimensions (N, 2 * M + 1)",
        ),
        (
            error(&[("N", 8)], &[]),
            "the run-time size `M` has no value; give one with --size M=... or an array whose \
             shape tells it (--in A=...)",
        ),
        (error(&[("L", 8)], &[]), "heat has no run-time size `L`; it has N, M"),
        (
            error(&[("Q", 8)], &[]),
            "`Q` was fixed to 5 when heat was compiled; compile it again with -D Q=8",
        ),
        (
            error(&[("N", 2), ("M", 3)], &[]),
            "the grid must have 3 rows (M = 3, N = 2, Q = 5, steps = 10)",
        ),
        (
            error(&[("N", 9), ("M", -3)], &[]),
            "field `A` would have -5 cells in dimension 1 (`2 * M + 1`, M = -3, N = 9, Q = 5, \
             steps = 10); use larger sizes",
        ),
        (
            error(&[("N", 1 << 20), ("M", 1 << 20)], &[]),
            "size overflow: field `A` has 2199024304128 cells (1048576x2097153), more than \
             32-bit indices reach; compile with these sizes fixed (-D) or use smaller ones",
        ),
        (
            error(&[("N", 8), ("M", i64::MAX)], &[]),
            "size overflow: `2 * M` does not fit in 64 bits; use smaller sizes",
        ),
    ] {
        assert_eq!(text, wanted);
    }
}

#[test]
fn an_empty_field_does_not_hide_an_overflow() {
    let mut plan = heat();
    plan.fields[0].extents = ["N", "N", "0"].map(|extent| extent.parse().unwrap()).to_vec();
    plan.index_width = 64;
    let text = bind(&plan, &request(&[("N", 1 << 40), ("M", 3)], &[])).unwrap_err().to_string();
    assert!(text.contains("size overflow: field `A`"), "{text}");
}

#[test]
fn void_checks_do_not_count() {
    assert!(bind(&heat(), &request(&[("N", 2), ("M", 0)], &[])).is_ok());
}

#[test]
fn steps_and_scalars() {
    let with = |steps, name: &str, value| {
        let scalars = BTreeMap::from([(name.to_string(), Numeral::from(value))]);
        let request =
            Request { steps: Some(steps), scalars, ..request(&[("N", 8), ("M", 3)], &[]) };
        bind(&heat(), &request).map_err(|e| e.to_string())
    };
    assert_eq!(with(0, "alpha", 0.25).unwrap().scalars["alpha"], Number::F32(0.25));
    assert_eq!(
        with(-1, "alpha", 0.25).unwrap_err(),
        "-1 steps can't be run; give 0 to 281474976710656 with --steps"
    );
    assert!(with(1 << 48, "alpha", 0.25).is_ok());
    assert_eq!(
        with((1 << 48) + 1, "alpha", 0.25).unwrap_err(),
        "281474976710657 steps can't be run; give 0 to 281474976710656 with --steps"
    );
    assert_eq!(with(1, "beta", 0.25).unwrap_err(), "heat has no scalar `beta`; it has alpha");
    let mut plan = heat();
    plan.scalars[0].default = None;
    let text = bind(&plan, &request(&[("N", 8), ("M", 3)], &[])).unwrap_err().to_string();
    assert_eq!(text, "the scalar `alpha` has no value; give one with --set alpha=...");
}
