// y += a x.
func.func @saxpy(
    %y: memref<?xf32> {stencil.name = "y", stencil.extents = ["N"]},
    %x: memref<?xf32> {stencil.name = "x", stencil.extents = ["N"]},
    %a: f32 {stencil.name = "a"}, %n: index {stencil.name = "N"}) {
  affine.parallel (%i) = (0) to (symbol(%n)) {
    %0 = affine.load %x[%i] : memref<?xf32>
    %1 = affine.load %y[%i] : memref<?xf32>
    %2 = arith.mulf %a, %0 : f32
    %3 = arith.addf %2, %1 : f32
    affine.store %3, %y[%i] : memref<?xf32>
  }
  return
}
