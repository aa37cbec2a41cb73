// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-overlapped{tile=64 pyramid-height=1},lower-block,gpu.module(canonicalize,cse))' | FileCheck %s
// Where a function has several pieces there is one body, which asks for each cell what covers it.

module @pieces attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f64, role = "state"} : () -> ()
  func.func private @double(%c: f64 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f64 {
    %r = arith.addf %c, %c : f64
    return %r : f64
  }
  func.func private @west(%w: f64 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f64 {
    return %w : f64
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @double, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (0)>},
                                                {function = @west, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n)>}]} : () -> ()
}

// CHECK: gpu.func @pieces_1(
// CHECK-SAME: workgroup(%[[a:[a-z0-9]+]] : memref<65xf64, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
// CHECK: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: scf.for
// CHECK: scf.if
// CHECK: %[[value:.+]] = scf.if {{.*}} -> (f64) {
// CHECK: %[[sum:.+]] = arith.addf
// CHECK: scf.yield %[[sum]]
// CHECK: } else {
// CHECK: %[[other:.+]] = scf.if {{.*}} -> (f64) {
// CHECK: %[[w:.+]] = memref.load %[[a]]
// CHECK: scf.yield %[[w]]
// CHECK: } else {
// CHECK: %[[kept:.+]] = memref.load %[[a]]
// CHECK: scf.yield %[[kept]]
// CHECK: memref.store %[[value]], %{{.*}} : memref<?xf64, strided<[1]>>
// CHECK-NOT: gpu.barrier
// CHECK: gpu.return
