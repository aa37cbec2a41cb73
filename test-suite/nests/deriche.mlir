// A recursive filter along rows, there and back, and along columns.
func.func @deriche(
    %O: memref<?x?xf32> {stencil.name = "O", stencil.extents = ["N", "M"]},
    %I: memref<?x?xf32> {stencil.name = "I", stencil.extents = ["N", "M"]},
    %a: f32 {stencil.name = "a"}, %b: f32 {stencil.name = "b"},
    %n: index {stencil.name = "N"}, %m: index {stencil.name = "M"}) {
  %Y = memref.alloc(%n, %m) : memref<?x?xf32>
  %Z = memref.alloc(%n, %m) : memref<?x?xf32>
  affine.for %i = 0 to %n {
    affine.for %j = 2 to %m {
      %0 = affine.load %I[%i, %j] : memref<?x?xf32>
      %1 = arith.mulf %a, %0 : f32
      %2 = affine.load %Y[%i, %j - 1] : memref<?x?xf32>
      %3 = arith.mulf %b, %2 : f32
      %4 = affine.load %Y[%i, %j - 2] : memref<?x?xf32>
      %5 = arith.addf %1, %3 : f32
      %6 = arith.subf %5, %4 : f32
      %7 = arith.mulf %a, %6 : f32
      affine.store %7, %Y[%i, %j] : memref<?x?xf32>
    }
    affine.for %j = 2 to %m {
      %0 = affine.load %I[%i, symbol(%m) + 1 - %j] : memref<?x?xf32>
      %1 = arith.mulf %a, %0 : f32
      %2 = affine.load %Z[%i, symbol(%m) - %j] : memref<?x?xf32>
      %3 = arith.mulf %b, %2 : f32
      %4 = arith.addf %1, %3 : f32
      affine.store %4, %Z[%i, symbol(%m) - 1 - %j] : memref<?x?xf32>
    }
  }
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      %0 = affine.load %Y[%i, %j] : memref<?x?xf32>
      %1 = affine.load %Z[%i, %j] : memref<?x?xf32>
      %2 = arith.addf %0, %1 : f32
      affine.store %2, %O[%i, %j] : memref<?x?xf32>
    }
  }
  affine.for %j = 0 to %m {
    affine.for %i = 1 to %n {
      %0 = affine.load %O[%i, %j] : memref<?x?xf32>
      %1 = affine.load %O[%i - 1, %j] : memref<?x?xf32>
      %2 = arith.mulf %b, %1 : f32
      %3 = arith.addf %0, %2 : f32
      affine.store %3, %O[%i, %j] : memref<?x?xf32>
    }
  }
  memref.dealloc %Y : memref<?x?xf32>
  memref.dealloc %Z : memref<?x?xf32>
  return
}
