//! Launches behind a look at a condition, which may run before it: runs that end early give the
//! oracle's values in every order that the waits allow.

use crate::common::Case;
use crate::common::planted::{Order, Subject, Table};
use stencil_simulator::mutate::Mutation::ForgetCondition;

/// Programs that end early: what is special, and the lines behind two sizes and a grid.
const PROGRAMS: [(&str, &str); 6] = [
    (
        "two functions of one field",
        "field A : f32 on G\n\
         fn f -> A [0..N-1, 0..M-1] = 0.7*A[0,0]\n\
         fn g -> A [1..N-2, 1..M-2] = 0.2*(A[-1,0] + A[1,0] + A[0,-1] + A[0,1])\n\
         reduce size : f32 = max(abs(A[0,0])) on [0..N-1, 0..M-1]\n\
         steps 40 until size < 0.05 every EVERY\n",
    ),
    (
        "a sum of floats",
        "field A : f32 on G\n\
         fn f -> A [0..N-1, 0..M-1] = 0.7*A[0,0]\n\
         reduce size : f32 = sum(abs(A[0,0])) on [0..N-1, 0..M-1]\n\
         steps 40 until size < 60.0 every EVERY\n",
    ),
    (
        "a temp field that is kept",
        "field A : f32 on G\ntemp field T : f32 on G\n\
         fn f -> T [1..N-2, 1..M-2] = T[0,0] + A[0,1]\n\
         fn g -> A [0..N-1, 0..M-1] = 0.8*A[0,0] + 0.001*T[0,0]\n\
         reduce size : f32 = max(A[0,0]) on [0..N-1, 0..M-1]\n\
         steps 40 until size < 0.2 every EVERY\n",
    ),
    (
        "a value taken over",
        "field P : f32 on G\nfield U : f32 on G\n\
         fn f -> (P, U) [1..N-2, 1..M-2] = (U[0,0], 0.4*(U[-1,0] + U[0,1]) - 0.1*P[0,0])\n\
         reduce size : f32 = max(abs(U[0,0])) on [3..N-4, 3..M-4]\n\
         steps 40 until size < 0.3 every EVERY\n",
    ),
    (
        "a field in place, a value read by the next step",
        "field A : f32 on G\nfield C : i32 on G\n\
         reduce size : f32 = max(A[0,0]) on [0..N-1, 0..M-1] initially 1\n\
         fn f -> A [0..N-1, 0..M-1] = A[0,0]*0.8*min(size, 1)\n\
         fn count -> C [1..N-2, 1..M-2] = C[0,0] + 1\n\
         steps 40 until size < 0.05 every EVERY\n",
    ),
    (
        "a sweep",
        "field A : f32 on G\n\
         fn f -> A [1..N-1, 1..M-1] = 0.4*(A'[-1,0] + A'[0,-1])\n\
         fn edge -> A {\n[0, 0..M-1] = 0.8*A[0,0]\n[1..N-1, 0] = 0.8*A[0,0]\n}\n\
         reduce size : f32 = max(A[0,0]) on [0..N-1, 0..M-1]\n\
         steps 40 until size < 0.2 every EVERY\n",
    ),
];

fn program(lines: &str, every: u32) -> String {
    let lines = lines.replace("EVERY", &every.to_string());
    format!("param N\nparam M\ngrid G = [0..N-1, 0..M-1]\n{lines}")
}

#[test]
fn runs_that_end_early_give_the_values_of_the_look() {
    let context = stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"));
    let orders: Vec<_> = (0..6).map(Order::Bands).collect();
    for (name, lines) in PROGRAMS {
        for every in [1, 3] {
            let text = program(lines, every);
            let cases = match name {
                "a sweep" => vec![
                    Case::wavefront(&text, &[4, 8]),
                    Case::strip(&text, &[32, 4]).per_thread(&[1, 1]),
                ],
                _ => vec![
                    Case::stream(&text, &[8, 32], 1),
                    Case::block(&text, &[8, 16], 1),
                    Case::naive(&text),
                ],
            };
            for case in cases {
                let subject = Subject::of_case(&context, name, &case, (&[70, 73], 40), 3);
                assert_eq!(subject.in_orders(&orders).verdict(None), "clean", "{case:?}");
            }
        }
    }
}

#[test]
fn kernels_that_forget_the_condition_are_found() {
    let context = stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"));
    let mut table = Table::default();
    let case = Case::stream(&program(PROGRAMS[0].1, 1), &[8, 32], 1);
    let subject = Subject::of_case(&context, "ahead", &case, (&[70, 73], 40), 1);
    let orders: Vec<_> = (0..24).map(Order::Bands).collect();
    // The kernels that compute the step, and that combine partial results.
    table.add(&subject.in_orders(&orders), &[ForgetCondition(1), ForgetCondition(2)]);
    insta::assert_snapshot!(table.0);
}
