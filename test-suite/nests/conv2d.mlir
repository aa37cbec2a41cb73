// O += W * A with 3 x 3 weights; A has a rim of two cells more than O.
func.func @conv2d(
    %o: memref<?x?xf32> {stencil.name = "O"},
    %a: memref<?x?xf32> {stencil.name = "A"},
    %w: memref<3x3xf32> {stencil.name = "W"},
    %n: index {stencil.name = "N"}, %m: index {stencil.name = "M"}) {
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      affine.for %k = 0 to 3 {
        affine.for %l = 0 to 3 {
          %0 = affine.load %o[%i, %j] : memref<?x?xf32>
          %1 = affine.load %a[%i + %k, %j + %l] : memref<?x?xf32>
          %2 = affine.load %w[%k, %l] : memref<3x3xf32>
          %3 = arith.mulf %1, %2 : f32
          %4 = arith.addf %0, %3 : f32
          affine.store %4, %o[%i, %j] : memref<?x?xf32>
        }
      }
    }
  }
  return
}
