// B = alpha L^T B in place; L is lower triangular with ones on its diagonal.
func.func @trmm(
    %B: memref<?x?xf64> {stencil.name = "B", stencil.extents = ["N", "M"]},
    %L: memref<?x?xf64> {stencil.name = "L", stencil.extents = ["N", "N"]},
    %alpha: f64 {stencil.name = "alpha"},
    %n: index {stencil.name = "N"},
    %m: index {stencil.name = "M"}) {
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      affine.for %l = affine_map<(d) -> (d + 1)>(%i) to %n {
        %0 = affine.load %B[%i, %j] : memref<?x?xf64>
        %1 = affine.load %L[%l, %i] : memref<?x?xf64>
        %2 = affine.load %B[%l, %j] : memref<?x?xf64>
        %3 = arith.mulf %1, %2 : f64
        %4 = arith.addf %0, %3 : f64
        affine.store %4, %B[%i, %j] : memref<?x?xf64>
      }
      %5 = affine.load %B[%i, %j] : memref<?x?xf64>
      %6 = arith.mulf %alpha, %5 : f64
      affine.store %6, %B[%i, %j] : memref<?x?xf64>
    }
  }
  return
}
