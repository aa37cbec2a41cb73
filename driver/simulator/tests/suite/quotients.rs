//! Quotients by constants have the oracle's bits, also at the ends of the range of a type.

use crate::common::{Case, compile, difference, expected, simulate};
use std::collections::BTreeMap;
use stencil_dialects::mlir;
use stencil_runtime::array::{Array, Data};
use stencil_runtime::bind::{Bound, Request};
use stencil_runtime::element::f16;
use stencil_runtime::input;
use stencil_runtime::plan::Plan;
use stencil_simulator::Options;

/// The program divides by an odd, an even and a negative number, in types of three lengths.
const PROGRAM: &str = "
param N
grid G = [0..N-1]
const field X : f32 on G
const field Y : f64 on G
const field Z : f16 on G
field A : f32 on G
field B : f32 on G
field C : f32 on G
field D : f64 on G
field E : f64 on G
field F : f16 on G
field H : f16 on G
fn a -> A [0..N-1] = X[0] / 5
fn b -> B [0..N-1] = X[0] / 118
fn c -> C [0..N-1] = X[0] / -6
fn d -> D [0..N-1] = Y[0] / 5
fn e -> E [0..N-1] = Y[0] / 118
fn f -> F [0..N-1] = Z[0] / 5
fn h -> H [0..N-1] = Z[0] / 118
steps 1
";

/// Small significands. With 59, 177 and 295 as subnormal numbers, quotients by 118 lie in the
/// middle of two numbers.
const SMALL: [u64; 14] = [0, 1, 2, 3, 5, 29, 58, 59, 60, 118, 176, 177, 178, 295];

/// Numbers of every exponent and both signs, with small, middle and large significands, as bits of
/// a type with so many bits, of which so many are the significand's.
fn numbers(bits: u32, significand: u32) -> Vec<u64> {
    let exponents = 1_u64 << (bits - 1 - significand);
    let last = (1_u64 << significand) - 1;
    let ends = [last / 3, last / 2, last - 1, last];
    let positive = (0..exponents).flat_map(|exponent| {
        let all = SMALL.into_iter().chain(ends);
        all.map(move |low| exponent << significand | low & last)
    });
    positive.flat_map(|number| [number, number | 1 << (bits - 1)]).collect()
}

fn inputs(plan: &Plan) -> (Bound, BTreeMap<String, Array>) {
    let (single, double) = (numbers(32, 23), numbers(64, 52));
    let cells = double.len();
    let half = (0..1 << 16).step_by(3).collect();
    let again = |all: Vec<u64>| all.into_iter().cycle().take(cells);
    let data = [
        ("X", Data::F32(again(single).map(|bits| f32::from_bits(bits as u32)).collect())),
        ("Y", Data::F64(double.into_iter().map(f64::from_bits).collect())),
        ("Z", Data::F16(again(half).map(|bits| f16::from_bits(bits as u16)).collect())),
    ];
    let request = Request {
        sizes: [("N".to_owned(), cells as i64)].into_iter().collect(),
        steps: Some(1),
        ..Request::default()
    };
    let (bound, mut arrays) =
        input::prepare(plan, request, &BTreeMap::new(), |_| Some(input::Source::Random(1)))
            .unwrap_or_else(|error| panic!("{error}"));
    for (name, data) in data {
        let array = Array::new(vec![cells], data).unwrap_or_else(|error| panic!("{error}"));
        arrays.insert(name.to_owned(), array);
    }
    (bound, arrays)
}

#[test]
fn quotients_by_constants_have_the_bits_of_the_oracle() {
    let context = stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"));
    let case = Case::naive(PROGRAM);
    let (module, plan) = compile(&context, &case);
    let all = || mlir::walk(mlir::module_op(&module)).into_iter().map(mlir::name);
    assert_eq!(all().filter(|name| *name == "math.fma").count(), 3 * 2 + 4 * 3);
    assert!(all().all(|name| name != "arith.divf"));
    let (bound, inputs) = inputs(&plan);
    let outcome = simulate(&module, &plan, &bound, &inputs, Options::default())
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(difference(&outcome.outputs, &expected(&case, &bound, &inputs)), None);
}

/// Each constant of a kernel with a neighbour in its place: the oracle's bits tell.
#[test]
fn errors_in_constants_are_found() {
    let context = stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"));
    let case = Case::naive(PROGRAM);
    let (module, plan) = compile(&context, &case);
    let (bound, inputs) = inputs(&plan);
    let expected = expected(&case, &bound, &inputs);
    let text = module.as_operation().to_string();
    let planted = [
        // The remainder by another divisor, and the sign of a zero.
        ("constant 5.000000e+00 : f32", "constant 6.000000e+00 : f32"),
        // A correction by more than the exact reciprocal of an even divisor: ties go up.
        ("constant -0.00847457535 : f32", "constant -0.00847457628 : f32"),
        // Numbers at the shift that lie half as far from each other.
        ("constant 3.52648305E-38 : f32", "constant 1.76324153E-38 : f32"),
        ("constant 6.6752215755216041E-308 : f64", "constant 3.3376107877608021E-308 : f64"),
        // A look at another number than infinity.
        ("constant 0x7F800000 : f32", "constant 0x7F7FFFFF : f32"),
        ("constant 0x7FF0000000000000 : f64", "constant 0x7FEFFFFFFFFFFFFF : f64"),
        ("arith.subf", "arith.addf"),
    ];
    for (right, wrong) in planted {
        assert!(text.contains(right), "{right}");
        let module = mlir::parse_module(&context, &text.replace(right, wrong), "planted")
            .unwrap_or_else(|error| panic!("{error}"));
        let outcome = simulate(&module, &plan, &bound, &inputs, Options::default())
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(difference(&outcome.outputs, &expected).is_some(), "{wrong} for {right}");
    }
}
