// A = L U in place, row by row, then L y = b and U x = y.
func.func @ludcmp(
    %A: memref<?x?xf64> {stencil.name = "A", stencil.extents = ["N", "N"]},
    %x: memref<?xf64> {stencil.name = "x", stencil.extents = ["N"]},
    %b: memref<?xf64> {stencil.name = "b", stencil.extents = ["N"]},
    %n: index {stencil.name = "N"}) {
  %y = memref.alloc(%n) : memref<?xf64>
  affine.for %i = 0 to %n {
    affine.for %j = 0 to affine_map<(i) -> (i)>(%i) {
      affine.for %k = 0 to affine_map<(j) -> (j)>(%j) {
        %0 = affine.load %A[%i, %j] : memref<?x?xf64>
        %1 = affine.load %A[%i, %k] : memref<?x?xf64>
        %2 = affine.load %A[%k, %j] : memref<?x?xf64>
        %3 = arith.mulf %1, %2 : f64
        %4 = arith.subf %0, %3 : f64
        affine.store %4, %A[%i, %j] : memref<?x?xf64>
      }
      %5 = affine.load %A[%i, %j] : memref<?x?xf64>
      %6 = affine.load %A[%j, %j] : memref<?x?xf64>
      %7 = arith.divf %5, %6 : f64
      affine.store %7, %A[%i, %j] : memref<?x?xf64>
    }
    affine.for %j = affine_map<(i) -> (i)>(%i) to %n {
      affine.for %k = 0 to affine_map<(i) -> (i)>(%i) {
        %0 = affine.load %A[%i, %j] : memref<?x?xf64>
        %1 = affine.load %A[%i, %k] : memref<?x?xf64>
        %2 = affine.load %A[%k, %j] : memref<?x?xf64>
        %3 = arith.mulf %1, %2 : f64
        %4 = arith.subf %0, %3 : f64
        affine.store %4, %A[%i, %j] : memref<?x?xf64>
      }
    }
  }
  affine.for %i = 0 to %n {
    %0 = affine.load %b[%i] : memref<?xf64>
    affine.store %0, %y[%i] : memref<?xf64>
    affine.for %j = 0 to affine_map<(i) -> (i)>(%i) {
      %1 = affine.load %y[%i] : memref<?xf64>
      %2 = affine.load %A[%i, %j] : memref<?x?xf64>
      %3 = affine.load %y[%j] : memref<?xf64>
      %4 = arith.mulf %2, %3 : f64
      %5 = arith.subf %1, %4 : f64
      affine.store %5, %y[%i] : memref<?xf64>
    }
  }
  affine.for %r = 0 to %n {
    %0 = affine.load %y[symbol(%n) - 1 - %r] : memref<?xf64>
    affine.store %0, %x[symbol(%n) - 1 - %r] : memref<?xf64>
    affine.for %j = affine_map<(r)[n] -> (n - r)>(%r)[%n] to %n {
      %1 = affine.load %x[symbol(%n) - 1 - %r] : memref<?xf64>
      %2 = affine.load %A[symbol(%n) - 1 - %r, %j] : memref<?x?xf64>
      %3 = affine.load %x[%j] : memref<?xf64>
      %4 = arith.mulf %2, %3 : f64
      %5 = arith.subf %1, %4 : f64
      affine.store %5, %x[symbol(%n) - 1 - %r] : memref<?xf64>
    }
    %6 = affine.load %x[symbol(%n) - 1 - %r] : memref<?xf64>
    %7 = affine.load %A[symbol(%n) - 1 - %r, symbol(%n) - 1 - %r] : memref<?x?xf64>
    %8 = arith.divf %6, %7 : f64
    affine.store %8, %x[symbol(%n) - 1 - %r] : memref<?xf64>
  }
  memref.dealloc %y : memref<?xf64>
  return
}
