// x = A y. Threads are rows; each goes through the columns. No mapping coalesces A (section 5.3 of
// Baskaran et al.).
func.func @mv(
    %x: memref<?xf32> {stencil.name = "x", stencil.extents = ["N"]},
    %a: memref<?x?xf32> {stencil.name = "A", stencil.extents = ["N", "M"]},
    %y: memref<?xf32> {stencil.name = "y", stencil.extents = ["M"]},
    %n: index {stencil.name = "N"}, %m: index {stencil.name = "M"}) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to %n {
    affine.store %zero, %x[%i] : memref<?xf32>
    affine.for %j = 0 to %m {
      %0 = affine.load %x[%i] : memref<?xf32>
      %1 = affine.load %a[%i, %j] : memref<?x?xf32>
      %2 = affine.load %y[%j] : memref<?xf32>
      %3 = arith.mulf %1, %2 : f32
      %4 = arith.addf %0, %3 : f32
      affine.store %4, %x[%i] : memref<?xf32>
    }
  }
  return
}
