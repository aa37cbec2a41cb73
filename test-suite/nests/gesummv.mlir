// y = alpha A x + beta B x.
func.func @gesummv(
    %y: memref<?xf64> {stencil.name = "y", stencil.extents = ["N"]},
    %A: memref<?x?xf64> {stencil.name = "A", stencil.extents = ["N", "N"]},
    %B: memref<?x?xf64> {stencil.name = "B", stencil.extents = ["N", "N"]},
    %x: memref<?xf64> {stencil.name = "x", stencil.extents = ["N"]},
    %alpha: f64 {stencil.name = "alpha"},
    %beta: f64 {stencil.name = "beta"},
    %n: index {stencil.name = "N"}) {
  %zero = arith.constant 0.0 : f64
  affine.parallel (%i) = (0) to (symbol(%n)) {
    affine.store %zero, %y[%i] : memref<?xf64>
    affine.for %j = 0 to %n {
      %0 = affine.load %A[%i, %j] : memref<?x?xf64>
      %1 = affine.load %B[%i, %j] : memref<?x?xf64>
      %2 = affine.load %x[%j] : memref<?xf64>
      %3 = arith.mulf %alpha, %0 : f64
      %4 = arith.mulf %beta, %1 : f64
      %5 = arith.addf %3, %4 : f64
      %6 = arith.mulf %5, %2 : f64
      %7 = affine.load %y[%i] : memref<?xf64>
      %8 = arith.addf %7, %6 : f64
      affine.store %8, %y[%i] : memref<?xf64>
    }
  }
  return
}
