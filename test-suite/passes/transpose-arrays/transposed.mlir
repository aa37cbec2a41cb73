// RUN: stencil-opt %s --split-input-file --pass-pipeline='builtin.module(transpose-arrays)' -o %t.mlir
// RUN: FileCheck %s <%t.mlir
// RUN: stencil-opt %t.mlir --split-input-file --pass-pipeline='builtin.module(transpose-arrays)' -o %t2.mlir
// RUN: diff %t.mlir %t2.mlir
// Arrays that get another order of dimensions. A second run changes nothing.

// Rows are stored by a thread each, in many sweeps: one nest fills the transpose, and one writes it back.
// CHECK-LABEL: func.func @sweeps
// CHECK-SAME: %[[A:.*]]: memref<?x64xf32> {stencil.extents = ["N"], stencil.name = "A", tiled.layout_note = "transposed: the order 1, 0 saves 2756.2 bytes a cell, its transform moves 72"}
// CHECK-SAME: %[[B:.*]]: memref<?x64xf32> {stencil.extents = ["N"], stencil.name = "B", tiled.layout_note = "kernels use it as it is: no other order moves fewer bytes past the level 1 caches"}
// CHECK: %[[N:.*]] = memref.dim %[[A]], %c0
// CHECK-NEXT: %[[T:.*]] = memref.alloc(%[[N]]) {tiled.transposed = "A"} : memref<64x?xf32>
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 64 {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to %[[N]] {
// CHECK-NEXT: %[[V:.*]] = affine.load %[[A]][%[[I]], %[[J]]]
// CHECK-NEXT: affine.store %[[V]], %[[T]][%[[J]], %[[I]]] : memref<64x?xf32>
// CHECK: affine.for %{{.*}} = 0 to 100
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to
// CHECK-NEXT: affine.for %[[J:.*]] = 1 to 64
// CHECK-NEXT: affine.load %[[T]][%[[J]] - 1, %[[I]]] : memref<64x?xf32>
// CHECK-NEXT: affine.load %[[B]][%[[I]], %[[J]]]
// CHECK: affine.store %{{.*}}, %[[T]][%[[J]], %[[I]]]
// CHECK: affine.for %[[I:.*]] = 0 to %[[N]] {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 64 {
// CHECK-NEXT: %[[V:.*]] = affine.load %[[T]][%[[J]], %[[I]]]
// CHECK-NEXT: affine.store %[[V]], %[[A]][%[[I]], %[[J]]]
// CHECK: return
func.func @sweeps(
    %a: memref<?x64xf32> {stencil.name = "A", stencil.extents = ["N"]},
    %b: memref<?x64xf32> {stencil.name = "B", stencil.extents = ["N"]},
    %n: index {stencil.name = "N"}) {
  affine.for %t = 0 to 100 {
    affine.for %i = 0 to %n {
      affine.for %j = 1 to 64 {
        %0 = affine.load %a[%i, %j - 1] : memref<?x64xf32>
        %1 = affine.load %b[%i, %j] : memref<?x64xf32>
        %2 = arith.addf %0, %1 : f32
        affine.store %2, %a[%i, %j] : memref<?x64xf32>
      }
    }
  }
  return
}

// -----

// An array that is only read is not written back. Its loads skip a sector each.
// CHECK-LABEL: func.func @read
// CHECK: %[[T:.*]] = memref.alloc() {tiled.transposed = "arg1"} : memref<64x32xf32>
// CHECK: affine.store %{{.*}}, %[[T]]
// CHECK: affine.load %[[T]][%{{.*}} * 8, %{{.*}}]
// CHECK-NOT: affine.load %[[T]]
// CHECK: return
func.func @read(%x: memref<32xf32>, %b: memref<32x64xf32>) {
  affine.for %t = 0 to 20 {
    affine.for %i = 0 to 32 {
      affine.for %k = 0 to 8 {
        %0 = affine.load %b[%i, %k * 8] : memref<32x64xf32>
        %1 = affine.load %x[%i] : memref<32xf32>
        %2 = arith.addf %0, %1 : f32
        affine.store %2, %x[%i] : memref<32xf32>
      }
    }
  }
  return
}

// -----

// The function's own arrays change without a transform, and one sweep is enough. In three dimensions, the others keep
// their order.
// CHECK-LABEL: func.func @own
// CHECK: %[[T:.*]] = memref.alloca(%{{.*}}) {tiled.layout_note = "transposed: the order 1, 2, 0 saves 21.0 bytes a cell", tiled.transposed = "temp0"} : memref<4x8x?xf64>
// CHECK: memref.dim %[[T]], %c2{{.*}} : memref<4x8x?xf64>
// CHECK: affine.store %{{.*}}, %[[T]][%{{.*}}, %{{.*}}, %{{.*}}]
// CHECK-NOT: affine.store
// CHECK: return
func.func @own(%n: index {stencil.name = "N"}) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %a = memref.alloca(%n) : memref<?x4x8xf64>
  %rows = memref.dim %a, %c0 : memref<?x4x8xf64>
  affine.for %i = 0 to %rows {
    affine.for %j = 0 to 4 {
      affine.for %k = 1 to 8 {
        %0 = affine.load %a[%i, %j, %k - 1] : memref<?x4x8xf64>
        %1 = affine.load %a[%i, (%j + 1) * 0, %k - 1] : memref<?x4x8xf64>
        %2 = arith.addf %0, %1 : f64
        affine.store %2, %a[%i, %j, %k] : memref<?x4x8xf64>
      }
    }
  }
  return
}
