// The sums of the cells of each row up to each cell, in place, by a thread for each row. A
// transpose would move more bytes than the one sweep saves.
func.func @prefix(
    %a: memref<?x?xf32> {stencil.name = "A", stencil.extents = ["N", "M"]},
    %n: index {stencil.name = "N"}, %m: index {stencil.name = "M"}) {
  affine.for %i = 0 to %n {
    affine.for %j = 1 to %m {
      %0 = affine.load %a[%i, %j - 1] : memref<?x?xf32>
      %1 = affine.load %a[%i, %j] : memref<?x?xf32>
      %2 = arith.addf %0, %1 : f32
      affine.store %2, %a[%i, %j] : memref<?x?xf32>
    }
  }
  return
}
