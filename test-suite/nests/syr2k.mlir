// The lower triangle of C = beta C + alpha (A B^T + B A^T).
func.func @syr2k(
    %C: memref<?x?xf64> {stencil.name = "C", stencil.extents = ["N", "N"]},
    %A: memref<?x?xf64> {stencil.name = "A", stencil.extents = ["N", "K"]},
    %B: memref<?x?xf64> {stencil.name = "B", stencil.extents = ["N", "K"]},
    %alpha: f64 {stencil.name = "alpha"}, %beta: f64 {stencil.name = "beta"},
    %n: index {stencil.name = "N"}, %k: index {stencil.name = "K"}) {
  affine.for %i = 0 to %n {
    affine.for %j = 0 to affine_map<(d) -> (d + 1)>(%i) {
      %0 = affine.load %C[%i, %j] : memref<?x?xf64>
      %1 = arith.mulf %0, %beta : f64
      affine.store %1, %C[%i, %j] : memref<?x?xf64>
    }
    affine.for %l = 0 to %k {
      affine.for %j = 0 to affine_map<(d) -> (d + 1)>(%i) {
        %0 = affine.load %A[%j, %l] : memref<?x?xf64>
        %1 = affine.load %B[%i, %l] : memref<?x?xf64>
        %2 = arith.mulf %0, %1 : f64
        %3 = affine.load %B[%j, %l] : memref<?x?xf64>
        %4 = affine.load %A[%i, %l] : memref<?x?xf64>
        %5 = arith.mulf %3, %4 : f64
        %6 = arith.addf %2, %5 : f64
        %7 = arith.mulf %alpha, %6 : f64
        %8 = affine.load %C[%i, %j] : memref<?x?xf64>
        %9 = arith.addf %8, %7 : f64
        affine.store %9, %C[%i, %j] : memref<?x?xf64>
      }
    }
  }
  return
}
