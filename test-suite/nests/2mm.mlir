// R = alpha A B C + beta R, by a product that the function keeps to itself.
func.func @two_products(
    %R: memref<?x?xf64> {stencil.name = "R", stencil.extents = ["N", "M"]},
    %A: memref<?x?xf64> {stencil.name = "A", stencil.extents = ["N", "K"]},
    %B: memref<?x?xf64> {stencil.name = "B", stencil.extents = ["K", "D"]},
    %C: memref<?x?xf64> {stencil.name = "C", stencil.extents = ["D", "M"]},
    %alpha: f64 {stencil.name = "alpha"}, %beta: f64 {stencil.name = "beta"},
    %n: index {stencil.name = "N"}, %m: index {stencil.name = "M"},
    %k: index {stencil.name = "K"}, %d: index {stencil.name = "D"}) {
  %zero = arith.constant 0.0 : f64
  %T = memref.alloc(%n, %d) : memref<?x?xf64>
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %d {
      affine.store %zero, %T[%i, %j] : memref<?x?xf64>
      affine.for %p = 0 to %k {
        %0 = affine.load %A[%i, %p] : memref<?x?xf64>
        %1 = arith.mulf %alpha, %0 : f64
        %2 = affine.load %B[%p, %j] : memref<?x?xf64>
        %3 = arith.mulf %1, %2 : f64
        %4 = affine.load %T[%i, %j] : memref<?x?xf64>
        %5 = arith.addf %4, %3 : f64
        affine.store %5, %T[%i, %j] : memref<?x?xf64>
      }
    }
  }
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      %0 = affine.load %R[%i, %j] : memref<?x?xf64>
      %1 = arith.mulf %0, %beta : f64
      affine.store %1, %R[%i, %j] : memref<?x?xf64>
      affine.for %p = 0 to %d {
        %2 = affine.load %T[%i, %p] : memref<?x?xf64>
        %3 = affine.load %C[%p, %j] : memref<?x?xf64>
        %4 = arith.mulf %2, %3 : f64
        %5 = affine.load %R[%i, %j] : memref<?x?xf64>
        %6 = arith.addf %5, %4 : f64
        affine.store %6, %R[%i, %j] : memref<?x?xf64>
      }
    }
  }
  memref.dealloc %T : memref<?x?xf64>
  return
}
