//! Numbers at their edges: unsigned coordinates, zeros that are fixed, literals without a context.

use super::meaning::{each, f32s, singles, take};
use super::{line, messages};
use stencil_runtime::array::{Array, Data, f16};
use stencil_runtime::number::Number;

#[test]
fn unsigned_coordinates_keep_their_value() {
    let read = |rule: &str, ty: &str, at: &str| {
        let text = format!(
            "param N\ngrid G = [0..N-1]\ngrid T = [0..3]\nfield A : f32 on G\n\
             const field k : f32 on T\nconst field U : {ty} on G\nboundary k = {rule}\n\
             fn f -> A [0..N-1] = k({at})\nsteps 1"
        );
        let index = match ty {
            "u32" => Data::U32(vec![0, 2, u32::MAX]),
            _ => Data::U64(vec![0, 1 << 63, u64::MAX]),
        };
        let arrays = [
            ("A", singles(&[3], vec![0.; 3])),
            ("k", singles(&[4], vec![1., 2., 3., 4.])),
            ("U", Array::new(vec![3], index).unwrap()),
        ];
        f32s(&take(&text, 1, &arrays).unwrap(), "A").to_vec()
    };
    assert_eq!(read("nearest", "u32", "U[0]"), [1., 3., 4.]);
    assert_eq!(read("nearest", "u64", "U[0]"), [1., 4., 4.]);
    // 2^63 and what is above count as 2^63 - 1.
    assert_eq!(read("periodic", "u64", "U[0]"), [1., 4., 4.]);
    assert_eq!(read("if x0 == 9223372036854775807 then 5 else 6", "u64", "U[0]"), [1., 5., 5.]);
    assert_eq!(read("if x0 < 0 then 7 else f32(x0)", "u32", "U[0]"), [1., 3., 4_294_967_295.]);
    // A conversion that is written keeps the bits.
    assert_eq!(read("if x0 < 0 then 7 else 8", "u64", "i64(U[0])"), [1., 7., 7.]);
}

#[test]
fn a_param_that_is_fixed_as_zero_divides_as_at_run_time() {
    let text = |zero: &str| {
        format!(
            "param N\nparam P = {zero}\ngrid G = [0..N-1]\nfield A : f32 on G\n\
             fn f -> A [i in 0..N-1] = f32(i / P) + 10*f32(i % (P + 1 - 1)) + A[0] / f32(P)\n\
             steps 1"
        )
    };
    let fields = take(&text("0"), 1, &[("A", singles(&[3], vec![1., -2., 0.]))]).unwrap();
    let found = f32s(&fields, "A");
    assert_eq!(found[..2], [f32::INFINITY, f32::NEG_INFINITY]);
    assert!(found[2].is_nan());
    assert_eq!(messages(&line("fn f -> A [i in 0..N-1] = f32(i / 0)\nsteps 1")).len(), 1);
}

#[test]
fn literals_take_the_type_of_a_conversion_and_of_the_cells() {
    assert_eq!(each("f32(7/2) + f32(i32(7/2)) + f32(i32(7.5/2))", &[0.0]), [9.5]);
    // In a struct whose numbers all are f32, a `let` of several literals is f32.
    let text = "param N\nstruct S { u : f32, v : vec<2, f32> }\ngrid G = [0..N-1]\n\
                field A : S on G\nfn f -> A [0..N-1] = { let w = 1.0 / 4; \
                S { u: w * A[0].u, v: A[0].v * w } }\nsteps 1";
    let parts = ["A.u", "A.v.0", "A.v.1"].map(|name| (name, singles(&[1], vec![8.])));
    let fields = take(text, 1, &parts).unwrap();
    assert_eq!(f32s(&fields, "A.u"), [2.0]);
    // In one of mixed types it has the type that it has alone.
    let mixed = "param N\nstruct S { u : f32, n : i32 }\ngrid G = [0..N-1]\nfield A : S on G\n\
                 fn f -> A [0..N-1] = { let w = 3 * 2; S { u: f32(w), n: i32(w) } }\nsteps 1";
    super::program(mixed);
    assert_eq!(messages(&mixed.replace("f32(w)", "w")).len(), 1);
    // A comparison of literals is one of floats where one of them is.
    assert_eq!(each("(if 7/2 < 3.5 then 1 else 2) + (if 7/2 < 4 then 10 else 20)", &[0.0]), [12.0]);
    // `-0` of an integer is 0, of a float it has its sign.
    let program =
        super::program(&line("scalar s : i32 = -0\nfn f -> A [0..N-1] = f32(s)\nsteps 1"));
    let default = program.scalars.values().next().unwrap().default.clone();
    assert_eq!(default, Some(Number::I32(0).into()));
    assert_eq!(each("1 / -0", &[0.0]), [f32::NEG_INFINITY]);
}

#[test]
fn literals_that_round_to_zero_are_refused() {
    let refused = |value: &str| {
        let text = line(&format!("fn f -> A [0..N-1] = {value}\nsteps 1"));
        messages(&text).iter().any(|message| message.contains("too small"))
    };
    assert!(refused("1e-50") && refused("f32(f16(1e-9))") && refused("f32(f64(1e-400))"));
    assert!(!refused("1e-45") && !refused("0e-999") && !refused("0.000"));
}

#[test]
fn halves_round_the_root_before_they_divide() {
    // 1 / sqrt(a) by way of f32 or f64 alone would round once.
    let mut apart = 0;
    for bits in (0x0400..0x7c00_u16).step_by(7) {
        let a = f16::from_bits(bits);
        let root = f16::from_f64(a.to_f64().sqrt());
        let twice = f16::from_f64(1.0 / root.to_f64());
        apart += usize::from(twice != f16::from_f64(1.0 / a.to_f64().sqrt()));
        assert_eq!(each("f32(rsqrt(f16(A[0])))", &[a.to_f32()]), [twice.to_f32()], "{a}");
    }
    assert!(apart > 100, "{apart}");
}

#[test]
fn steps_that_compute_nothing_take_no_time() {
    let program = super::program(&line("fn f -> A [0..N-1] = A[0] + 1.0\nsteps 1"));
    let sizes = super::sizes_for(&program, &[0]);
    let array = Array::zeros(stencil_runtime::array::Element::F32, &[0]).unwrap();
    let mut fields = [("A".to_owned(), array)].into();
    let mut calls = 0;
    crate::oracle::run(&program, &sizes, &[].into(), 1 << 48, &mut fields, &mut |done, all| {
        calls += 1;
        assert_eq!((done, all), (1 << 48, 1 << 48));
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(calls, 1);
}
