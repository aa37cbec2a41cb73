// y = A^T A x, as two sums for each row.
func.func @atax(
    %y: memref<?xf64> {stencil.name = "y", stencil.extents = ["M"]},
    %A: memref<?x?xf64> {stencil.name = "A", stencil.extents = ["N", "M"]},
    %x: memref<?xf64> {stencil.name = "x", stencil.extents = ["M"]},
    %t: memref<?xf64> {stencil.name = "t", stencil.extents = ["N"]},
    %n: index {stencil.name = "N"},
    %m: index {stencil.name = "M"}) {
  %zero = arith.constant 0.0 : f64
  affine.for %j = 0 to %m {
    affine.store %zero, %y[%j] : memref<?xf64>
  }
  affine.for %i = 0 to %n {
    affine.store %zero, %t[%i] : memref<?xf64>
    affine.for %j = 0 to %m {
      %0 = affine.load %t[%i] : memref<?xf64>
      %1 = affine.load %A[%i, %j] : memref<?x?xf64>
      %2 = affine.load %x[%j] : memref<?xf64>
      %3 = arith.mulf %1, %2 : f64
      %4 = arith.addf %0, %3 : f64
      affine.store %4, %t[%i] : memref<?xf64>
    }
    affine.for %j = 0 to %m {
      %5 = affine.load %y[%j] : memref<?xf64>
      %6 = affine.load %A[%i, %j] : memref<?x?xf64>
      %7 = affine.load %t[%i] : memref<?xf64>
      %8 = arith.mulf %6, %7 : f64
      %9 = arith.addf %5, %8 : f64
      affine.store %9, %y[%j] : memref<?xf64>
    }
  }
  return
}
