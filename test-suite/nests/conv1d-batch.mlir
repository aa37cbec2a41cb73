// Rows of a batch with a filter of five numbers for each channel.
func.func @conv1d_batch(
    %O: memref<?x?xf64> {stencil.name = "O", stencil.extents = ["N", "M"]},
    %A: memref<?x?xf64> {stencil.name = "A"},
    %F: memref<?x?xf64> {stencil.name = "F"},
    %n: index {stencil.name = "N"},
    %m: index {stencil.name = "M"}) {
  %zero = arith.constant 0.0 : f64
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      affine.store %zero, %O[%i, %j] : memref<?x?xf64>
      affine.for %l = 0 to 5 {
        %0 = affine.load %O[%i, %j] : memref<?x?xf64>
        %1 = affine.load %A[%i, %j + %l] : memref<?x?xf64>
        %2 = affine.load %F[%i, %l] : memref<?x?xf64>
        %3 = arith.mulf %1, %2 : f64
        %4 = arith.addf %0, %3 : f64
        affine.store %4, %O[%i, %j] : memref<?x?xf64>
      }
    }
  }
  return
}
