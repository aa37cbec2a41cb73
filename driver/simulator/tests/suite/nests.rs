//! The reference of the affine level against loops by hand, bit for bit, and what it refuses.

use stencil_dialects::mlir;
use stencil_runtime::array::{Array, DataRef, Element};
use stencil_simulator::nest::{Argument, run};

const NESTS: &str = include_str!("../data/nests.mlir");

fn try_run(text: &str, name: &str, mut arguments: Vec<Argument>) -> Result<Vec<Argument>, String> {
    let context = stencil_dialects::context().unwrap();
    let module = mlir::parse_module(&context, text, "nests.mlir").unwrap();
    let functions = mlir::operations(mlir::body(&module));
    let named =
        |op: &mlir::Op| mlir::attribute(*op, "sym_name").and_then(mlir::string) == Some(name);
    let function = functions.into_iter().find(named).unwrap();
    run(function, &mut arguments).map_err(|error| error.to_string())?;
    Ok(arguments)
}

fn noise(shape: &[usize], seed: u64) -> Array {
    Array::noise(Element::F32, shape, seed).unwrap()
}

fn floats(array: &Array) -> &[f32] {
    let DataRef::F32(cells) = array.data() else { panic!("f32") };
    cells
}

/// The bits of the first argument after a run.
fn result(name: &str, arguments: Vec<Argument>) -> Vec<u32> {
    let after = try_run(NESTS, name, arguments).unwrap();
    let Argument::Array(array) = &after[0] else { panic!("the result is an array") };
    floats(array).iter().map(|cell| cell.to_bits()).collect()
}

fn size(size: usize) -> Argument {
    Argument::Size(size as i64)
}

#[test]
fn products_with_a_vector_and_their_transposes() {
    let (n, m) = (7, 11);
    for (name, shape) in [("mv", [n, m]), ("tmv", [m, n])] {
        let (a, y) = (noise(&shape, 1), noise(&[m], 2));
        let at = |i: usize, j: usize| floats(&a)[if name == "mv" { i * m + j } else { j * n + i }];
        let sum = |i: usize| (0..m).fold(0.0_f32, |sum, j| sum + at(i, j) * floats(&y)[j]);
        let expected: Vec<u32> = (0..n).map(|i| sum(i).to_bits()).collect();
        let arrays = [noise(&[n], 3), a.clone(), y.clone()].map(Argument::Array);
        let arguments = arrays.into_iter().chain([size(n), size(m)]).collect();
        assert_eq!(result(name, arguments), expected, "{name}");
    }
}

#[test]
fn a_product_of_matrices_carries_its_sum() {
    let (n, m, k) = (5, 6, 9);
    let wide = |shape: &[usize], seed| Array::noise(Element::F64, shape, seed).unwrap();
    let (a, b) = (wide(&[n, k], 1), wide(&[k, m], 2));
    let (DataRef::F64(left), DataRef::F64(right)) = (a.data(), b.data()) else { panic!("f64") };
    let sum =
        |i: usize, j: usize| (0..k).fold(0.0, |sum, l| sum + left[i * k + l] * right[l * m + j]);
    let expected: Vec<f64> = (0..n * m).map(|cell| sum(cell / m, cell % m)).collect();
    let arguments = [wide(&[n, m], 3), a.clone(), b.clone()].map(Argument::Array);
    let after = try_run(NESTS, "mm", arguments.to_vec()).unwrap();
    let Argument::Array(found) = &after[0] else { panic!("an array") };
    assert_eq!(found.data(), DataRef::F64(&expected));
}

