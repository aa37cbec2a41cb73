//! Tests of what a launch can share: homes of accesses, extents of copies.

use super::*;
use crate::affine::lower_affine_nest::with_launches;

/// Acts on what the first launch of a function can share.
fn shared<R>(text: &str, act: impl FnOnce(&Function, Result<Tileable, String>) -> R) -> R {
    let context = stencil_dialects::context().unwrap();
    let module = mlir::parse_module(&context, text, "nest.mlir").unwrap();
    with_launches(&module, |function, phases| {
        Ok(act(function, of(function, &phases[0].launches[0])))
    })
    .unwrap()
}

const WINDOW: &str = "func.func @window(%o: memref<?x?xf32> {stencil.name = \"O\"}, \
     %a: memref<?x?xf32> {stencil.name = \"A\"}, %w: memref<3x3xf32> {stencil.name = \"W\"}, \
     %b: memref<?x?xf32> {stencil.name = \"B\"}, \
     %n: index {stencil.name = \"N\"}, %m: index {stencil.name = \"M\"}) {
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      affine.for %k = 0 to 3 {
        affine.for %l = 0 to 3 {
          %0 = affine.load %o[%i, %j] : memref<?x?xf32>
          %1 = affine.load %a[%i + %k + 2, %j - %l + 5] : memref<?x?xf32>
          %2 = affine.load %a[%i + %k, %j - %l + 7] : memref<?x?xf32>
          %3 = affine.load %w[%k, %l] : memref<3x3xf32>
          %4 = affine.load %b[%i, %j] : memref<?x?xf32>
          %5 = arith.mulf %1, %2 : f32
          %6 = arith.mulf %5, %3 : f32
          %7 = arith.divf %6, %4 : f32
          %8 = arith.addf %0, %7 : f32
          affine.store %8, %o[%i, %j] : memref<?x?xf32>
        }
      }
    }
  }
  return
}";

#[test]
fn references_that_differ_by_constants_share_a_copy() {
    shared(WINDOW, |function, found| {
        let found = found.unwrap();
        let [of] = &found.loops[..] else { panic!("one loop in time") };
        assert_eq!(found.space, [0, 1]);
        assert!(of.uniform);
        let homes: Vec<&Home> = of.homes.values().collect();
        let sum = Home::Register(0);
        let expected = [
            &sum,
            &Home::Copied(0, vec![2, 0]),
            &Home::Copied(0, vec![0, 2]),
            &Home::Copied(1, vec![0, 0]),
            &Home::Register(1),
            &sum,
        ];
        assert_eq!(homes, expected);
        let stored: Vec<bool> = of.registers.iter().map(|register| register.stored).collect();
        assert_eq!(stored, [true, false]);
        // Blocks of 8 x 32 iterations and a whole window: (8 + 2 + 2) x (32 + 2 + 2) cells.
        let values = |at: usize| [8, 32, 3, 3].get(at).copied();
        assert_eq!(of.copies[0].extents(function.nest, values), Some(vec![12, 36]));
        assert_eq!(of.copies[1].extents(function.nest, values), Some(vec![3, 3]));
        assert_eq!((of.trips(function.nest), of.within.get(&3)), (Some(3), Some(&Some((0, 2)))));
        assert!(of.copies[0].depends_on(function.nest, 1));
        assert!(!of.copies[1].depends_on(function.nest, 1));
    });
}

#[test]
fn loops_that_may_be_empty_and_stored_arrays_share_less() {
    // The loop within may have no iteration, so that the element of O may not be accessed at all.
    let open = WINDOW.replace("%l = 0 to 3", "%l = 0 to %m").replace("%w[%k, %l]", "%w[%k, %k]");
    shared(&open, |_, found| {
        let found = found.unwrap();
        let homes: Vec<bool> =
            found.loops[0].homes.values().map(|home| *home == Home::Memory).collect();
        assert_eq!(homes, [true, true, true, false, false, true]);
        assert!(!found.loops[0].uniform && found.loops[0].registers.is_empty());
    });
    let reason = |text: &str| shared(text, |_, found| found.map(|_| ()).unwrap_err());
    let stored = WINDOW.replace("affine.store %8, %o[%i, %j]", "affine.store %8, %a[%i, %j]");
    assert!(shared(&stored, |_, found| found.is_err()));
    let stepped = WINDOW.replacen("%k = 0 to 3", "%k = 0 to 3 step 2", 1);
    assert_eq!(reason(&stepped), "its loop in time has a step");
}

#[test]
fn arrays_that_the_loop_names_are_not_copied() {
    // A depends on the thread, and O is stored to.
    let text = WINDOW
        .replace("  }\n  return", "  } {tiled.nest_constants = [\"A\", \"O\", \"W\"]}\n  return");
    assert_ne!(text, WINDOW);
    let homes = |text: &str| {
        shared(text, |_, found| {
            let found = found.unwrap();
            let of = &found.loops[0];
            (of.homes.values().cloned().collect::<Vec<_>>(), of.copies.len(), of.uniform)
        })
    };
    let (all, copies, uniform) = homes(&text);
    assert_eq!((&all[3], copies, uniform), (&Home::Constant, 1, true));
    assert_eq!(all[1], Home::Copied(0, vec![2, 0]));
    assert_eq!(all[0], Home::Register(0));
    // A thread without work must not read beyond the array.
    let (all, copies, _) = homes(&text.replace("memref<3x3xf32>", "memref<3x2xf32>"));
    assert_eq!((&all[3], copies), (&Home::Copied(1, vec![0, 0]), 2));
}
