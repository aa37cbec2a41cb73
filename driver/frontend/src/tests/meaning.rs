//! The oracle against values computed by hand or by plain loops.

use super::{line, program, sizes_for};
use crate::oracle::{OracleError, run};
use std::collections::BTreeMap;
use stencil_runtime::array::{Array, Cell, Data, DataRef, Element, f16, with_cell};
use stencil_runtime::number::{Number, Numeral};

pub(super) type Fields = BTreeMap<String, Array>;

pub(super) fn singles(shape: &[usize], values: Vec<f32>) -> Array {
    Array::new(shape.to_vec(), Data::F32(values)).unwrap()
}

fn noise(shape: &[usize], seed: u32) -> Vec<f32> {
    let cells = shape.iter().product();
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32
    };
    (0..cells).map(next).collect()
}

pub(super) fn take(
    text: &str,
    steps: u64,
    arrays: &[(&str, Array)],
) -> Result<Fields, OracleError> {
    let program = program(text);
    let sizes = sizes_for(&program, arrays[0].1.shape());
    let mut fields: Fields =
        arrays.iter().map(|(name, array)| (name.to_string(), array.clone())).collect();
    run(&program, &sizes, &BTreeMap::new(), steps, &mut fields, &mut |_, _| {
        std::ops::ControlFlow::Continue(())
    })?;
    Ok(fields)
}

pub(super) fn f32s<'a>(fields: &'a Fields, name: &str) -> &'a [f32] {
    match fields[name].data() {
        DataRef::F32(values) => values,
        other => panic!("{other:?}"),
    }
}

/// What a line of f32 becomes after a step of `[0..N-1] = value` (with the coordinate `i`).
pub(super) fn each(value: &str, cells: &[f32]) -> Vec<f32> {
    let text = line(&format!("fn f -> A [i in 0..N-1] = {value}\nsteps 1"));
    let fields = take(&text, 1, &[("A", singles(&[cells.len()], cells.to_vec()))]).unwrap();
    f32s(&fields, "A").to_vec()
}

#[test]
fn heat_equals_plain_loops_bit_for_bit() {
    let text = include_str!("../../../../test-suite/programs/heat2d.stencil");
    for (n, m, steps) in
        [(344, 403, 37), (3, 3, 2), (2, 5, 1), (1, 1, 1), (257, 2, 3), (5, 70_001, 3)]
    {
        let (mut a, k) = (noise(&[n, m], 1), noise(&[n, m], 2));
        let arrays = [("A", singles(&[n, m], a.clone())), ("K", singles(&[n, m], k.clone()))];
        let fields = take(text, steps, &arrays).unwrap();
        for _ in 0..steps {
            let old = a.clone();
            for i in 1..n.max(1) - 1 {
                for j in 1..m.max(1) - 1 {
                    let at = i * m + j;
                    let sum = old[at - m] + old[at + m] + old[at - 1] + old[at + 1] - 4.0 * old[at];
                    a[at] = old[at] + 0.1 * k[at] * sum;
                }
            }
        }
        assert_eq!(f32s(&fields, "A"), a, "{n}x{m}");
        assert_eq!(f32s(&fields, "K"), k);
    }
}

#[test]
fn functions_see_what_earlier_ones_wrote() {
    let text = include_str!("../../../../test-suite/programs/fdtd2d.stencil");
    let (n, m) = (37, 53);
    let shape = [n, m];
    let (mut x, mut y, mut z) = (noise(&shape, 1), noise(&shape, 2), noise(&shape, 3));
    let array = |values: &Vec<f32>| singles(&shape, values.clone());
    let fields = take(text, 5, &[("Ex", array(&x)), ("Ey", array(&y)), ("Hz", array(&z))]).unwrap();
    for _ in 0..5 {
        for i in 1..n {
            for j in 0..m {
                y[i * m + j] -= 0.5 * (z[i * m + j] - z[(i - 1) * m + j]);
            }
        }
        for i in 0..n {
            for j in 1..m {
                x[i * m + j] -= 0.5 * (z[i * m + j] - z[i * m + j - 1]);
            }
        }
        for i in 0..n - 1 {
            for j in 0..m - 1 {
                let at = i * m + j;
                z[at] -= 0.7 * (x[at + 1] - x[at] + y[at + m] - y[at]);
            }
        }
    }
    assert_eq!(f32s(&fields, "Ex"), x);
    assert_eq!(f32s(&fields, "Ey"), y);
    assert_eq!(f32s(&fields, "Hz"), z);
}

