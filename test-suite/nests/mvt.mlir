// x1 += A y1 and x2 += A^T y2: two outermost loops, so two launches.
func.func @mvt(
    %x1: memref<?xf32> {stencil.name = "x1", stencil.extents = ["N"]},
    %x2: memref<?xf32> {stencil.name = "x2", stencil.extents = ["N"]},
    %y1: memref<?xf32> {stencil.name = "y1", stencil.extents = ["N"]},
    %y2: memref<?xf32> {stencil.name = "y2", stencil.extents = ["N"]},
    %a: memref<?x?xf32> {stencil.name = "A", stencil.extents = ["N", "N"]}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?x?xf32>
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %n {
      %0 = affine.load %x1[%i] : memref<?xf32>
      %1 = affine.load %a[%i, %j] : memref<?x?xf32>
      %2 = affine.load %y1[%j] : memref<?xf32>
      %3 = arith.mulf %1, %2 : f32
      %4 = arith.addf %0, %3 : f32
      affine.store %4, %x1[%i] : memref<?xf32>
    }
  }
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %n {
      %0 = affine.load %x2[%i] : memref<?xf32>
      %1 = affine.load %a[%j, %i] : memref<?x?xf32>
      %2 = affine.load %y2[%j] : memref<?xf32>
      %3 = arith.mulf %1, %2 : f32
      %4 = arith.addf %0, %3 : f32
      affine.store %4, %x2[%i] : memref<?xf32>
    }
  }
  return
}
