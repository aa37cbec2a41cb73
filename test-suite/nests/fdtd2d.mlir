// Maxwell's equations in two dimensions; the row 0 of ey is driven by a value of each step.
func.func @fdtd2d(
    %ex: memref<?x?xf32> {stencil.name = "ex", stencil.extents = ["N", "M"]},
    %ey: memref<?x?xf32> {stencil.name = "ey", stencil.extents = ["N", "M"]},
    %hz: memref<?x?xf32> {stencil.name = "hz", stencil.extents = ["N", "M"]},
    %drive: memref<?xf32> {stencil.name = "drive", stencil.extents = ["T"]},
    %n: index {stencil.name = "N"}, %m: index {stencil.name = "M"},
    %t: index {stencil.name = "T"}) {
  %half = arith.constant 0.5 : f32
  %most = arith.constant 0.7 : f32
  affine.for %step = 0 to %t {
    %driven = affine.load %drive[%step] : memref<?xf32>
    affine.for %j = 0 to %m {
      affine.store %driven, %ey[0, %j] : memref<?x?xf32>
    }
    affine.for %i = 1 to %n {
      affine.for %j = 0 to %m {
        %0 = affine.load %ey[%i, %j] : memref<?x?xf32>
        %1 = affine.load %hz[%i, %j] : memref<?x?xf32>
        %2 = affine.load %hz[%i - 1, %j] : memref<?x?xf32>
        %3 = arith.subf %1, %2 : f32
        %4 = arith.mulf %half, %3 : f32
        %5 = arith.subf %0, %4 : f32
        affine.store %5, %ey[%i, %j] : memref<?x?xf32>
      }
    }
    affine.for %i = 0 to %n {
      affine.for %j = 1 to %m {
        %0 = affine.load %ex[%i, %j] : memref<?x?xf32>
        %1 = affine.load %hz[%i, %j] : memref<?x?xf32>
        %2 = affine.load %hz[%i, %j - 1] : memref<?x?xf32>
        %3 = arith.subf %1, %2 : f32
        %4 = arith.mulf %half, %3 : f32
        %5 = arith.subf %0, %4 : f32
        affine.store %5, %ex[%i, %j] : memref<?x?xf32>
      }
    }
    affine.for %i = 0 to affine_map<(n) -> (n - 1)>(%n) {
      affine.for %j = 0 to affine_map<(m) -> (m - 1)>(%m) {
        %0 = affine.load %hz[%i, %j] : memref<?x?xf32>
        %1 = affine.load %ex[%i, %j + 1] : memref<?x?xf32>
        %2 = affine.load %ex[%i, %j] : memref<?x?xf32>
        %3 = affine.load %ey[%i + 1, %j] : memref<?x?xf32>
        %4 = affine.load %ey[%i, %j] : memref<?x?xf32>
        %5 = arith.subf %1, %2 : f32
        %6 = arith.addf %5, %3 : f32
        %7 = arith.subf %6, %4 : f32
        %8 = arith.mulf %most, %7 : f32
        %9 = arith.subf %0, %8 : f32
        affine.store %9, %hz[%i, %j] : memref<?x?xf32>
      }
    }
  }
  return
}
