// RUN: stencil-opt %s --pass-pipeline='builtin.module(sink-time-loops)' | FileCheck %s
// RUN: stencil-opt %s --pass-pipeline='builtin.module(sink-time-loops)' > %t.once.mlir
// RUN: stencil-opt %s --pass-pipeline='builtin.module(sink-time-loops,sink-time-loops)' | diff %t.once.mlir -
// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-affine-nest)' | FileCheck %s --check-prefix=BEFORE
// RUN: stencil-opt %s --pass-pipeline='builtin.module(sink-time-loops,tile-affine-nest)' | FileCheck %s --check-prefix=TILED
// RUN: stencilc run %s --target sim --check --size N=37 --size M=21 --size K=19 --in A=random:1 --in B=random:2 --in C=random:3
// A product whose sum stands outermost, as an outer product. The loops of rows and columns are threads, and go out.
// CHECK: affine.for %[[I:.*]] = 0 to %{{.*}} {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to %{{.*}} {
// CHECK-NEXT: affine.for %[[L:.*]] = 0 to %{{.*}} {
// CHECK-NEXT: affine.load %{{.*}}[%[[I]], %[[J]]]
// CHECK-NEXT: affine.load %{{.*}}[%[[I]], %[[L]]]
// CHECK-NEXT: affine.load %{{.*}}[%[[L]], %[[J]]]
// BEFORE: tiled.not_tiled = "its outermost loop is in time"
// TILED: tiled.nest_tile = {per_thread = array<i64: 8, 8>, threads = array<i64: 16, 16>, time = 8 : i64}
func.func @outer_product(
    %c: memref<?x?xf32> {stencil.name = "C", stencil.extents = ["N", "M"]},
    %a: memref<?x?xf32> {stencil.name = "A", stencil.extents = ["N", "K"]},
    %b: memref<?x?xf32> {stencil.name = "B", stencil.extents = ["K", "M"]},
    %n: index {stencil.name = "N"}, %m: index {stencil.name = "M"},
    %k: index {stencil.name = "K"}) {
  affine.for %l = 0 to %k {
    affine.for %i = 0 to %n {
      affine.for %j = 0 to %m {
        %0 = affine.load %c[%i, %j] : memref<?x?xf32>
        %1 = affine.load %a[%i, %l] : memref<?x?xf32>
        %2 = affine.load %b[%l, %j] : memref<?x?xf32>
        %3 = arith.mulf %1, %2 : f32
        %4 = arith.addf %0, %3 : f32
        affine.store %4, %c[%i, %j] : memref<?x?xf32>
      }
    }
  }
  return
}
