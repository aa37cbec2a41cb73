// x = A^T y. Threads are columns, so that a warp reads neighbouring cells of A.
func.func @tmv(
    %x: memref<?xf32> {stencil.name = "x", stencil.extents = ["M"]},
    %a: memref<?x?xf32> {stencil.name = "A", stencil.extents = ["N", "M"]},
    %y: memref<?xf32> {stencil.name = "y", stencil.extents = ["N"]},
    %n: index {stencil.name = "N"}, %m: index {stencil.name = "M"}) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to %m {
    affine.store %zero, %x[%i] : memref<?xf32>
    affine.for %j = 0 to %n {
      %0 = affine.load %x[%i] : memref<?xf32>
      %1 = affine.load %a[%j, %i] : memref<?x?xf32>
      %2 = affine.load %y[%j] : memref<?xf32>
      %3 = arith.mulf %1, %2 : f32
      %4 = arith.addf %0, %3 : f32
      affine.store %4, %x[%i] : memref<?xf32>
    }
  }
  return
}
