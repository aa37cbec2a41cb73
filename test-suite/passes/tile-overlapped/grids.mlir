// RUN: stencil-opt %s --split-input-file --pass-pipeline='builtin.module(tile-overlapped{strategy=block})' | FileCheck %s
// Which applies share a kernel, where their fields lie on several grids.

// Grids that differ by a rim are tiled together, and several steps a launch.
// CHECK-LABEL: module @staggered
// CHECK: func.func @staggered_8() attributes {tiled.per_thread = array<i64: 4>, tiled.steps = 8 : i64
// CHECK: "tiled.load"() {field = @E, lower = array<i64: -7>, upper = array<i64: 8>}
// CHECK: "tiled.load"() {field = @H, lower = array<i64: -8>, upper = array<i64: 8>}
// CHECK: "tiled.repeat"() {{.*}}kernels = [@staggered_8]
module @staggered attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (8)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n)>} : () -> ()
  "stencil.grid"() {sym_name = "I", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "E", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "H", grid = @I, type = f32, role = "state"} : () -> ()
  func.func private @e(%e: f32 {stencil.read = @E, stencil.offset = array<i64: 0>}, %w: f32 {stencil.read = @H, stencil.offset = array<i64: -1>}, %n: f32 {stencil.read = @H, stencil.offset = array<i64: 0>}) -> f32 {
    %d = arith.subf %n, %w : f32
    %r = arith.addf %e, %d : f32
    return %r : f32
  }
  func.func private @h(%h: f32 {stencil.read = @H, stencil.offset = array<i64: 0>}, %e: f32 {stencil.read = @E, stencil.offset = array<i64: 1>}, %n: f32 {stencil.read = @E, stencil.offset = array<i64: 0>}) -> f32 {
    %d = arith.subf %e, %n : f32
    %r = arith.addf %h, %d : f32
    return %r : f32
  }
  "stencil.apply"() {updates = [@E], pieces = [{function = @e, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
  "stencil.apply"() {updates = [@H], pieces = [{function = @h, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

// Grids of other sizes and ranks are not: the two functions on G share a kernel, those on H and I have
// theirs, and the last one ends the step.
// CHECK-LABEL: module @apart
// CHECK: func.func @apart_0() attributes {tiled.per_thread = array<i64: 4>, tiled.steps = 0 : i64
// CHECK-COUNT-2: "tiled.apply"
// CHECK: func.func @apart_1() attributes {tiled.per_thread = array<i64: 4>, tiled.steps = 0 : i64
// CHECK: func.func @apart_2() attributes {tiled.per_thread = array<i64: 4, 1>, tiled.steps = 1 : i64
// CHECK: "tiled.repeat"() {{.*}}kernels = [@apart_0, @apart_1, @apart_2]
// CHECK-NOT: tiled.repeat
module @apart attributes {stencil.params = ["N", "M"], stencil.steps = affine_map<()[n, m] -> (8)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n, m] -> (0)>, upper = affine_map<()[n, m] -> (n - 1)>} : () -> ()
  "stencil.grid"() {sym_name = "H", lower = affine_map<()[n, m] -> (0)>, upper = affine_map<()[n, m] -> (m - 1)>} : () -> ()
  "stencil.grid"() {sym_name = "I", lower = affine_map<()[n, m] -> (0, 0)>, upper = affine_map<()[n, m] -> (m - 1, n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @H, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "C", grid = @I, type = f32, role = "state"} : () -> ()
  func.func private @a(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 1>}) -> f32 {
    return %a : f32
  }
  func.func private @b(%b: f32 {stencil.read = @B, stencil.offset = array<i64: 1>}) -> f32 {
    return %b : f32
  }
  func.func private @c(%c: f32 {stencil.read = @C, stencil.offset = array<i64: 1, 0>}) -> f32 {
    return %c : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @a, lower = affine_map<()[n, m] -> (0)>, upper = affine_map<()[n, m] -> (n - 2)>}]} : () -> ()
  "stencil.apply"() {updates = [@A], pieces = [{function = @a, lower = affine_map<()[n, m] -> (1)>, upper = affine_map<()[n, m] -> (n - 2)>}]} : () -> ()
  "stencil.apply"() {updates = [@B], pieces = [{function = @b, lower = affine_map<()[n, m] -> (0)>, upper = affine_map<()[n, m] -> (m - 2)>}]} : () -> ()
  "stencil.apply"() {updates = [@C], pieces = [{function = @c, lower = affine_map<()[n, m] -> (0, 0)>, upper = affine_map<()[n, m] -> (m - 2, n - 1)>}]} : () -> ()
}
