// A = A + u1 v1^T + u2 v2^T, then x = x + beta A^T y.
func.func @gemver(
    %A: memref<?x?xf64> {stencil.name = "A", stencil.extents = ["N", "N"]},
    %x: memref<?xf64> {stencil.name = "x", stencil.extents = ["N"]},
    %u1: memref<?xf64> {stencil.name = "u1", stencil.extents = ["N"]},
    %v1: memref<?xf64> {stencil.name = "v1", stencil.extents = ["N"]},
    %u2: memref<?xf64> {stencil.name = "u2", stencil.extents = ["N"]},
    %v2: memref<?xf64> {stencil.name = "v2", stencil.extents = ["N"]},
    %y: memref<?xf64> {stencil.name = "y", stencil.extents = ["N"]},
    %beta: f64 {stencil.name = "beta"},
    %n: index {stencil.name = "N"}) {
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %n {
      %0 = affine.load %A[%i, %j] : memref<?x?xf64>
      %1 = affine.load %u1[%i] : memref<?xf64>
      %2 = affine.load %v1[%j] : memref<?xf64>
      %3 = arith.mulf %1, %2 : f64
      %4 = arith.addf %0, %3 : f64
      %5 = affine.load %u2[%i] : memref<?xf64>
      %6 = affine.load %v2[%j] : memref<?xf64>
      %7 = arith.mulf %5, %6 : f64
      %8 = arith.addf %4, %7 : f64
      affine.store %8, %A[%i, %j] : memref<?x?xf64>
    }
  }
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %n {
      %0 = affine.load %x[%i] : memref<?xf64>
      %1 = affine.load %A[%j, %i] : memref<?x?xf64>
      %2 = affine.load %y[%j] : memref<?xf64>
      %3 = arith.mulf %1, %2 : f64
      %4 = arith.mulf %beta, %3 : f64
      %5 = arith.addf %0, %4 : f64
      affine.store %5, %x[%i] : memref<?xf64>
    }
  }
  return
}
