//! Expressions: their values, their text, their errors.

use super::*;

fn parse(text: &str) -> Expr {
    text.parse().unwrap()
}

fn value(text: &str) -> Result<i64, String> {
    let sizes = Sizes::from([
        ("N".into(), 100),
        ("M".into(), -7),
        ("big".into(), i64::MAX),
        ("mod".into(), 5),
    ]);
    parse(text).evaluate(&sizes).map_err(|e| e.to_string())
}

#[test]
fn values() {
    for (text, wanted) in [
        ("(N + 63) floordiv 64", 2),
        ("N ceildiv 64", 2),
        ("M floordiv 2", -4),
        ("M ceildiv 2", -3),
        ("M mod 4", 1),
        ("N - 1 - 2", 97),
        ("N - (1 - 2)", 101),
        ("2 + 3 * 4", 14),
        ("-2 * -3", 6),
        ("-N floordiv 3", -34),
        ("min(N, M) + max(3, 4)", -3),
        ("mod mod 3", 2),
        ("-9223372036854775808", i64::MIN),
    ] {
        assert_eq!(value(text), Ok(wanted), "{text}");
    }
}

#[test]
fn errors_name_the_part() {
    for (text, wanted) in [
        ("1 + N * big", "size overflow: `N * big` does not fit in 64 bits; use smaller sizes"),
        ("-(-big - 1)", "size overflow: `-(-big - 1)` does not fit in 64 bits; use smaller sizes"),
        ("N floordiv (M + 7)", "the divisor in `N floordiv (M + 7)` is 0; it must be positive"),
        ("N + K", "`K` has no value; give one with --size K=..."),
    ] {
        assert_eq!(value(text), Err(wanted.to_string()), "{text}");
    }
}

#[test]
fn parentheses_are_minimal_and_text_round_trips() {
    for text in [
        "N",
        "-N",
        "-(N + 1)",
        "-(3)",
        "--N",
        "a + b - c",
        "a - (b - c)",
        "a + (b + c)",
        "(a + b) * c",
        "a * (b floordiv c)",
        "a floordiv b mod c",
        "min(a + b, max(c, -1)) * 2",
        "a - -3",
        "min + max",
    ] {
        assert_eq!(parse(text).to_string(), text);
    }
    assert_eq!(parse("((a*b)+(c))").to_string(), "a * b + c");
}

#[test]
fn builders_fold_constants() {
    let n = || Expr::name("N");
    assert_eq!((n() + 63).floor_div(64).to_string(), "(N + 63) floordiv 64");
    assert_eq!((n() + 0).floor_div(1) * 1, n());
    assert_eq!(Expr::int(7).ceil_div(2) + 1, Expr::int(5));
    assert_eq!((n() + -3).to_string(), "N - 3");
    assert_eq!((n() - -3).to_string(), "N + 3");
    assert_eq!((-(n() + 1)).to_string(), "-(N + 1)");
    assert_eq!(
        Expr::int(i64::MAX) + 1,
        Expr::Binary(Op::Add, Expr::int(i64::MAX).into(), Expr::int(1).into())
    );
    assert_eq!(n().max(0).modulo(2).min(n()).to_string(), "min(max(N, 0) mod 2, N)");
}

#[test]
fn affine_forms() {
    let affine = parse("2 * (N - M) + M + 3 - -4").affine().unwrap();
    assert_eq!(affine.terms, BTreeMap::from([("M".into(), -1), ("N".into(), 2)]));
    assert_eq!(affine.constant, 7);
    assert_eq!(parse("N - N + 1").affine().unwrap().terms, BTreeMap::new());
    assert_eq!(parse("N * M").affine(), None);
    assert_eq!(parse("N floordiv 2").affine(), None);
}

#[test]
fn json_is_text() {
    let expr = parse("N + 1");
    assert_eq!(serde_json::to_string(&expr).unwrap(), "\"N + 1\"");
    assert_eq!(serde_json::from_str::<Expr>("\"N + 1\"").unwrap(), expr);
    assert!(serde_json::from_str::<Expr>("\"N +\"").is_err());
}
