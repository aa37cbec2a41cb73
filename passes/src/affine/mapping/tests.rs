//! The mappings of small nests, among them those that the paper derives by hand (section 5.3).

use super::*;
use crate::affine::dependences;
use stencil_dialects::mlir;

/// The mappings of the function of a module, and its dependences in words.
fn mapped(text: &str) -> (Nest, Vec<Vec<Mapping>>) {
    let context = stencil_dialects::context().unwrap();
    let module = mlir::parse_module(&context, text, "nest.mlir").unwrap();
    let function = mlir::operations(mlir::body(&module))[0];
    let nest = Nest::read(function).unwrap();
    let mappings = of_each_root(&nest);
    (nest, mappings)
}

/// The schedules of each outermost loop.
fn of_each_root(nest: &Nest) -> Vec<Vec<Mapping>> {
    let dependences = dependences::of(nest).unwrap();
    let root = |at: usize| nest.statements[at].loops.first().copied();
    let roots: BTreeSet<usize> = (0..nest.statements.len()).filter_map(root).collect();
    let of_root = |wanted: usize| {
        let inside = (0..nest.statements.len()).filter(|at| root(*at) == Some(wanted)).collect();
        of_part(nest, &dependences, inside, 0, Settings::default())
    };
    roots.into_iter().map(of_root).collect()
}

fn best(text: &str) -> Mapping {
    mapped(text).1[0][0].clone()
}

fn error(text: &str) -> String {
    let context = stencil_dialects::context().unwrap();
    let module = mlir::parse_module(&context, text, "nest.mlir").unwrap();
    Nest::read(mlir::operations(mlir::body(&module))[0]).unwrap_err().to_string()
}

/// `x[i] = 0` and `x[i] += a[..] * y[j]`; the loops are i (0) and j (1), the buffers `x`, `a` and
/// `y` are 0, 1 and 2.
fn matrix_vector(index: &str) -> String {
    format!(
        "func.func @f(%x: memref<?xf32>, %a: memref<?x?xf32>, %y: memref<?xf32>, %n: index) {{
           %zero = arith.constant 0.0 : f32
           affine.for %i = 0 to %n {{
             affine.store %zero, %x[%i] : memref<?xf32>
             affine.for %j = 0 to %n {{
               %0 = affine.load %x[%i] : memref<?xf32>
               %1 = affine.load %a[{index}] : memref<?x?xf32>
               %2 = affine.load %y[%j] : memref<?xf32>
               %3 = arith.mulf %1, %2 : f32
               %4 = arith.addf %0, %3 : f32
               affine.store %4, %x[%i] : memref<?xf32>
             }}
           }}
           return
         }}"
    )
}

fn buffer(array: usize, [copied, constant, register]: [bool; 3]) -> Buffer {
    Buffer { array, copied, constant, register }
}

#[test]
fn the_transposed_product_with_a_vector_is_coalesced() {
    // The paper: theta_T = j, pi_T = i, `a` is read in place.
    let found = best(&matrix_vector("%j, %i"));
    assert_eq!((found.time.as_slice(), found.space.as_slice()), ([1].as_slice(), [0].as_slice()));
    assert!(!found.communicates);
    // The second reference of the second statement.
    assert_eq!(found.coalesced, [(1, 1)]);
    assert_eq!(
        found.buffers,
        [
            buffer(0, [true, false, true]),
            buffer(1, [false, false, false]),
            buffer(2, [true, true, false]),
        ]
    );
}

#[test]
fn the_product_with_a_vector_falls_back_and_copies_the_matrix() {
    // The paper: theta_Q = i would be needed and does not preserve the dependences of `x`, so
    // that theta_Q = j and pi_Q = i are left, and `a` is copied.
    let (_, all) = mapped(&matrix_vector("%i, %j"));
    assert!(all[0].iter().all(|mapping| mapping.coalesced.is_empty()));
    let found = &all[0][0];
    assert_eq!((found.time.as_slice(), found.space.as_slice()), ([1].as_slice(), [0].as_slice()));
    assert!(found.buffers[1].copied);
    // With the loop over i as time, no schedule is legal but that of the text.
    assert!(all[0].iter().all(|mapping| mapping.time.contains(&1)));
}

