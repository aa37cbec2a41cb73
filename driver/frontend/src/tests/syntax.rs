//! Parser and printer: round trips, precedence, recovery, depth.

use super::{line, messages, suite};
use crate::ast::{self, File, ItemKind};
use crate::limits;
use crate::parser::parse;
use crate::print::print;
use crate::source::Source;

fn tree(text: &str) -> File {
    let (file, errors) = parse(&Source::new("t", text));
    assert_eq!(errors, [], "{text}");
    file
}

fn round_trip(text: &str) {
    let first = tree(text);
    let printed = print(&first);
    assert_eq!(tree(&printed), first, "{printed}");
    assert_eq!(print(&tree(&printed)), printed);
}

/// Every form of the grammar.
const EVERYTHING: &str = "
param N
param M = 2 * (N - 1) / -3 % 4
scalar a : f32 = -0.5e-3
scalar b : i64
struct S { u : f32, v : vec<2 + 1, vec<4, f16>> }
grid G = [0..N-1, 5, 1..M]
const field K : S on G
temp field T : vec<4, f32> on G
field A : u32 on G
boundary A = nearest
boundary T = if x0 < 3 && !(t == 0 || a >= 1.5) then nearest * 2. else -1
let turn(v, k) = vec(-v.1, k * v.0)
let one() = 1
reduce most : f32 = max(A[0,0,0] + one()) on [0..N-1, 5, k in 1..M] initially -1e30
reduce some : bool = any(a < 1) on [0]
fn f -> A [i in 0..N-1, 5, k in 1..M] = A'[-1, 0, 2] - (A[0,0,0] - A[1,0,0]) * K(i, 2 * k, 0).v.1
fn g -> (A, T) {
  [0, 5, 1] = (a + b, S { u: 1, v: vec(a, b) }.v)
  [1, 5, 1] = ((a + b) * 2, { let x = (if a < b then a else b) + 1; let y = x; if x != y then x \
  else { y } })
}
fn p -> (A, T) {
  [0] = { let x = a; { let y = -x; (x, { y } + x * 2) } } [1] = { ((a), b) }
  [2] = { let z = a; (z + 1) * 2 }.x - { a }
}
repeat 2 * M {
  fn q -> A { [0] = a [1] = { a } }
  fn r -> A [0] = a
}
fn h -> A { }
fn i -> A { [0] = (a + b) * 2 [1] = a [2] = -a [M] = (a).x }
fn j -> A [0] = (a == b) == (a <= b) && a > (b > a) || - - a % !b / (a / b) > 0
fn k -> A [0] =
  2 * (sum(k in -1..M) A[k] * max(l in 0..2) if a > l then k else (min(k in 0..1) k) + 1)
steps 10 * M until most < 1 || some every 2 * M
";

#[test]
fn printing_and_parsing_is_the_identity() {
    round_trip(EVERYTHING);
    for source in suite("programs") {
        round_trip(&source.text);
    }
}

#[test]
fn precedence() {
    let same = |a: &str, b: &str| {
        let text = |e: &str| line(&format!("fn f -> A [0] = {e}"));
        assert_eq!(tree(&text(a)), tree(&text(b)), "{a} against {b}");
    };
    same("a + b * c - d", "((a) + (b * c)) - d");
    same("a || b && c < d + e", "a || (b && (c < (d + e)))");
    same("-a * b", "(-a) * b");
    same("-a.x", "-(a.x)");
    same("a - b - c", "(a - b) - c");
    same("if a then b else c + d", "if a then b else (c + d)");
    same("1 + if a then b else c + d", "1 + (if a then b else (c + d))");
    let (_, errors) = parse(&Source::new("t", line("fn f -> A [0] = a < b == c")));
    assert_eq!(errors.len(), 1);
}

#[test]
fn pieces_need_no_separator() {
    let file = tree(&line("fn f -> A {\n [0] = alpha [1..N-2] = A[0]\n [N-1] = alpha\n}"));
    let Some(ItemKind::Function { pieces, .. }) = file.items.last().map(|item| &item.node) else {
        panic!("no function");
    };
    assert_eq!(pieces.len(), 3);
    assert_eq!(pieces[0].values[0].node, ast::ExprKind::Name("alpha".into()));
}

#[test]
fn several_errors_in_one_run_and_no_cascades() {
    let text = "param N
grid G = [0..N-1
field A : f32 on G
feild B : f32 on G
fn f -> A {
  [0]      = 2*A[0] -
  [1..N-2] = (A[0] + ) * B[0]
  [N-1]    = A[0] @ 3
}
fn g -> A [1..N-2] = A[0] + A(, 1) + nothing
steps 3
";
    let found = messages(text);
    assert_eq!(
        found,
        [
            "expected `,` or `]`, found the keyword `field`",
            "expected an item, found `feild`",
            "expected an expression, found `[`",
            "expected an expression, found `)`",
            "`@` is not part of the language",
            "expected an expression, found `,`",
            "unknown name `nothing`",
        ]
    );
}

#[test]
fn a_broken_declaration_is_not_missed_later() {
    let found = messages(
        "param N\ngrid G = [0..]\nfield A : f32 on G\nfn f -> A [0] = A[0] + B\nsteps 1\n",
    );
    assert_eq!(found, ["expected an expression, found `]`", "unknown name `B`"]);
}

#[test]
fn depth_is_bounded() {
    let value = |value: String| line(&format!("fn f -> A [1..N-1] = {value}\nsteps 1"));
    let deep = [
        format!("{}A[0]{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("{}A[0]", "-".repeat(100_000)),
        format!("{}A[0]", "if ".repeat(100_000)),
        format!("{}A[0]", "{ let x = ".repeat(100_000)),
        "A[".repeat(100_000),
        "f32(".repeat(100_000),
        "x.".repeat(100_000) + "x",
        vec!["A[0]"; 100_000].join(" + "),
        vec!["A[0]"; 100_000].join(" && "),
        vec!["A[0]"; 100_000].join(" < "),
        format!(
            "{{ {} 1 }}",
            (0..100_000).map(|i| format!("let x{i} = A[0];")).collect::<String>()
        ),
    ];
    for text in deep {
        let found = messages(&value(text));
        assert!(found.len() < 5, "{found:?}");
        assert!(!found.is_empty());
    }
    let types = format!("field B : {}f32{} on G", "vec<2, ".repeat(100_000), ">".repeat(100_000));
    assert_eq!(messages(&line(&types)).len(), 1);
    // Up to the bound everything works, to the end of a run.
    let inner = limits::NESTING - 2;
    let lets: String =
        (1..limits::DEPTH - 10).map(|i| format!("let x{i} = x{} + A[0];", i - 1)).collect();
    let bounded = [
        vec!["A[-1]"; limits::TERMS].join(" + "),
        format!("{}A[0]{}", "-(".repeat(inner / 2), ")".repeat(inner / 2)),
        format!("{}A[0]{}", "if A[0] > 0 then ".repeat(inner / 3), " else 0".repeat(inner / 3)),
        format!("{{ let x0 = A[0]; {lets} x{} }}", limits::DEPTH - 11),
    ];
    for text in bounded {
        let program = super::program(&value(text));
        assert_eq!(program, program.clone());
        let array =
            stencil_runtime::array::Array::zeros(stencil_runtime::array::Element::F32, &[3])
                .unwrap();
        let sizes = super::sizes_for(&program, &[3]);
        let mut fields = [("A".to_string(), array)].into();
        crate::oracle::run(&program, &sizes, &[].into(), 1, &mut fields, &mut |_, _| {
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    }
}
