// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-overlapped{strategy=stream pyramid-height=1},split-sums)' | FileCheck %s
// Two applies share a function, and beside another function it can be cut after one plane only: each has parts of its own.

// CHECK: reads = [@A
// CHECK-SAME: updates = [@B]
// CHECK: updates = [@B]
// CHECK: function = @[[FIRST:.+]].0_2,
// CHECK-SAME: updates = [@A]
// CHECK: function = @[[FIRST]].1_2,
// CHECK-SAME: updates = [@A]
// CHECK: function = @[[FIRST]].2,
// CHECK-SAME: updates = [@A]
#map = affine_map<() -> (4)>
#map1 = affine_map<() -> (0, 0)>
#map2 = affine_map<() -> (63, 63)>
#map3 = affine_map<() -> (1, 1)>
#map4 = affine_map<() -> (62, 8)>
#map5 = affine_map<() -> (1, 9)>
#map6 = affine_map<() -> (62, 62)>
module @sp attributes {stencil.constants = [{name = "N", value = 64 : i64}, {name = "M", value = 64 : i64}], stencil.params = [], stencil.steps = #map} {
  "stencil.grid"() {lower = #map1, sym_name = "G", upper = #map2} : () -> ()
  "stencil.field"() {grid = @G, role = "state", sym_name = "A", type = f32} : () -> ()
  "stencil.field"() {grid = @G, role = "state", sym_name = "B", type = f32} : () -> ()
  func.func private @two_0(%arg0: f32 {stencil.offset = array<i64: -1, -1>, stencil.read = @A}, %arg1: f32 {stencil.offset = array<i64: -1, 0>, stencil.read = @A}, %arg2: f32 {stencil.offset = array<i64: -1, 1>, stencil.read = @A}, %arg3: f32 {stencil.offset = array<i64: 0, -1>, stencil.read = @A}, %arg4: f32 {stencil.offset = array<i64: 0, 0>, stencil.read = @A}, %arg5: f32 {stencil.offset = array<i64: 0, 1>, stencil.read = @A}, %arg6: f32 {stencil.offset = array<i64: 1, -1>, stencil.read = @A}, %arg7: f32 {stencil.offset = array<i64: 1, 0>, stencil.read = @A}, %arg8: f32 {stencil.offset = array<i64: 1, 1>, stencil.read = @A}) -> f32 {
    %cst = arith.constant 1.000000e-01 : f32
    %0 = arith.addf %arg0, %arg1 fastmath<contract> : f32
    %1 = arith.addf %0, %arg2 fastmath<contract> : f32
    %2 = arith.addf %1, %arg3 fastmath<contract> : f32
    %3 = arith.addf %2, %arg4 fastmath<contract> : f32
    %4 = arith.addf %3, %arg5 fastmath<contract> : f32
    %5 = arith.addf %4, %arg6 fastmath<contract> : f32
    %6 = arith.addf %5, %arg7 fastmath<contract> : f32
    %7 = arith.addf %6, %arg8 fastmath<contract> : f32
    %8 = arith.mulf %7, %cst fastmath<contract> : f32
    return %8 : f32
  }
  func.func private @two_1(%arg0: f32 {stencil.offset = array<i64: -1, -1>, stencil.read = @A}, %arg1: f32 {stencil.offset = array<i64: -1, 0>, stencil.read = @A}, %arg2: f32 {stencil.offset = array<i64: 0, 1>, stencil.read = @A}, %arg3: f32 {stencil.offset = array<i64: -1, 1>, stencil.read = @A}, %arg4: f32 {stencil.offset = array<i64: 0, 0>, stencil.read = @A}, %arg5: f32 {stencil.offset = array<i64: 1, 1>, stencil.read = @A}) -> f32 {
    %0 = arith.addf %arg0, %arg1 fastmath<contract> : f32
    %1 = arith.addf %0, %arg2 fastmath<contract> : f32
    %2 = arith.mulf %arg3, %arg1 fastmath<contract> : f32
    %3 = arith.addf %2, %arg4 fastmath<contract> : f32
    %4 = arith.mulf %1, %3 fastmath<contract> : f32
    %5 = arith.addf %4, %arg5 fastmath<contract> : f32
    return %5 : f32
  }
  "stencil.apply"() {pieces = [{function = @one, lower = #map3, upper = #map4}, {function = @two_1, lower = #map5, upper = #map6}], updates = [@B]} : () -> ()
  func.func private @one(%arg0: f32 {stencil.offset = array<i64: -1, -1>, stencil.read = @A}, %arg1: f32 {stencil.offset = array<i64: -1, 0>, stencil.read = @A}, %arg2: f32 {stencil.offset = array<i64: -1, 1>, stencil.read = @A}, %arg3: f32 {stencil.offset = array<i64: 0, -1>, stencil.read = @A}, %arg4: f32 {stencil.offset = array<i64: 0, 0>, stencil.read = @A}, %arg5: f32 {stencil.offset = array<i64: 0, 1>, stencil.read = @A}, %arg6: f32 {stencil.offset = array<i64: 1, -1>, stencil.read = @A}, %arg7: f32 {stencil.offset = array<i64: 1, 0>, stencil.read = @A}, %arg8: f32 {stencil.offset = array<i64: 1, 1>, stencil.read = @A}) -> f32 {
    %cst = arith.constant 1.000000e-01 : f32
    %0 = arith.addf %arg0, %arg1 fastmath<contract> : f32
    %1 = arith.addf %0, %arg2 fastmath<contract> : f32
    %2 = arith.addf %1, %arg3 fastmath<contract> : f32
    %3 = arith.addf %2, %arg4 fastmath<contract> : f32
    %4 = arith.addf %3, %arg5 fastmath<contract> : f32
    %5 = arith.addf %4, %arg6 fastmath<contract> : f32
    %6 = arith.addf %5, %arg7 fastmath<contract> : f32
    %7 = arith.addf %6, %arg8 fastmath<contract> : f32
    %8 = arith.mulf %7, %cst fastmath<contract> : f32
    return %8 : f32
  }
  "stencil.apply"() {pieces = [{function = @one, lower = #map3, upper = #map6}], updates = [@A]} : () -> ()
}

