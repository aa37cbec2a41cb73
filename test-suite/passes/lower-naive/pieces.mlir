// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-overlapped{strategy=naive},lower-naive,gpu.module(canonicalize,cse))' | FileCheck %s
// Several pieces are tried in turn. A coordinate is that of the grid, from -5; the cell's index in
// the buffer counts from the grid's first point, so the west neighbour lies at i + 5 - 1.

module @pieces attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (-5)>, upper = affine_map<()[n] -> (n + 3)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @rim(%i: i64 {stencil.coord = 0 : i64}, %n: i64 {stencil.param = "N"}, %t: i64 {stencil.step}) -> f32 {
    %s = arith.addi %i, %n : i64
    %u = arith.muli %s, %t : i64
    %r = arith.sitofp %u : i64 to f32
    return %r : f32
  }
  func.func private @mean(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}, %e: f32 {stencil.read = @A, stencil.offset = array<i64: 1>}) -> f32 {
    %r = arith.addf %w, %e : f32
    return %r : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @rim, lower = affine_map<()[n] -> (-5)>, upper = affine_map<()[n] -> (-5)>},
                                                {function = @mean, lower = affine_map<()[n] -> (-4)>, upper = affine_map<()[n] -> (n + 2)>}]} : () -> ()
}

// CHECK: gpu.func @pieces_0(%[[a:[a-z0-9]+]]: memref<f32> {{.*}}, %[[next:[a-z0-9]+]]: memref<f32> {{.*}}, %[[n:[a-z0-9]+]]: index {{.*}}, %[[step:[a-z0-9]+]]: i64 {tiled.binding = "step"})
// CHECK-DAG: %[[first:.+]] = arith.constant -5 : index
// CHECK-DAG: %[[west:.+]] = arith.constant 4 : index
// CHECK-DAG: %[[east:.+]] = arith.constant 6 : index
// CHECK: %[[cells:.+]] = affine.apply {{.*}}()[%[[n]]]
// CHECK: %[[A:.+]] = memref.reinterpret_cast %[[a]] to offset: [0], sizes: [%[[cells]]], strides: [1]
// CHECK: %[[Next:.+]] = memref.reinterpret_cast %[[next]]
// CHECK: %[[origin:.+]] = arith.addi %{{.*}}, %[[first]] : index
// CHECK: %[[point:.+]] = arith.addi %[[origin]], %thread_id_x : index
// CHECK: scf.if
// CHECK: %[[cell:.+]] = arith.subi %[[point]], %[[first]] : index
// CHECK: %[[value:.+]] = scf.if {{.*}} -> (f32) {
// CHECK: %[[i:.+]] = arith.index_cast %[[point]] : index to i64
// CHECK: %[[size:.+]] = arith.index_cast %[[n]] : index to i64
// CHECK: %[[s:.+]] = arith.addi %[[i]], %[[size]] : i64
// CHECK: arith.muli %[[s]], %[[step]] : i64
// CHECK: scf.yield
// CHECK: } else {
// CHECK: %[[other:.+]] = scf.if {{.*}} -> (f32) {
// CHECK: %[[w:.+]] = arith.addi %[[point]], %[[west]] : index
// CHECK: memref.load %[[A]][%[[w]]]
// CHECK: %[[e:.+]] = arith.addi %[[point]], %[[east]] : index
// CHECK: memref.load %[[A]][%[[e]]]
// CHECK: arith.addf
// CHECK: } else {
// CHECK: %[[kept:.+]] = memref.load %[[A]][%[[cell]]]
// CHECK: scf.yield %[[kept]]
// CHECK: scf.yield %[[other]]
// CHECK: memref.store %[[value]], %[[Next]][%[[cell]]]
