// RUN: stencil-opt %s --pass-pipeline='builtin.module(lower-affine-nest,gpu.module(canonicalize,cse))' | FileCheck %s
// A sum of all cells is in time: one thread. A statement beside a loop in space is of that axis's first thread, and where
// the launch stores to what is loaded, so is the load.
// CHECK-LABEL: gpu.func @sums_0
// CHECK-SAME: known_block_size = array<i32: 1, 1, 1>
// CHECK: scf.for
// CHECK-LABEL: gpu.func @sums_1
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK: scf.for
// CHECK-NEXT: scf.if %[[FIRST]] {
// CHECK: memref.load
// CHECK: memref.store
// CHECK: scf.if
func.func @sums(%a: memref<?x8xf32>, %b: memref<8xf32>, %s: memref<1xf32>, %n: index) {
  affine.for %i = 0 to %n {
    %0 = affine.load %a[%i, 0] : memref<?x8xf32>
    %1 = affine.load %s[0] : memref<1xf32>
    %2 = arith.addf %0, %1 : f32
    affine.store %2, %s[0] : memref<1xf32>
  }
  affine.for %i = 0 to %n {
    %0 = affine.load %s[0] : memref<1xf32>
    %1 = arith.addf %0, %0 : f32
    affine.store %1, %s[0] : memref<1xf32>
    affine.for %j = 0 to 8 {
      %2 = affine.load %a[%i, %j] : memref<?x8xf32>
      %3 = affine.load %b[%j] : memref<8xf32>
      %4 = arith.addf %2, %3 : f32
      affine.store %4, %b[%j] : memref<8xf32>
    }
  }
  return
}