#[test]
fn a_loop_order_of_another_kind_has_the_same_mapping() {
    // The loops of the transposed product exchanged: j (1) is outside, and x is set before.
    let text =
        "func.func @f(%x: memref<?xf32>, %a: memref<?x?xf32>, %y: memref<?xf32>, %n: index) {
        affine.for %j = 0 to %n {
          affine.for %i = 0 to %n {
            %0 = affine.load %x[%i] : memref<?xf32>
            %1 = affine.load %a[%j, %i] : memref<?x?xf32>
            %2 = affine.load %y[%j] : memref<?xf32>
            %3 = arith.mulf %1, %2 : f32
            %4 = arith.addf %0, %3 : f32
            affine.store %4, %x[%i] : memref<?xf32>
          }
        }
        return
      }";
    let found = best(text);
    assert_eq!((found.time, found.space, found.coalesced), (vec![0], vec![1], vec![(0, 1)]));
}

#[test]
fn a_product_of_matrices_sums_in_time_and_goes_along_rows() {
    let text =
        "func.func @f(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>, %n: index) {
        affine.for %i = 0 to %n {
          affine.for %j = 0 to %n {
            affine.for %k = 0 to %n {
              %0 = affine.load %c[%i, %j] : memref<?x?xf32>
              %1 = affine.load %a[%i, %k] : memref<?x?xf32>
              %2 = affine.load %b[%k, %j] : memref<?x?xf32>
              %3 = arith.mulf %1, %2 : f32
              %4 = arith.addf %0, %3 : f32
              affine.store %4, %c[%i, %j] : memref<?x?xf32>
            }
          }
        }
        return
      }";
    let found = best(text);
    // All three buffers have reuse; of the two parallel loops, j goes along the rows of b and c.
    assert_eq!((found.time.clone(), found.space.clone()), (vec![2], vec![0, 1]));
    assert_eq!(found.x, [1]);
    assert!(found.coalesced.is_empty() && !found.communicates);
    assert!(found.buffers.iter().all(|buffer| buffer.copied && !buffer.constant));
    assert_eq!(found.buffers.iter().map(|b| b.register).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn a_sum_of_vectors_is_all_space() {
    let text = "func.func @f(%a: memref<1xf32>, %x: memref<?xf32>, %y: memref<?xf32>, %n: index) {
        affine.parallel (%i) = (0) to (symbol(%n)) {
          %0 = affine.load %a[0] : memref<1xf32>
          %1 = affine.load %x[%i] : memref<?xf32>
          %2 = affine.load %y[%i] : memref<?xf32>
          %3 = arith.mulf %0, %1 : f32
          %4 = arith.addf %3, %2 : f32
          affine.store %4, %y[%i] : memref<?xf32>
        }
        return
      }";
    let found = best(text);
    assert_eq!((found.time.as_slice(), found.space.as_slice()), ([].as_slice(), [0].as_slice()));
    assert_eq!(found.coalesced, [(0, 1), (0, 2), (0, 3)]);
    // All threads read the factor.
    assert!(found.buffers[0].constant && found.buffers[0].copied && !found.buffers[1].copied);
}

#[test]
fn steps_of_a_stencil_meet_and_read_neighbours_from_shared_memory() {
    let text = "func.func @f(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %n: index, %t: index) {
        affine.for %s = 0 to %t {
          affine.for %i = 1 to affine_map<()[n] -> (n - 1)>()[%n] {
            affine.for %j = 1 to affine_map<()[n] -> (n - 1)>()[%n] {
              %0 = affine.load %a[%i - 1, %j] : memref<?x?xf32>
              %1 = affine.load %a[%i + 1, %j] : memref<?x?xf32>
              %2 = affine.load %a[%i, %j - 1] : memref<?x?xf32>
              %3 = affine.load %a[%i, %j + 1] : memref<?x?xf32>
              %4 = arith.addf %0, %1 : f32
              %5 = arith.addf %2, %3 : f32
              %6 = arith.addf %4, %5 : f32
              affine.store %6, %b[%i, %j] : memref<?x?xf32>
            }
          }
          affine.for %i = 1 to affine_map<()[n] -> (n - 1)>()[%n] {
            affine.for %j = 1 to affine_map<()[n] -> (n - 1)>()[%n] {
              %0 = affine.load %b[%i, %j] : memref<?x?xf32>
              affine.store %0, %a[%i, %j] : memref<?x?xf32>
            }
          }
        }
        return
      }";
    let (_, all) = mapped(text);
    let found = &all[0][0];
    // The loops i and j of both statements are threads, which meet after each of the two.
    assert_eq!((found.time.clone(), found.space.clone()), (vec![0], vec![1, 2, 3, 4]));
    assert_eq!(found.x, [2, 4]);
    assert!(found.communicates);
    // Both have reuse: each element of a is read four times, and all steps use both.
    assert!(found.buffers.iter().all(|buffer| buffer.copied));
}

