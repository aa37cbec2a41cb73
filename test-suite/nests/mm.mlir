// C = alpha A B + beta C: rows and columns are threads, the sum is in time.
func.func @mm(
    %c: memref<?x?xf64> {stencil.name = "C", stencil.extents = ["N", "M"]},
    %a: memref<?x?xf64> {stencil.name = "A", stencil.extents = ["N", "K"]},
    %b: memref<?x?xf64> {stencil.name = "B", stencil.extents = ["K", "M"]},
    %alpha: f64 {stencil.name = "alpha"}, %beta: f64 {stencil.name = "beta"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %c, %c0 : memref<?x?xf64>
  %m = memref.dim %c, %c1 : memref<?x?xf64>
  %k = memref.dim %a, %c1 : memref<?x?xf64>
  affine.parallel (%i, %j) = (0, 0) to (symbol(%n), symbol(%m)) {
    %0 = affine.load %c[%i, %j] : memref<?x?xf64>
    %1 = arith.mulf %0, %beta : f64
    affine.store %1, %c[%i, %j] : memref<?x?xf64>
    affine.for %l = 0 to %k {
      %2 = affine.load %c[%i, %j] : memref<?x?xf64>
      %3 = affine.load %a[%i, %l] : memref<?x?xf64>
      %4 = affine.load %b[%l, %j] : memref<?x?xf64>
      %5 = arith.mulf %alpha, %3 : f64
      %6 = arith.mulf %5, %4 : f64
      %7 = arith.addf %2, %6 : f64
      affine.store %7, %c[%i, %j] : memref<?x?xf64>
    }
  }
  return
}
