//! Counts worked out by hand.

use super::*;
use crate::analysis::iteration_space;
use melior::ir::Module;
use stencil_dialects::mlir;

/// Bytes loaded and stored by blocks of four threads of a kernel. `%i` is the number of a thread in
/// the grid, `%t` in its block; `%n` is 7.
fn moved(body: &str, blocks: u32, most_work: u64) -> Counted {
    counted(body, iteration_space::of, ([blocks, 1, 1], [4, 1, 1]), most_work)
}

/// What the warps of all blocks execute.
fn executed(body: &str, grid: [u32; 3], block: [u32; 3]) -> Executed {
    counted(body, iteration_space::of_work, (grid, block), u64::MAX).executed
}

fn counted(
    body: &str,
    read: fn(mlir::Op) -> Space,
    (grid, block): ([u32; 3], [u32; 3]),
    most_work: u64,
) -> Counted {
    let text = format!(
        "gpu.module @m {{ gpu.func @k(%a: memref<?xf32>, %b: memref<?xf64>, %n: index, %x: f32,\n\
         %s: memref<?xf64, #gpu.address_space<workgroup>>, %s0: memref<f32>) kernel {{\n\
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
    let space = read(kernel);
    let arguments = [None, None, Some(7), None, None, None];
    let extents = Extents { grid, block, arguments: &arguments };
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

#[test]
fn warps_execute_what_one_of_their_lanes_does() {
    // Threads 0 to 6 of eight, in two blocks of four: a guarded product of a loaded value.
    let body = "%in = arith.cmpi slt, %i, %n : index\nscf.if %in {\n\
                %v = memref.load %a[%i] : memref<?xf32>\n%w = arith.mulf %v, %v : f32\n\
                memref.store %w, %a[%i] : memref<?xf32> }";
    let found = executed(body, [2, 1, 1], [4, 1, 1]);
    // A branch, and in it two accesses of three instructions and a product.
    let each = 1.0 + 2.0 * 3.0 + 1.0;
    assert_eq!((found.total.instructions, found.total.single), (2.0 * each, 2.0));
    assert_eq!(found.longest.instructions, 2.0 * each);
    // The last lane takes the branch alone.
    assert_eq!(found.lanes, 8.0 + 7.0 * (each - 1.0));
    assert_eq!((found.branches, found.divergent), (2.0, 1.0));
    // 16 and 12 bytes are a sector of each block.
    assert_eq!(found.sectors[&Some(0)], [2.0, 2.0]);
    assert_eq!(found.ideal, 4.0);
}

#[test]
fn sectors_are_those_of_the_lanes_addresses() {
    let of = |body: &str| executed(body, [1, 1, 1], [64, 1, 1]).sectors[&Some(0)][0];
    let load = |index: &str| format!("%v = memref.load %a[{index}] : memref<?xf32>");
    // Two warps of 128 bytes; of one element; of every 32nd byte.
    assert_eq!(of(&load("%i")), 8.0);
    assert_eq!(of(&load("%n")), 2.0);
    let far =
        format!("%c8 = arith.constant 8 : index\n%f = arith.muli %i, %c8 : index\n{}", load("%f"));
    assert_eq!(of(&far), 64.0);
    // Rows of 7 elements: a column of 32 of them touches as many sectors, less those that two
    // neighbouring rows share.
    let rows = "%m = memref.reinterpret_cast %s0 to offset: [0], sizes: [%n, %n], strides: [%n, 1] \
                : memref<f32> to memref<?x?xf32, strided<[?, 1]>>\n\
                %v = memref.load %m[%i, %c0] : memref<?x?xf32, strided<[?, 1]>>";
    let text = executed(rows, [1, 1, 1], [32, 1, 1]);
    // Byte 28 t of thread t: sectors 0 to 27 of 868 bytes. Side by side they would fill four.
    assert_eq!((text.sectors[&Some(5)], text.ideal), ([28.0, 0.0], 4.0));
}

#[test]
fn loops_count_their_iterations_and_waits() {
    let load = "%v = memref.load %a[%k] : memref<?xf32>";
    let repeat = |last: &str, inner: &str| {
        executed(
            &format!("scf.for %k = %c0 to {last} step %c1 {{\n{inner}\n}}"),
            [1, 1, 1],
            [32, 1, 1],
        )
    };
    // Seven iterations of a counter and a load. Those of an unrolled loop have no counter.
    let found = repeat("%n", load);
    assert_eq!((found.total.instructions, found.total.fetches), (7.0 * (8.0 + 3.0), 7.0));
    let found = repeat("%c3", load);
    assert_eq!((found.total.instructions, found.total.fetches), (3.0 * 3.0, 0.0));
    // Without a load the iterations wait for each other.
    let found = repeat("%n", "%w = arith.mulf %x, %x : f32");
    assert_eq!((found.total.single, found.total.rounds, found.total.fetches), (7.0, 7.0, 0.0));
    // Sixteen of 700 iterations stand for all.
    let long = format!(
        "%c100 = arith.constant 100 : index\n%all = arith.muli %n, %c100 : index\n\
                        scf.for %k = %c0 to %all step %c1 {{\n{load}\n}}"
    );
    let found = executed(&long, [1, 1, 1], [32, 1, 1]);
    assert!((found.total.instructions - 7700.0).abs() < 1e-6, "{found:?}");
    assert!((found.sectors[&Some(0)][0] - 700.0).abs() < 1e-6, "{found:?}");
    assert!((found.ideal - 700.0).abs() < 1e-6, "{found:?}");
}
