// RUN: stencil-opt %s --pass-pipeline='builtin.module(lower-affine-nest,gpu.module(canonicalize))' | FileCheck %s
// A product with a vector: rows are threads, both statements of a row are of its thread, and the sum is in time.
// CHECK-DAG: #[[BLOCKS:.*]] = affine_map<()[s0, s1] -> (s0 ceildiv 256, 1)>
// CHECK: module @mv attributes {{{.*}}stencil.params = ["N", "M"]
// CHECK: "stencil.field"() {{{.*}}role = "state", sym_name = "x"
// CHECK: "stencil.field"() {{{.*}}role = "const", sym_name = "A"
// CHECK: gpu.func @mv_0(%[[X:.*]]: memref<f32> {{{.*}}tiled.binding = "read_write", tiled.name = "x"}, %{{.*}}: memref<f32> {{{.*}}tiled.binding = "read", tiled.name = "A"}
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, tiled.grid = [#[[BLOCKS]]]
// CHECK: %[[BLOCK:.*]] = gpu.block_id x
// CHECK: %[[FIRST:.*]] = arith.muli %[[BLOCK]], %c256
// CHECK: %[[THREAD:.*]] = gpu.thread_id x
// CHECK: %[[ROW:.*]] = arith.addi %[[FIRST]], %[[THREAD]]
// CHECK: %[[RUNS:.*]] = arith.cmpi slt, %[[ROW]], %{{.*}} : index
// CHECK: scf.if %[[RUNS]] {
// CHECK-NEXT: memref.store %{{.*}}, %{{.*}}[%[[ROW]]]
// CHECK-NEXT: scf.for %[[J:.*]] = %c0
// CHECK: memref.load %{{.*}}[%[[ROW]], %[[J]]]
// CHECK: memref.store %{{.*}}, %{{.*}}[%[[ROW]]]
// CHECK: "tiled.repeat"() {{{.*}}kernels = [@mv_0]
// CHECK-NOT: func.func
func.func @mv(
    %x: memref<?xf32> {stencil.name = "x", stencil.extents = ["N"]},
    %a: memref<?x?xf32> {stencil.name = "A", stencil.extents = ["N", "M"]},
    %y: memref<?xf32> {stencil.name = "y", stencil.extents = ["M"]},
    %n: index {stencil.name = "N"}, %m: index {stencil.name = "M"}) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to %n {
    affine.store %zero, %x[%i] : memref<?xf32>
    affine.for %j = 0 to %m {
      %0 = affine.load %x[%i] : memref<?xf32>
      %1 = affine.load %a[%i, %j] : memref<?x?xf32>
      %2 = affine.load %y[%j] : memref<?xf32>
      %3 = arith.mulf %1, %2 : f32
      %4 = arith.addf %0, %3 : f32
      affine.store %4, %x[%i] : memref<?xf32>
    }
  }
  return
}
