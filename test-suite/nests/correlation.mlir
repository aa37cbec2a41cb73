// Means and deviations of columns, columns brought to mean 0 and deviation 1, and their products.
func.func @correlation(
    %R: memref<?x?xf64> {stencil.name = "R", stencil.extents = ["M", "M"]},
    %A: memref<?x?xf64> {stencil.name = "A", stencil.extents = ["N", "M"]},
    %mean: memref<?xf64> {stencil.name = "mean", stencil.extents = ["M"]},
    %dev: memref<?xf64> {stencil.name = "dev", stencil.extents = ["M"]},
    %count: f64 {stencil.name = "count"},
    %n: index {stencil.name = "N"}, %m: index {stencil.name = "M"}) {
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  %least = arith.constant 0.1 : f64
  affine.for %j = 0 to %m {
    affine.store %zero, %mean[%j] : memref<?xf64>
    affine.for %i = 0 to %n {
      %0 = affine.load %A[%i, %j] : memref<?x?xf64>
      %1 = affine.load %mean[%j] : memref<?xf64>
      %2 = arith.addf %1, %0 : f64
      affine.store %2, %mean[%j] : memref<?xf64>
    }
    %3 = affine.load %mean[%j] : memref<?xf64>
    %4 = arith.divf %3, %count : f64
    affine.store %4, %mean[%j] : memref<?xf64>
  }
  affine.for %j = 0 to %m {
    affine.store %zero, %dev[%j] : memref<?xf64>
    affine.for %i = 0 to %n {
      %0 = affine.load %A[%i, %j] : memref<?x?xf64>
      %1 = affine.load %mean[%j] : memref<?xf64>
      %2 = arith.subf %0, %1 : f64
      %3 = arith.mulf %2, %2 : f64
      %4 = affine.load %dev[%j] : memref<?xf64>
      %5 = arith.addf %4, %3 : f64
      affine.store %5, %dev[%j] : memref<?xf64>
    }
    %6 = affine.load %dev[%j] : memref<?xf64>
    %7 = arith.divf %6, %count : f64
    %8 = math.sqrt %7 : f64
    %9 = arith.cmpf ole, %8, %least : f64
    %10 = arith.select %9, %one, %8 : f64
    affine.store %10, %dev[%j] : memref<?xf64>
  }
  %root = math.sqrt %count : f64
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      %0 = affine.load %A[%i, %j] : memref<?x?xf64>
      %1 = affine.load %mean[%j] : memref<?xf64>
      %2 = arith.subf %0, %1 : f64
      %3 = affine.load %dev[%j] : memref<?xf64>
      %4 = arith.mulf %root, %3 : f64
      %5 = arith.divf %2, %4 : f64
      affine.store %5, %A[%i, %j] : memref<?x?xf64>
    }
  }
  affine.for %i = 0 to %m {
    affine.store %one, %R[%i, %i] : memref<?x?xf64>
  }
  affine.for %i = 0 to affine_map<(d) -> (d - 1)>(%m) {
    affine.for %j = affine_map<(d) -> (d + 1)>(%i) to %m {
      affine.store %zero, %R[%i, %j] : memref<?x?xf64>
      affine.for %l = 0 to %n {
        %0 = affine.load %A[%l, %i] : memref<?x?xf64>
        %1 = affine.load %A[%l, %j] : memref<?x?xf64>
        %2 = arith.mulf %0, %1 : f64
        %3 = affine.load %R[%i, %j] : memref<?x?xf64>
        %4 = arith.addf %3, %2 : f64
        affine.store %4, %R[%i, %j] : memref<?x?xf64>
      }
      %5 = affine.load %R[%i, %j] : memref<?x?xf64>
      affine.store %5, %R[%j, %i] : memref<?x?xf64>
    }
  }
  return
}
