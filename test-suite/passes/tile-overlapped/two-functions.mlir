// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-overlapped{tile=64 pyramid-height=3})' | FileCheck %s
// The 1-D example of two functions in section 4.2 of Holewinski, Pouchet, Sadayappan, with a time
// tile of three steps. With a tile of length l at x, the paper finds for the first step
// A: from x - 2, length l + 5, which is lower -2 and upper 3 here, and
// B: from x - 2, length l + 4, which is lower -2 and upper 2.

// CHECK-DAG: #[[first:.+]] = affine_map<()[s0] -> (1)>
// CHECK-DAG: #[[last:.+]] = affine_map<()[s0] -> (s0 - 2)>
// CHECK-DAG: #[[three:.+]] = affine_map<()[s0, s1] -> (s1 floordiv 3)>
// CHECK-DAG: #[[two:.+]] = affine_map<()[s0, s1] -> (((s1 mod 3) floordiv 2) mod 2)>
// CHECK-DAG: #[[one:.+]] = affine_map<()[s0, s1] -> ((s1 mod 3) mod 2)>
#first = affine_map<()[n] -> (1)>
#last = affine_map<()[n] -> (n - 2)>
module @two attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (6)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @fa(%w: f32 {stencil.read = @B, stencil.offset = array<i64: -1>}, %c: f32 {stencil.read = @B, stencil.offset = array<i64: 0>}) -> f32 {
    %r = arith.addf %w, %c : f32
    return %r : f32
  }
  func.func private @fb(%c: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}, %e: f32 {stencil.read = @A, stencil.offset = array<i64: 1>}) -> f32 {
    %r = arith.addf %c, %e : f32
    return %r : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @fa, lower = #first, upper = #last}]} : () -> ()
  "stencil.apply"() {updates = [@B], pieces = [{function = @fb, lower = #first, upper = #last}]} : () -> ()
}

// CHECK: func.func @two_3() attributes {tiled.per_thread = array<i64: 4>, tiled.steps = 3 : i64, tiled.strategy = "block", tiled.tile = array<i64: 64>}
// A is loaded as far as it is computed, for the cells that no piece covers.
// CHECK-NEXT: %[[a0:.+]] = "tiled.load"() {field = @A, lower = array<i64: -2>, upper = array<i64: 3>}
// CHECK-NEXT: %[[b0:.+]] = "tiled.load"() {field = @B, lower = array<i64: -3>, upper = array<i64: 3>}
// CHECK-NEXT: %[[a1:.+]] = "tiled.apply"(%[[a0]], %[[b0]]) {lower = array<i64: -2>, pieces = [{function = @fa, lower = #[[first]], upper = #[[last]]}], reads = [@A, @B], step = 0 : i64, updates = [@A], upper = array<i64: 3>}
// CHECK-NEXT: %[[b1:.+]] = "tiled.apply"(%[[a1]], %[[b0]]) {lower = array<i64: -2>, pieces = [{function = @fb, {{.*}}step = 0 : i64, updates = [@B], upper = array<i64: 2>}
// CHECK-NEXT: %[[a2:.+]] = "tiled.apply"(%[[a1]], %[[b1]]) {lower = array<i64: -1>, {{.*}}step = 1 : i64, updates = [@A], upper = array<i64: 2>}
// CHECK-NEXT: %[[b2:.+]] = "tiled.apply"(%[[a2]], %[[b1]]) {lower = array<i64: -1>, {{.*}}step = 1 : i64, updates = [@B], upper = array<i64: 1>}
// The last step: A from x, length l + 1; B is the tile itself.
// CHECK-NEXT: %[[a3:.+]] = "tiled.apply"(%[[a2]], %[[b2]]) {lower = array<i64: 0>, {{.*}}step = 2 : i64, updates = [@A], upper = array<i64: 1>}
// CHECK-NEXT: %[[b3:.+]] = "tiled.apply"(%[[a3]], %[[b2]]) {lower = array<i64: 0>, {{.*}}step = 2 : i64, updates = [@B], upper = array<i64: 0>}
// CHECK-NEXT: "tiled.store"(%[[a3]]) {field = @A}
// CHECK-NEXT: "tiled.store"(%[[b3]]) {field = @B}
// CHECK-NEXT: return
// CHECK: func.func @two_2()
// CHECK: func.func @two_1()
// CHECK: "tiled.repeat"() {count = #[[three]], kernels = [@two_3]}
// CHECK: "tiled.repeat"() {count = #[[two]], kernels = [@two_2]}
// CHECK: "tiled.repeat"() {count = #[[one]], kernels = [@two_1]}
// CHECK-NOT: stencil.apply
