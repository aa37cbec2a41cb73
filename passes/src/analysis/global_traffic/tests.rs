//! Counts worked out by hand.

use super::*;
use crate::analysis::iteration_space;
use melior::ir::Module;
use stencil_dialects::mlir;

/// Bytes loaded and stored by blocks of four threads of a kernel. `%i` is the number of a thread in
/// the grid, `%t` in its block; `%n` is 7.
fn moved(body: &str, blocks: u32, most_work: u64) -> Counted {
    let text = format!(
        "gpu.module @m {{ gpu.func @k(%a: memref<?xf32>, %b: memref<?xf64>, %n: index, %x: f32,\n\
         %s: memref<?xf64, #gpu.address_space<workgroup>>) kernel {{\n\
         %c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n\
         %c2 = arith.constant 2 : index\n%c3 = arith.constant 3 : index\n\
         %t = gpu.thread_id x\n%block = gpu.block_id x\n%threads = gpu.block_dim x\n\
         %first = arith.muli %block, %threads : index\n%i = arith.addi %first, %t : index\n\
         {body}\ngpu.return }} }}"
    );
    let context = stencil_dialects::context().unwrap();
    let module = Module::parse(&context, &text).unwrap();
    let kernels = mlir::walk(mlir::module_op(&module));
    let kernel = kernels.into_iter().find(|op| mlir::name(*op) == "gpu.func").unwrap();
    let space = iteration_space::of(kernel);
    let arguments = [None, None, Some(7), None, None];
    let extents = Extents { grid: [blocks, 1, 1], block: [4, 1, 1], arguments: &arguments };
    of(&space, &extents, most_work)
}

fn bytes(body: &str) -> [u64; 2] {
    let counted = moved(body, 2, u64::MAX);
    assert!(!counted.is_estimate);
    [counted.moved.loaded, counted.moved.stored]
}

#[test]
fn threads_outside_of_a_condition_move_nothing() {
    let guarded =
        |inner: &str| format!("%in = arith.cmpi slt, %i, %n : index\nscf.if %in {{\n{inner}\n}}");
    // Seven of eight threads, four bytes each.
    let copy = "%v = memref.load %a[%i] : memref<?xf32>\nmemref.store %v, %a[%i] : memref<?xf32>";
    assert_eq!(bytes(&guarded(copy)), [28, 28]);
    // Thread t takes t turns: 0 + 1 + 2 + 3 and 0 + 1 + 2, eight bytes each.
    let turns = "scf.for %k = %c0 to %t step %c1 { %v = memref.load %b[%k] : memref<?xf64> }";
    assert_eq!(bytes(&guarded(turns)), [72, 0]);
    // The sizes of a memref that the kernel made.
    let shape = "%m = memref.reinterpret_cast %a to offset: [0], sizes: [%n, 3], strides: [3, 1] : \
                 memref<?xf32> to memref<?x3xf32, strided<[3, 1]>>\n\
                 %rows = memref.dim %m, %c0 : memref<?x3xf32, strided<[3, 1]>>\n\
                 %columns = memref.dim %m, %c1 : memref<?x3xf32, strided<[3, 1]>>\n\
                 %cells = arith.muli %rows, %columns : index\n\
                 scf.for %k = %c0 to %cells step %c1 {\n\
                 %v = memref.load %a[%k] : memref<?xf32> }";
    assert_eq!(bytes(shape), [8 * 21 * 4, 0]);
    // Shared memory is not counted.
    let shared = "%v = memref.load %s[%i] : memref<?xf64, #gpu.address_space<workgroup>>";
    assert_eq!(bytes(&guarded(shared)), [0, 0]);
    // A vector is all of its elements.
    let vector = "%v = vector.load %a[%i] : memref<?xf32>, vector<4xf32>";
    assert_eq!(bytes(&guarded(vector)), [112, 0]);
}

#[test]
fn iterations_differ_by_their_number_and_by_what_they_hand_on() {
    // Turns 0 and 2 of 0, 1, 2 by eight threads.
    let even = "scf.for %k = %c0 to %c3 step %c1 {\n%odd = arith.remui %k, %c2 : index\n\
                %is = arith.cmpi eq, %odd, %c0 : index\n\
                scf.if %is { %v = memref.load %b[%k] : memref<?xf64> } }";
    assert_eq!(bytes(even), [2 * 8 * 8, 0]);
    // 1, 2, 4, 8 after three turns; the value after the loop bounds another one.
    let doubled = "%last = scf.for %k = %c0 to %c3 step %c1 iter_args(%j = %c1) -> (index) {\n\
                   %twice = arith.addi %j, %j : index\nscf.yield %twice : index }\n\
                   scf.for %k = %c0 to %last step %c2 {\n\
                   %v = memref.load %a[%k] : memref<?xf32> }";
    assert_eq!(bytes(doubled), [4 * 8 * 4, 0]);
    // Threads that take fewer turns keep what they have: thread t comes to 2 to the power of t.
    let each = doubled.replace("%k = %c0 to %c3", "%k = %c0 to %t").replace("step %c2", "step %c1");
    assert_eq!(bytes(&each), [2 * (1 + 2 + 4 + 8) * 4, 0]);
}

#[test]
fn the_larger_side_of_a_condition_on_data_counts() {
    let body = "%v = memref.load %a[%i] : memref<?xf32>\n%is = arith.cmpf olt, %v, %x : f32\n\
                scf.if %is { %w = memref.load %a[%i] : memref<?xf32> }\n\
                else { %w = memref.load %b[%i] : memref<?xf64> }";
    assert_eq!(bytes(body), [8 * 4 + 8 * 8, 0]);
}

#[test]
fn some_blocks_stand_for_all() {
    let body = "%v = memref.load %a[%i] : memref<?xf32>";
    let counted = moved(body, 1000, 0);
    assert!(counted.is_estimate);
    assert_eq!(counted.moved, Moved { loaded: 1000 * 4 * 4, stored: 0 });
    // All numbers come once, whatever the stride.
    for all in 1..200 {
        let numbers: std::collections::BTreeSet<u64> =
            (0..all).map(|number| number * stride(all) % all).collect();
        assert_eq!(numbers.len() as u64, all);
    }
}
