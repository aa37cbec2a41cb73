// Means of columns, and the products of what columns differ from them.
func.func @covariance(
    %V: memref<?x?xf64> {stencil.name = "V", stencil.extents = ["M", "M"]},
    %mean: memref<?xf64> {stencil.name = "mean", stencil.extents = ["M"]},
    %A: memref<?x?xf64> {stencil.name = "A", stencil.extents = ["N", "M"]},
    %count: f64 {stencil.name = "count"},
    %n: index {stencil.name = "N"},
    %m: index {stencil.name = "M"}) {
  %zero = arith.constant 0.0 : f64
  affine.for %j = 0 to %m {
    affine.store %zero, %mean[%j] : memref<?xf64>
    affine.for %i = 0 to %n {
      %0 = affine.load %mean[%j] : memref<?xf64>
      %1 = affine.load %A[%i, %j] : memref<?x?xf64>
      %2 = arith.addf %0, %1 : f64
      affine.store %2, %mean[%j] : memref<?xf64>
    }
    %3 = affine.load %mean[%j] : memref<?xf64>
    %4 = arith.divf %3, %count : f64
    affine.store %4, %mean[%j] : memref<?xf64>
  }
  affine.for %j = 0 to %m {
    affine.for %l = 0 to %m {
      affine.store %zero, %V[%j, %l] : memref<?x?xf64>
      affine.for %i = 0 to %n {
        %0 = affine.load %V[%j, %l] : memref<?x?xf64>
        %1 = affine.load %A[%i, %j] : memref<?x?xf64>
        %2 = affine.load %mean[%j] : memref<?xf64>
        %3 = arith.subf %1, %2 : f64
        %4 = affine.load %A[%i, %l] : memref<?x?xf64>
        %5 = affine.load %mean[%l] : memref<?xf64>
        %6 = arith.subf %4, %5 : f64
        %7 = arith.mulf %3, %6 : f64
        %8 = arith.addf %0, %7 : f64
        affine.store %8, %V[%j, %l] : memref<?x?xf64>
      }
    }
  }
  return
}
