// T steps of heat in three dimensions, there and back between two arrays.
func.func @heat3d(
    %A: memref<?x?x?xf64> {stencil.name = "A", stencil.extents = ["N", "N", "N"]},
    %B: memref<?x?x?xf64> {stencil.name = "B", stencil.extents = ["N", "N", "N"]},
    %c: f64 {stencil.name = "c"},
    %n: index {stencil.name = "N"},
    %t: index {stencil.name = "T"}) {
  affine.for %step = 0 to %t {
    affine.for %i = 1 to affine_map<(d) -> (d - 1)>(%n) {
      affine.for %j = 1 to affine_map<(d) -> (d - 1)>(%n) {
        affine.for %l = 1 to affine_map<(d) -> (d - 1)>(%n) {
          %0 = affine.load %A[%i, %j, %l] : memref<?x?x?xf64>
          %1 = affine.load %A[%i - 1, %j, %l] : memref<?x?x?xf64>
          %2 = affine.load %A[%i + 1, %j, %l] : memref<?x?x?xf64>
          %3 = affine.load %A[%i, %j - 1, %l] : memref<?x?x?xf64>
          %4 = affine.load %A[%i, %j + 1, %l] : memref<?x?x?xf64>
          %5 = affine.load %A[%i, %j, %l - 1] : memref<?x?x?xf64>
          %6 = affine.load %A[%i, %j, %l + 1] : memref<?x?x?xf64>
          %7 = arith.addf %1, %2 : f64
          %8 = arith.addf %3, %4 : f64
          %9 = arith.addf %5, %6 : f64
          %10 = arith.addf %7, %8 : f64
          %11 = arith.addf %10, %9 : f64
          %12 = arith.mulf %c, %11 : f64
          %13 = arith.addf %0, %12 : f64
          affine.store %13, %B[%i, %j, %l] : memref<?x?x?xf64>
        }
      }
    }
    affine.for %i = 1 to affine_map<(d) -> (d - 1)>(%n) {
      affine.for %j = 1 to affine_map<(d) -> (d - 1)>(%n) {
        affine.for %l = 1 to affine_map<(d) -> (d - 1)>(%n) {
          %0 = affine.load %B[%i, %j, %l] : memref<?x?x?xf64>
          affine.store %0, %A[%i, %j, %l] : memref<?x?x?xf64>
        }
      }
    }
  }
  return
}
