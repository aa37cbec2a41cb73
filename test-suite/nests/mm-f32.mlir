// C = alpha A B + beta C in single precision: a thread has 8 x 8 cells.
func.func @mm(
    %c: memref<?x?xf32> {stencil.name = "C", stencil.extents = ["N", "M"]},
    %a: memref<?x?xf32> {stencil.name = "A", stencil.extents = ["N", "K"]},
    %b: memref<?x?xf32> {stencil.name = "B", stencil.extents = ["K", "M"]},
    %alpha: f32 {stencil.name = "alpha"}, %beta: f32 {stencil.name = "beta"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %c, %c0 : memref<?x?xf32>
  %m = memref.dim %c, %c1 : memref<?x?xf32>
  %k = memref.dim %a, %c1 : memref<?x?xf32>
  affine.parallel (%i, %j) = (0, 0) to (symbol(%n), symbol(%m)) {
    %0 = affine.load %c[%i, %j] : memref<?x?xf32>
    %1 = arith.mulf %0, %beta : f32
    affine.store %1, %c[%i, %j] : memref<?x?xf32>
    affine.for %l = 0 to %k {
      %2 = affine.load %c[%i, %j] : memref<?x?xf32>
      %3 = affine.load %a[%i, %l] : memref<?x?xf32>
      %4 = affine.load %b[%l, %j] : memref<?x?xf32>
      %5 = arith.mulf %alpha, %3 : f32
      %6 = arith.mulf %5, %4 : f32
      %7 = arith.addf %2, %6 : f32
      affine.store %7, %c[%i, %j] : memref<?x?xf32>
    }
  }
  return
}
