// The lower triangle of C = beta C + alpha A A^T.
func.func @syrk(
    %C: memref<?x?xf64> {stencil.name = "C", stencil.extents = ["N", "N"]},
    %A: memref<?x?xf64> {stencil.name = "A", stencil.extents = ["N", "K"]},
    %alpha: f64 {stencil.name = "alpha"},
    %beta: f64 {stencil.name = "beta"},
    %n: index {stencil.name = "N"},
    %k: index {stencil.name = "K"}) {
  affine.for %i = 0 to %n {
    affine.for %j = 0 to affine_map<(d) -> (d + 1)>(%i) {
      %0 = affine.load %C[%i, %j] : memref<?x?xf64>
      %1 = arith.mulf %beta, %0 : f64
      affine.store %1, %C[%i, %j] : memref<?x?xf64>
      affine.for %l = 0 to %k {
        %2 = affine.load %C[%i, %j] : memref<?x?xf64>
        %3 = affine.load %A[%i, %l] : memref<?x?xf64>
        %4 = affine.load %A[%j, %l] : memref<?x?xf64>
        %5 = arith.mulf %3, %4 : f64
        %6 = arith.mulf %alpha, %5 : f64
        %7 = arith.addf %2, %6 : f64
        affine.store %7, %C[%i, %j] : memref<?x?xf64>
      }
    }
  }
  return
}
