// RUN: stencil-opt %s | stencil-opt | FileCheck %s
// Every operation of the tiled dialect, its type, and the attributes of a tile kernel are printed
// as they were read.

// CHECK-DAG: #[[first:.+]] = affine_map<()[s0] -> (1)>
// CHECK-DAG: #[[last:.+]] = affine_map<()[s0] -> (s0 - 2)>
// CHECK-DAG: #[[pairs:.+]] = affine_map<()[s0, s1] -> (s1 floordiv 2)>
#first = affine_map<()[n] -> (1)>
#last = affine_map<()[n] -> (n - 2)>

// CHECK: module @heat attributes {stencil.params = ["N"], {{.*}}tiled.index_width = 64 : i64}
module @heat attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (8)>, tiled.index_width = 64 : i64} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "K", grid = @G, type = f32, role = "const"} : () -> ()
  func.func private @heat(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>},
                          %e: f32 {stencil.read = @A, stencil.offset = array<i64: 1>},
                          %k: f32 {stencil.read = @K, stencil.offset = array<i64: 0>}) -> f32 {
    %s = arith.addf %w, %e : f32
    %r = arith.mulf %s, %k : f32
    return %r : f32
  }

  // CHECK: func.func @heat_2() attributes {tiled.per_thread = array<i64: 4>, tiled.steps = 2 : i64, tiled.strategy = "block", tiled.tile = array<i64: 64>}
  func.func @heat_2() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 4>, tiled.steps = 2 : i64} {
    // CHECK: %[[a:.+]] = "tiled.load"() {field = @A, lower = array<i64: -2>, upper = array<i64: 2>} : () -> !tiled.tile
    %a = "tiled.load"() {field = @A, lower = array<i64: -2>, upper = array<i64: 2>} : () -> !tiled.tile
    // CHECK: %[[k:.+]] = "tiled.load"() {field = @K,
    %k = "tiled.load"() {field = @K, lower = array<i64: -1>, upper = array<i64: 1>} : () -> !tiled.tile
    // CHECK: %[[u:.+]] = "tiled.apply"(%[[a]], %[[k]]) {lower = array<i64: -1>, pieces = [{function = @heat, lower = #[[first]], upper = #[[last]]}], reads = [@A, @K], step = 0 : i64, updates = [@A], upper = array<i64: 1>} : (!tiled.tile, !tiled.tile) -> !tiled.tile
    %u = "tiled.apply"(%a, %k) {reads = [@A, @K], updates = [@A], pieces = [{function = @heat, lower = #first, upper = #last}],
                                step = 0 : i64, lower = array<i64: -1>, upper = array<i64: 1>} : (!tiled.tile, !tiled.tile) -> !tiled.tile
    // CHECK: %[[v:.+]] = "tiled.apply"(%[[u]], %[[k]])
    %v = "tiled.apply"(%u, %k) {reads = [@A, @K], updates = [@A], pieces = [{function = @heat, lower = #first, upper = #last}],
                                step = 1 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile, !tiled.tile) -> !tiled.tile
    // CHECK: "tiled.store"(%[[v]]) {field = @A} : (!tiled.tile) -> ()
    "tiled.store"(%v) {field = @A} : (!tiled.tile) -> ()
    return
  }

  // CHECK: "tiled.repeat"() {count = #[[pairs]], kernels = [@heat_2]} : () -> ()
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps floordiv 2)>, kernels = [@heat_2]} : () -> ()
}
