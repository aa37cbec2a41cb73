// s = A^T r and q = A p, in one nest.
func.func @bicg(
    %s: memref<?xf64> {stencil.name = "s", stencil.extents = ["M"]},
    %q: memref<?xf64> {stencil.name = "q", stencil.extents = ["N"]},
    %A: memref<?x?xf64> {stencil.name = "A", stencil.extents = ["N", "M"]},
    %p: memref<?xf64> {stencil.name = "p", stencil.extents = ["M"]},
    %r: memref<?xf64> {stencil.name = "r", stencil.extents = ["N"]},
    %n: index {stencil.name = "N"},
    %m: index {stencil.name = "M"}) {
  %zero = arith.constant 0.0 : f64
  affine.for %j = 0 to %m {
    affine.store %zero, %s[%j] : memref<?xf64>
  }
  affine.for %i = 0 to %n {
    affine.store %zero, %q[%i] : memref<?xf64>
    affine.for %j = 0 to %m {
      %0 = affine.load %s[%j] : memref<?xf64>
      %1 = affine.load %r[%i] : memref<?xf64>
      %2 = affine.load %A[%i, %j] : memref<?x?xf64>
      %3 = arith.mulf %1, %2 : f64
      %4 = arith.addf %0, %3 : f64
      affine.store %4, %s[%j] : memref<?xf64>
      %5 = affine.load %q[%i] : memref<?xf64>
      %6 = affine.load %p[%j] : memref<?xf64>
      %7 = arith.mulf %2, %6 : f64
      %8 = arith.addf %5, %7 : f64
      affine.store %8, %q[%i] : memref<?xf64>
    }
  }
  return
}