#[test]
fn dependences_have_the_directions_of_their_loops() {
    let (nest, _) = mapped(&matrix_vector("%i, %j"));
    let found = dependences::of(&nest).unwrap();
    let words: Vec<String> = found
        .iter()
        .map(|found| {
            let signs = found.directions.iter().map(|direction| match direction {
                std::cmp::Ordering::Less => '<',
                std::cmp::Ordering::Equal => '=',
                std::cmp::Ordering::Greater => '>',
            });
            format!("{}-{} {}", found.source, found.target, signs.collect::<String>())
        })
        .collect();
    assert_eq!(words, ["0-1 =", "1-1 =<"]);
}

#[test]
fn triangles_and_strides_are_seen_by_their_bounds() {
    // a[i + n] is written and a[j], j < n, read: no element is both.
    let text = "func.func @f(%a: memref<?xf32>, %n: index) {
        affine.for %i = 0 to %n {
          %0 = affine.load %a[%i] : memref<?xf32>
          affine.store %0, %a[%i + symbol(%n)] : memref<?xf32>
        }
        return
      }";
    let (nest, all) = mapped(text);
    assert!(dependences::of(&nest).unwrap().is_empty());
    assert_eq!((all[0][0].time.len(), all[0][0].space.as_slice()), (0, [0].as_slice()));
    // Even and odd elements; neighbouring threads access every second one.
    let text = "func.func @f(%a: memref<?xf32>, %n: index) {
        affine.for %i = 0 to %n {
          %0 = affine.load %a[2 * %i] : memref<?xf32>
          affine.store %0, %a[2 * %i + 1] : memref<?xf32>
        }
        return
      }";
    let (nest, all) = mapped(text);
    assert!(dependences::of(&nest).unwrap().is_empty());
    assert!(all[0][0].coalesced.is_empty() && all[0][0].buffers[0].copied);
    // A recurrence is time alone.
    let text = "func.func @f(%a: memref<?xf32>, %n: index) {
        affine.for %i = 1 to %n {
          %0 = affine.load %a[%i - 1] : memref<?xf32>
          affine.store %0, %a[%i] : memref<?xf32>
        }
        return
      }";
    assert!(mapped(text).1[0].iter().all(|mapping| mapping.space.is_empty()));
}

#[test]
fn a_load_outside_of_a_loop_belongs_to_the_stores_inside() {
    // `a[i]` depends on `a[i - 1]` by a value that is loaded in the outer loop.
    let text = "func.func @f(%a: memref<?xf32>, %b: memref<?x?xf32>, %n: index) {
        affine.for %i = 1 to %n {
          %0 = affine.load %a[%i - 1] : memref<?xf32>
          affine.for %j = 0 to %n {
            affine.store %0, %a[%i] : memref<?xf32>
          }
        }
        return
      }";
    let (_, all) = mapped(text);
    assert!(!all[0].is_empty() && all[0].iter().all(|mapping| !mapping.space.contains(&0)));
}

