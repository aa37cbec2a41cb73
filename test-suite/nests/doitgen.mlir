// Each row of B is the product of a row of A and the matrix C.
func.func @doitgen(
    %B: memref<?x?x?xf64> {stencil.name = "B", stencil.extents = ["N", "M", "K"]},
    %A: memref<?x?x?xf64> {stencil.name = "A", stencil.extents = ["N", "M", "K"]},
    %C: memref<?x?xf64> {stencil.name = "C", stencil.extents = ["K", "K"]},
    %n: index {stencil.name = "N"},
    %m: index {stencil.name = "M"},
    %k: index {stencil.name = "K"}) {
  %zero = arith.constant 0.0 : f64
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      affine.for %l = 0 to %k {
        affine.store %zero, %B[%i, %j, %l] : memref<?x?x?xf64>
        affine.for %s = 0 to %k {
          %0 = affine.load %B[%i, %j, %l] : memref<?x?x?xf64>
          %1 = affine.load %A[%i, %j, %s] : memref<?x?x?xf64>
          %2 = affine.load %C[%s, %l] : memref<?x?xf64>
          %3 = arith.mulf %1, %2 : f64
          %4 = arith.addf %0, %3 : f64
          affine.store %4, %B[%i, %j, %l] : memref<?x?x?xf64>
        }
      }
    }
  }
  return
}
