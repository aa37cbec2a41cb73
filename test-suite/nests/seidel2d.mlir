// Means of nine cells in place, T times: each loop carries a dependence, so that one thread runs it.
func.func @seidel2d(
    %A: memref<?x?xf64> {stencil.name = "A", stencil.extents = ["N", "N"]},
    %n: index {stencil.name = "N"}, %t: index {stencil.name = "T"}) {
  %nine = arith.constant 9.0 : f64
  affine.for %s = 0 to %t {
    affine.for %i = 1 to affine_map<(d) -> (d - 1)>(%n) {
      affine.for %j = 1 to affine_map<(d) -> (d - 1)>(%n) {
        %0 = affine.load %A[%i - 1, %j - 1] : memref<?x?xf64>
        %1 = affine.load %A[%i - 1, %j] : memref<?x?xf64>
        %2 = affine.load %A[%i - 1, %j + 1] : memref<?x?xf64>
        %3 = affine.load %A[%i, %j - 1] : memref<?x?xf64>
        %4 = affine.load %A[%i, %j] : memref<?x?xf64>
        %5 = affine.load %A[%i, %j + 1] : memref<?x?xf64>
        %6 = affine.load %A[%i + 1, %j - 1] : memref<?x?xf64>
        %7 = affine.load %A[%i + 1, %j] : memref<?x?xf64>
        %8 = affine.load %A[%i + 1, %j + 1] : memref<?x?xf64>
        %9 = arith.addf %0, %1 : f64
        %10 = arith.addf %9, %2 : f64
        %11 = arith.addf %10, %3 : f64
        %12 = arith.addf %11, %4 : f64
        %13 = arith.addf %12, %5 : f64
        %14 = arith.addf %13, %6 : f64
        %15 = arith.addf %14, %7 : f64
        %16 = arith.addf %15, %8 : f64
        %17 = arith.divf %16, %nine : f64
        affine.store %17, %A[%i, %j] : memref<?x?xf64>
      }
    }
  }
  return
}
