// Means of three neighbours, T times there and back.
func.func @jacobi1d(
    %A: memref<?xf64> {stencil.name = "A", stencil.extents = ["N"]},
    %B: memref<?xf64> {stencil.name = "B", stencil.extents = ["N"]},
    %n: index {stencil.name = "N"}, %t: index {stencil.name = "T"}) {
  %third = arith.constant 0.33333 : f64
  affine.for %s = 0 to %t {
    affine.for %i = 1 to affine_map<(d) -> (d - 1)>(%n) {
      %0 = affine.load %A[%i - 1] : memref<?xf64>
      %1 = affine.load %A[%i] : memref<?xf64>
      %2 = affine.load %A[%i + 1] : memref<?xf64>
      %3 = arith.addf %0, %1 : f64
      %4 = arith.addf %3, %2 : f64
      %5 = arith.mulf %third, %4 : f64
      affine.store %5, %B[%i] : memref<?xf64>
    }
    affine.for %i = 1 to affine_map<(d) -> (d - 1)>(%n) {
      %0 = affine.load %B[%i - 1] : memref<?xf64>
      %1 = affine.load %B[%i] : memref<?xf64>
      %2 = affine.load %B[%i + 1] : memref<?xf64>
      %3 = arith.addf %0, %1 : f64
      %4 = arith.addf %3, %2 : f64
      %5 = arith.mulf %third, %4 : f64
      affine.store %5, %A[%i] : memref<?xf64>
    }
  }
  return
}