#[test]
fn fields_updated_together_see_the_same_old_values() {
    let text = include_str!("../../../../test-suite/programs/wave3d.stencil");
    let shape = [9usize, 31, 67];
    let (plane, row) = (31 * 67, 67);
    let (mut p, mut u, c) = (noise(&shape, 1), noise(&shape, 2), noise(&shape, 3));
    let array = |values: &Vec<f32>| singles(&shape, values.clone());
    let fields = take(text, 4, &[("P", array(&p)), ("U", array(&u)), ("C", array(&c))]).unwrap();
    for _ in 0..4 {
        let (old_p, old_u) = (p.clone(), u.clone());
        for i in 1..shape[0] - 1 {
            for j in 1..shape[1] - 1 {
                for k in 1..shape[2] - 1 {
                    let at = i * plane + j * row + k;
                    let sum = old_u[at - plane]
                        + old_u[at + plane]
                        + old_u[at - row]
                        + old_u[at + row]
                        + old_u[at - 1]
                        + old_u[at + 1]
                        - 6.0 * old_u[at];
                    p[at] = old_u[at];
                    u[at] = 2.0 * old_u[at] - old_p[at] + c[at] * sum;
                }
            }
        }
    }
    assert_eq!(f32s(&fields, "P"), p);
    assert_eq!(f32s(&fields, "U"), u);
}

#[test]
fn pieces_coordinates_and_steps() {
    let text = line(
        "fn f -> A {\n  [0] = 2*A[0] - A[1]\n  [i in 1..N-2] = { let c = A[0]; let d = A[1] - \
         A[-1]; \
         if i % 2 == 0 then c + d/2 else f32(10*i + t) }\n}\nsteps 2",
    );
    let fields = take(&text, 2, &[("A", singles(&[5], vec![1.0, 2.0, 4.0, 8.0, 16.0]))]).unwrap();
    // Step 0: 2*1-2, 10, 4+(8-2)/2, 30, 16 kept. Step 1: -10, 11, 7+(30-10)/2, 31, 16.
    assert_eq!(f32s(&fields, "A"), [-10.0, 11.0, 17.0, 31.0, 16.0]);
}

#[test]
fn grids_need_not_start_at_zero() {
    let text = "param N\ngrid G = [-2..N, 3..4]\nfield A : f32 on G\n\
                fn f -> A [i in -1..N, j in 4..4] = A[-1,-1] + f32(100*i + j)\nsteps 1";
    let fields =
        take(text, 1, &[("A", singles(&[4, 2], (0..8).map(|v| v as f32).collect()))]).unwrap();
    assert_eq!(f32s(&fields, "A"), [0.0, 1.0, 2.0, -96.0, 4.0, 6.0, 6.0, 108.0]);
}