#[test]
fn elements_at_several_indices_lie_in_no_register() {
    let text = "func.func @f(%a: memref<?xf32>, %b: memref<?xf32>, %n: index) {
        affine.for %i = 1 to %n {
          %0 = affine.load %a[%i - 1] : memref<?xf32>
          %1 = affine.load %a[%i + 1] : memref<?xf32>
          %2 = arith.addf %0, %1 : f32
          affine.store %2, %b[%i] : memref<?xf32>
        }
        return
      }";
    let found = best(text);
    assert_eq!(found.space, [0]);
    assert_eq!(found.buffers.iter().map(|b| b.register).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn nests_that_are_not_affine_are_refused_with_a_remedy() {
    let nest =
        |body: &str| format!("func.func @f(%a: memref<?xf32>, %n: index) {{\n{body}\nreturn\n}}");
    for (body, expected) in [
        (
            "affine.for %i = 0 to %n { %c = affine.apply affine_map<(i) -> (i mod 3)>(%i)\n%0 = \
             affine.load %a[%c] : memref<?xf32> }",
            "remove divisions and remainders",
        ),
        (
            "affine.for %i = 0 to %n { %0 = affine.load %a[%i mod 2] : memref<?xf32>\naffine.store \
             %0, %a[%i] : memref<?xf32> }",
            "a division or a remainder",
        ),
        (
            "%z = arith.constant 0.0 : f32\n%s = affine.for %i = 0 to %n iter_args(%c = %z) -> f32 \
             { affine.yield %c : f32 }",
            "keeps the value in an array",
        ),
        (
            "affine.parallel (%i, %j, %k, %l, %m, %o, %p) = (0, 0, 0, 0, 0, 0, 0) to (1, 1, 1, 1, \
             1, 1, 1) { }",
            "at most 6 loops deep",
        ),
        ("memref.copy %a, %a : memref<?xf32> to memref<?xf32>", "loops, loads and stores alone"),
    ] {
        let found = error(&nest(body));
        assert!(found.contains(expected) && found.contains("nest.mlir:"), "{found}");
    }
}

/// Between constants the last value is known, so that 0, 3 and 6 leave no cell of seven.
#[test]
fn a_step_moves_the_last_value() {
    let text = "func.func @f(%a: memref<?xf32>, %n: index) {\naffine.for %i = 0 to 9 step 3 { }\n\
                affine.for %i = 0 to %n step 3 { }\nreturn\n}";
    let (nest, _) = mapped(text);
    let last = |at: usize| nest.loops[at].bounds[1].constant;
    assert_eq!((nest.loops[0].step, last(0), last(1)), (3, 6, -1));
}

#[test]
fn ranks_by_elimination() {
    for (matrix, expected) in [
        (vec![vec![1, 0], vec![0, 1]], 2),
        (vec![vec![2, 4], vec![3, 6]], 1),
        (vec![vec![0, 0]], 0),
        (vec![vec![1, 1, 0], vec![0, 1, 1], vec![1, 0, -1]], 2),
        (Vec::new(), 0),
    ] {
        assert_eq!(rank(matrix.clone()), expected, "{matrix:?}");
    }
}

/// Six loops around statements whose indices are sums. `factors` gives those of a statement.
fn sums(statements: usize, factors: impl Fn(usize) -> [usize; 3]) -> Option<usize> {
    let mut text = "func.func @f(%a: memref<?x?x?xf32>, %n: index) {\n".to_owned();
    text += &(0..6).map(|at| format!("affine.for %i{at} = 0 to %n {{\n")).collect::<String>();
    for at in 0..statements {
        let [p, q, r] = factors(at);
        let index = format!("%i0 + {p} * %i3, %i1 + {q} * %i4, %i2 + {r} * %i5 +");
        let next = (at * 7 + 3) % statements;
        text += &format!(
            "%v{at} = affine.load %a[{index} {at}] : memref<?x?x?xf32>\n\
             affine.store %v{at}, %a[{index} {next}] : memref<?x?x?xf32>\n"
        );
    }
    text += &"}\n".repeat(6);
    let context = stencil_dialects::context().unwrap();
    let module = mlir::parse_module(&context, &(text + "return\n}"), "nest.mlir").unwrap();
    let nest = Nest::read(mlir::operations(mlir::body(&module))[0]).unwrap();
    dependences::of(&nest).map(|found| found.len())
}

#[test]
fn the_search_for_dependences_has_an_end() {
    // References that differ by constants alone share their tests.
    assert!(sums(64, |_| [2, 3, 2]).is_some());
    assert_eq!(sums(14, |at| [at * 5 % 7 + 1, at * 5 % 7 + 2, at * 5 % 7 + 3]), None);
}
