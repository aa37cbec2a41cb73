// RUN: stencil-opt %s --pass-pipeline='builtin.module(sink-time-loops)' -o %t.once && FileCheck %s <%t.once
// RUN: stencil-opt %s --pass-pipeline='builtin.module(sink-time-loops,sink-time-loops)' -o %t.twice
// RUN: diff %t.once %t.twice
// No iteration depends on another one. The mapping takes the inner of the two loops around the
// others for threads, whichever that is, so neither order is better.

// CHECK: affine.for %{{.*}} = 0 to
// CHECK-NEXT: affine.for %{{.*}} = 2 to 1 {
func.func @either(%a: memref<?xf32>, %b: memref<?x?xf32>, %n: index) {
  affine.for %i = 0 to %n {
    affine.for %j = 2 to 1 {
      affine.for %k = 0 to %n {
        %0 = affine.load %a[%k] : memref<?xf32>
        affine.store %0, %b[%i, %k] : memref<?x?xf32>
      }
      affine.for %k = 0 to %n {
        %0 = affine.load %a[%i] : memref<?xf32>
        affine.store %0, %b[%i, 0] : memref<?x?xf32>
      }
    }
  }
  return
}