#[test]
fn arithmetic_is_done_in_its_own_type() {
    // f32 stays f32; f64 is f64 until it is converted.
    let (a, b) = (16_777_216.0f32, 0.1f32);
    assert_eq!(each("A[0] + 1 - A[0]", &[a]), [a + 1.0 - a]);
    assert_eq!(each("f32(f64(A[0]) + 1 - f64(A[0]))", &[a]), [1.0]);
    assert_eq!(each("A[0] * 3 + 1", &[b]), [b * 3.0 + 1.0]);
    assert_eq!(each("fma(A[0], 3, 1)", &[b]), [b.mul_add(3.0, 1.0)]);
    assert_eq!(each("rsqrt(A[0])", &[3.0]), [1.0 / 3.0f32.sqrt()]);
    assert_eq!(
        each("sqrt(A[0]) + abs(-A[0]) + floor(A[0]) + ceil(A[0])", &[2.5]),
        [2.5f32.sqrt() + 2.5 + 2.0 + 3.0]
    );
    // Integers: toward zero, the sign of the dividend, wrapping, conversions at the limits.
    assert_eq!(each("f32((i - 4) / 3) * 10 + f32((i - 4) % 3)", &[0.0; 3]), [-11.0, -10.0, -2.0]);
    assert_eq!(
        each("f32(i32(2147483647) + i32(i))", &[0.0; 2]),
        [2_147_483_647.0, -2_147_483_648.0]
    );
    assert_eq!(each("f32(i32(A[0]))", &[-2.9, 3e10, f32::NAN]), [-2.0, 2_147_483_647.0, 0.0]);
    assert_eq!(
        each(
            "f32(i64(9223372036854775807) / (i - 1)) - f32(-9223372036854775808 / (0 * i - 1))",
            &[0.0]
        ),
        [0.0]
    );
}

#[test]
fn min_and_max_prefer_numbers_and_order_zeros() {
    let nan = f32::NAN;
    assert_eq!(each("min(A[0], 1)", &[nan, 0.5, 2.0]), [1.0, 0.5, 1.0]);
    assert_eq!(each("max(1, A[0])", &[nan, 0.5, 2.0]), [1.0, 1.0, 2.0]);
    let zeros = each("min(A[0], -A[0])", &[0.0, -0.0]);
    assert!(zeros.iter().all(|zero| zero.is_sign_negative()));
    let zeros = each("max(A[0], -A[0])", &[0.0, -0.0]);
    assert!(zeros.iter().all(|zero| zero.is_sign_positive()));
}

#[test]
fn sides_of_an_if_are_chosen_at_each_point() {
    let cells = [1.0; 600];
    let third = |i: usize| if i == 300 { 7.0 } else { 1.0 / (i as f32 - 300.0).abs() };
    let wanted: Vec<f32> =
        (0..600).map(|i| if i == 300 { 7.0 } else { (3000 / (i as i64 - 300)) as f32 }).collect();
    assert_eq!(each("if i == 300 then 7 else f32(3000 / (i - 300))", &cells), wanted);
    let wanted: Vec<f32> = (0..600)
        .map(|i| if i != 300 && 3000 % (i as i64 - 300) == 0 { 1.0 } else { 0.0 })
        .collect();
    assert_eq!(each("if i != 300 && 3000 % (i - 300) == 0 then 1 else 0", &cells), wanted);
    assert_eq!(each("if !(i == 300 || 3000 % (i - 300) != 0) then 1 else 0", &cells), wanted);
    // Inside the side that is not taken, nested.
    assert_eq!(
        each(
            "if i == 300 then 7 else if i < 900 then A[0] / abs(f32(i - 300)) else f32(1 / (i - \
             i))",
            &cells
        ),
        (0..600).map(third).collect::<Vec<_>>()
    );
    // A condition can be named.
    assert_eq!(
        each(
            "{ let low = A[0] < 2; if low then 1 else if low == low then 5 else 2 }"
                .replace("low == low", "!low")
                .as_str(),
            &[1.0, 3.0]
        ),
        [1.0, 5.0]
    );
}

