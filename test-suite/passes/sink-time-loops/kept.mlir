// RUN: stencil-opt %s --split-input-file --pass-pipeline='builtin.module(sink-time-loops)' | FileCheck %s
// What stays where it is.

// The rows of a triangle begin at the counter around them.
// CHECK-LABEL: func.func @triangle
// CHECK: affine.for %[[L:.*]] = 0 to %{{.*}} {
// CHECK-NEXT: affine.for %{{.*}} = #{{.*}}(%[[L]]) to %{{.*}} {
func.func @triangle(%c: memref<?xf32>, %a: memref<?x?xf32>, %n: index) {
  affine.for %l = 0 to %n {
    affine.for %i = affine_map<(d) -> (d)>(%l) to %n {
      %0 = affine.load %c[%i] : memref<?xf32>
      %1 = affine.load %a[%l, %i] : memref<?x?xf32>
      %2 = arith.addf %0, %1 : f32
      affine.store %2, %c[%i] : memref<?xf32>
    }
  }
  return
}

// -----

// A loop in time that holds more than one loop.
// CHECK-LABEL: func.func @two
// CHECK: affine.for %[[T:.*]] = 0 to %{{.*}} {
// CHECK-NEXT: affine.for
func.func @two(%a: memref<?xf32>, %b: memref<?xf32>, %n: index, %t: index) {
  affine.for %step = 0 to %t {
    affine.for %i = 1 to %n {
      %0 = affine.load %a[%i - 1] : memref<?xf32>
      affine.store %0, %b[%i] : memref<?xf32>
    }
    affine.for %i = 1 to %n {
      %0 = affine.load %b[%i] : memref<?xf32>
      affine.store %0, %a[%i] : memref<?xf32>
    }
  }
  return
}

// -----

// Loops in space that stand outermost already, one of them parallel.
// CHECK-LABEL: func.func @sums
// CHECK: affine.parallel
// CHECK-NEXT: affine.for
func.func @sums(%x: memref<?xf32>, %a: memref<?x?xf32>, %n: index, %m: index) {
  affine.parallel (%i) = (0) to (symbol(%n)) {
    affine.for %j = 0 to %m {
      %0 = affine.load %x[%i] : memref<?xf32>
      %1 = affine.load %a[%i, %j] : memref<?x?xf32>
      %2 = arith.addf %0, %1 : f32
      affine.store %2, %x[%i] : memref<?xf32>
    }
  }
  return
}