#[test]
fn a_convolution_and_a_sum_of_vectors() {
    let (n, m) = (6, 5);
    let (a, w, o) = (noise(&[n + 2, m + 2], 1), noise(&[3, 3], 2), noise(&[n, m], 3));
    let cell = |i: usize, j: usize| {
        (0..9).fold(floats(&o)[i * m + j], |sum, at| {
            sum + floats(&a)[(i + at / 3) * (m + 2) + j + at % 3] * floats(&w)[at]
        })
    };
    let expected: Vec<u32> = (0..n * m).map(|at| cell(at / m, at % m).to_bits()).collect();
    let arrays = [o.clone(), a.clone(), w.clone()].map(Argument::Array);
    let arguments = arrays.into_iter().chain([size(n), size(m)]).collect();
    assert_eq!(result("conv2d", arguments), expected);

    let (y, x, f) = (noise(&[33], 1), noise(&[33], 2), noise(&[1], 3));
    let sums = floats(&y).iter().zip(floats(&x)).map(|(y, x)| floats(&f)[0].mul_add(*x, *y));
    let expected: Vec<u32> = sums.map(f32::to_bits).collect();
    let arrays = [y.clone(), x.clone(), f.clone()].map(Argument::Array);
    let arguments = arrays.into_iter().chain([size(33)]).collect();
    assert_eq!(result("saxpy", arguments), expected);
}

#[test]
fn bounds_steps_and_integers() {
    let n = 7;
    let mut expected = vec![0; 64];
    for i in (0..8_i32).step_by(3) {
        for j in 1.max(i - 2)..n.min(i + 2) {
            expected[(i * 8 + j) as usize] = (i * 8 + j) / 2 % 5 - j % 2;
        }
    }
    let zeros = Array::zeros(Element::I32, &[8, 8]).unwrap();
    let arguments = vec![Argument::Array(zeros), Argument::Size(i64::from(n))];
    let after = try_run(NESTS, "counts", arguments).unwrap();
    let Argument::Array(found) = &after[0] else { panic!("an array") };
    assert_eq!(found.data(), DataRef::I32(&expected));
}

const OWN: &str = "%b = memref.alloc(%n) : memref<?xf32>\naffine.for %i = 0 to %n {
%0 = affine.load %b[%i + 1] : memref<?xf32>\n}";
const NEGATIVE: &str = "%m = arith.subi %n, %five : index\n%b = memref.alloc(%m) : memref<?xf32>";

#[test]
fn arrays_of_the_function_start_with_zeros() {
    let text = "func.func @f(%a: memref<?xf32>, %n: index) {
        %b = memref.alloca(%n) : memref<?xf32>
        affine.for %i = 0 to %n {
            %0 = affine.load %a[%i] : memref<?xf32>
            %1 = affine.load %b[%i] : memref<?xf32>
            affine.store %0, %b[%i] : memref<?xf32>
            affine.store %1, %a[%i] : memref<?xf32>
        }
        affine.for %i = 1 to %n {
            %0 = affine.load %b[%i] : memref<?xf32>
            affine.store %0, %a[%i - 1] : memref<?xf32>
        }
        memref.dealloc %b : memref<?xf32>
        return
    }";
    let cells = noise(&[4], 1);
    let after = try_run(text, "f", vec![Argument::Array(cells.clone()), size(4)]).unwrap();
    let Argument::Array(found) = &after[0] else { panic!("an array") };
    assert_eq!(floats(found), [&floats(&cells)[1..], &[0.0]].concat());
}

#[test]
fn faults_have_a_place_and_no_result() {
    let refused = |body: &str, shape: &[usize]| {
        let text = format!(
            "func.func @f(%a: memref<?xf32>, %n: index) {{\n%z = arith.constant 0 : \
             i32 %five = arith.constant 5 : index\n{body}\nreturn\n}}"
        );
        let arguments = vec![Argument::Array(noise(shape, 1)), Argument::Size(4)];
        try_run(&text, "f", arguments).unwrap_err()
    };
    let load = "affine.for %i = 0 to %n {\n%0 = affine.load %a[%i + 1] : memref<?xf32>\n}";
    for (body, shape, expected) in [
        (load, [4].as_slice(), "nests.mlir:4:6: affine.load: the index [4] is outside"),
        (load, [4, 4].as_slice(), "argument 0 is no memref<?xf32>"),
        ("%0 = arith.divsi %z, %z : i32", [4].as_slice(), "a division by zero"),
        ("memref.copy %a, %a : memref<?xf32> to memref<?xf32>", [4].as_slice(), "does not run it"),
        (OWN, [4].as_slice(), "nests.mlir:5:6: affine.load: the index [4] is outside"),
        (NEGATIVE, [4].as_slice(), "memref.alloc: an extent is negative"),
    ] {
        let error = refused(body, shape);
        assert!(error.contains(expected), "{error}");
    }
}