#[test]
fn integer_division_has_a_result_for_all_operands() {
    // A divisor of 0, and the one quotient that is out of range.
    assert_eq!(
        each("f32((7 + i) / (i - 1)) * 10 + f32((7 + i) % (i - 1))", &[0.0; 3]),
        [-70.0, 8.0, 90.0]
    );
    let least = "i32(-2147483648)";
    assert_eq!(each(&format!("f32({least} / i32(i - 1))"), &[0.0]), [-2_147_483_648.0]);
    assert_eq!(each(&format!("f32({least} % i32(i - 1))"), &[0.0]), [0.0]);
    assert_eq!(each("f32(u32(i) / u32(i)) + f32(u32(7 + i) % u32(i))", &[0.0; 2]), [7.0, 1.0]);
}

#[test]
fn unsigned_integers_wrap_compare_and_divide_as_such() {
    assert_eq!(each("if u32(i) - 1 > u32(i) then 1 else 2", &[0.0; 2]), [1.0, 2.0]);
    assert_eq!(each("f32((u32(i) - 1) / 2)", &[0.0]), [2_147_483_647.0]);
    assert_eq!(each("f32((u64(i) - 1) / 2)", &[0.0]), [9_223_372_036_854_775_807.0]);
    assert_eq!(each("f32(max(u64(i) - 1, 5))", &[0.0, 0.0]), [18_446_744_073_709_551_615.0, 5.0]);
    // Between integers the bits are kept or cut off; from floats the limits hold.
    assert_eq!(each("f32(i32(u32(4294967295) + u32(0*i)))", &[0.0]), [-1.0]);
    assert_eq!(each("f32(u64(i32(i) - 1) % 1000)", &[0.0]), [615.0]);
    assert_eq!(
        each("f32(u32(A[0]))", &[-2.5, 2.9, 1e12, f32::NAN]),
        [0.0, 2.0, 4_294_967_295.0, 0.0]
    );
}

#[test]
fn halves_round_after_each_operation() {
    let half = |text: &str, cells: &[f32]| each(&text.replace("h(", "f16("), cells);
    // 2048 + 1 is a tie in f16, and goes to the even 2048; fma rounds once.
    assert_eq!(half("f32(h(A[0]) + 1 + 1)", &[2048.0]), [2048.0]);
    assert_eq!(
        half("f32(h(A[0]) * 0.1)", &[3.0]),
        [f32::from(f16::from_f32(3.0 * f32::from(f16::from_f32(0.1))))]
    );
    assert_eq!(half("f32(fma(h(A[0]), h(A[0]), h(A[0])))", &[45.25]), [2092.0]);
    assert_eq!(half("f32(h(A[0]) * h(A[0]) + h(A[0]))", &[45.25]), [2094.0]);
    assert_eq!(half("f32(h(A[0]) + 65504)", &[65504.0]), [f32::INFINITY]);
    assert_eq!(half("f32(h(i64(A[0]) + 1))", &[2048.0]), [2048.0]);
    assert_eq!(half("f32(sqrt(h(A[0])))", &[2.0]), [f32::from(f16::from_f32(2.0_f32.sqrt()))]);
    assert_eq!(
        half("f32(i32(h(A[0])))", &[f32::INFINITY, -2.5, f32::NAN]),
        [2_147_483_647.0, -2.0, 0.0]
    );
}

#[test]
fn fields_and_scalars_of_all_number_types() {
    for (element, wanted) in
        [("f16", 7.0), ("f32", 7.0), ("i32", 7.0), ("i64", 7.0), ("u32", 7.0), ("u64", 7.0)]
    {
        let text = format!(
            "param N\ngrid G = [0..N-1]\nfield A : {element} on G\nscalar s : {element} = 3\n\
             fn f -> A [1..N-1] = A[-1] * 2 + s\nsteps 1"
        );
        let element = Element::from_name(element).unwrap();
        let two = Number::integer(element, 2).unwrap();
        let array = with_cell!(element, T => T::data(vec![T::of_number(two).unwrap(); 3]));
        let fields = take(&text, 1, &[("A", Array::new(vec![3], array).unwrap())]).unwrap();
        assert_eq!(fields["A"].element(), element);
        let values: Vec<_> = (0..3).map(|cell| fields["A"].get(cell).unwrap()).collect();
        assert_eq!(values, [2.0, wanted, wanted], "{element}");
    }
}

#[test]
fn temps_start_as_zeros_and_stay_inside() {
    let text = "param N\ngrid G = [0..N-1]\nfield A : f32 on G\ntemp field B : f64 on G\n\
                fn f -> B [0..N-1] = B[0] + f64(A[0])\nfn g -> A [0..N-1] = f32(B[0])\nsteps 1";
    let fields = take(text, 3, &[("A", singles(&[2], vec![1.0, 2.0]))]).unwrap();
    assert_eq!(f32s(&fields, "A"), [4.0, 8.0]);
    assert_eq!(fields.len(), 1);
}

#[test]
fn wrong_inputs_are_told() {
    let program = program(&line("scalar s : f32\nfn f -> A [1..N-2] = s * A[-1]\nsteps 1"));
    let good = singles(&[5], vec![1.0; 5]);
    let sizes = sizes_for(&program, &[5]);
    let scalars: BTreeMap<String, Numeral> = [("s".to_string(), 0.1.into())].into();
    let attempt = |scalars: &BTreeMap<String, Numeral>, arrays: Vec<(&str, Array)>| {
        let mut fields: Fields =
            arrays.into_iter().map(|(name, array)| (name.to_string(), array)).collect();
        run(&program, &sizes, scalars, 1, &mut fields, &mut |_, _| {
            std::ops::ControlFlow::Continue(())
        })
        .map(|_| fields)
    };
    let none = BTreeMap::new();
    assert!(matches!(
        attempt(&none, vec![("A", good.clone())]),
        Err(OracleError::MissingScalar { .. })
    ));
    let other = [("r".to_string(), 1.0.into())].into();
    assert!(matches!(
        attempt(&other, vec![("A", good.clone())]),
        Err(OracleError::UnknownScalar { .. })
    ));
    assert!(matches!(attempt(&scalars, vec![]), Err(OracleError::MissingField { .. })));
    let extra = vec![("A", good.clone()), ("B", good.clone())];
    assert!(matches!(attempt(&scalars, extra), Err(OracleError::Unexpected { .. })));
    let long = singles(&[6], vec![1.0; 6]);
    assert!(matches!(attempt(&scalars, vec![("A", long)]), Err(OracleError::Shape { .. })));
    let double = Array::new(vec![5], Data::F64(vec![1.0; 5])).unwrap();
    assert!(matches!(attempt(&scalars, vec![("A", double)]), Err(OracleError::Element { .. })));
    let huge = [("s".to_string(), 1e300.into())].into();
    assert!(matches!(attempt(&huge, vec![("A", good.clone())]), Err(OracleError::Scalar { .. })));
    let fields = attempt(&scalars, vec![("A", good)]).unwrap();
    assert_eq!(f32s(&fields, "A"), [1.0, 0.1, 0.1, 0.1, 1.0]);
}

/// What a line of cells becomes where each takes the sum of its neighbours at two offsets, by a
/// rule.
fn by_rule(rule: &str, offsets: [i64; 2], cells: &[f32]) -> Vec<f32> {
    let [low, high] = offsets;
    let function = format!("fn f -> A [0..N-1] = A[{low}] + 100*A[{high}]");
    let text = format!(
        "scalar s : f32 = 3\n{}",
        line(&format!("boundary A = {rule}\n{function}\nsteps 2"))
    );
    let fields = take(&text, 1, &[("A", singles(&[cells.len()], cells.to_vec()))]).unwrap();
    f32s(&fields, "A").to_vec()
}

#[test]
fn a_rule_says_what_lies_outside() {
    let cells = [1., 2., 3., 4.];
    assert_eq!(by_rule("nearest", [-1, 1], &cells), [201., 301., 402., 403.]);
    assert_eq!(by_rule("nearest", [-3, 9], &cells), [401., 401., 401., 401.]);
    assert_eq!(by_rule("periodic", [-1, 1], &cells), [204., 301., 402., 103.]);
    assert_eq!(by_rule("periodic", [-5, 7], &cells), [404., 101., 202., 303.]);
    assert_eq!(by_rule("reflect", [-1, 1], &cells), [202., 301., 402., 303.]);
    assert_eq!(by_rule("reflect", [-7, 4], &cells), [302., 201., 102., 203.]);
    // The outside point's coordinate, the step, the nearest cell, a size and a scalar.
    let rule = "{ let c = f32(x0); if x0 < 0 then nearest + 10*c else f32(N) + s + f32(t) }";
    assert_eq!(by_rule(rule, [-2, 1], &cells), [181., 291., 401., 702.]);
    for rule in ["nearest", "periodic", "reflect"] {
        assert_eq!(by_rule(rule, [-3, 2], &[5.]), [505.]);
        assert!(by_rule(rule, [-3, 2], &[]).is_empty());
    }
}

#[test]
fn corners_are_mapped_one_dimension_at_a_time() {
    let text = "param N\nparam M\ngrid G = [2..N+1, -1..M-2]\nfield A : f32 on G\nboundary A = \
        reflect\n\
                fn f -> A [2..N+1, -1..M-2] = A[-1,2]\nsteps 1";
    let cells: Vec<f32> = (0..6).map(|cell| cell as f32).collect();
    let fields = take(text, 1, &[("A", singles(&[2, 3], cells))]).unwrap();
    assert_eq!(f32s(&fields, "A"), [5., 4., 3., 2., 1., 0.]);
}

#[test]
fn a_rule_says_what_an_absolute_read_gives() {
    let read = |rule: &str, at: &str| {
        let text = format!(
            "param N\ngrid G = [0..N-1]\ngrid T = [2..5]\nfield A : f32 on G\nconst field k : f32 \
             on T\n\
             boundary k = {rule}\nfn f -> A [i in 0..N-1] = k({at})\nsteps 1"
        );
        let arrays =
            [("A", singles(&[5], vec![0.; 5])), ("k", singles(&[4], vec![1., 2., 3., 4.]))];
        f32s(&take(&text, 1, &arrays).unwrap(), "A").to_vec()
    };
    // Five places from -5 to 7, on the cells 2 to 5.
    assert_eq!(read("nearest", "3*i - 5"), [1., 1., 1., 3., 4.]);
    assert_eq!(read("periodic", "3*i - 5"), [2., 1., 4., 3., 2.]);
    assert_eq!(read("reflect", "3*i - 5"), [2., 3., 2., 3., 2.]);
    assert_eq!(read("f32(x0) + 100*nearest", "3*i - 5"), [95., 98., 101., 3., 407.]);
    // The ends of 64 bits, and what is no number.
    assert_eq!(read("periodic", "9223372036854775807 + 0*i"), [2.; 5]);
    assert_eq!(read("nearest", "i64(A[0] / A[0])"), [1.; 5]);
}

#[test]
fn a_rule_gives_a_whole_cell() {
    let text = "param N\nstruct S { u : f32, v : vec<2, f32> }\ngrid G = [0..N-1]\nfield A : S on \
        G\n\
                boundary A = { let x = f32(x0); S { u: nearest.v.1, v: vec(nearest.u, x) } }\n\
                fn f -> A [0..N-1] = A[-1]\nsteps 1";
    let parts = [("A.u", vec![1., 2.]), ("A.v.0", vec![3., 4.]), ("A.v.1", vec![5., 6.])];
    let fields = take(text, 1, &parts.map(|(name, cells)| (name, singles(&[2], cells)))).unwrap();
    assert_eq!(
        ["A.u", "A.v.0", "A.v.1"].map(|name| f32s(&fields, name).to_vec()),
        [[5., 1.], [1., 3.], [-1., 5.]]
    );
}
