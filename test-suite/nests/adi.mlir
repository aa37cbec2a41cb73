// T steps of an implicit scheme in alternating directions: each step solves a tridiagonal system
// for each column and then one for each row, forward and back. The values of the forward sweeps
// are arrays of the function's own. From u it makes v by columns, and from v the new u by rows.
func.func @adi(
    %u: memref<?x?xf32> {stencil.name = "u", stencil.extents = ["N", "N"]},
    %r: f32 {stencil.name = "r"}, %t: index {stencil.name = "T"},
    %n: index {stencil.name = "N"}) {
  %v = memref.alloc(%n, %n) : memref<?x?xf32>
  %p = memref.alloc(%n, %n) : memref<?x?xf32>
  %q = memref.alloc(%n, %n) : memref<?x?xf32>
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  // -r of one sweep times the neighbours' sum, 1 + 2 r and 1 - 2 r times the cell.
  %double = arith.mulf %two, %r : f32
  %more = arith.addf %one, %double : f32
  %less = arith.subf %one, %double : f32
  affine.for %step = 0 to %t {
    affine.for %i = 1 to affine_map<(n) -> (n - 1)>(%n) {
      affine.store %one, %v[0, %i] : memref<?x?xf32>
      affine.store %zero, %p[%i, 0] : memref<?x?xf32>
      affine.store %one, %q[%i, 0] : memref<?x?xf32>
      affine.for %j = 1 to affine_map<(n) -> (n - 1)>(%n) {
        %0 = affine.load %p[%i, %j - 1] : memref<?x?xf32>
        %1 = arith.mulf %r, %0 : f32
        %2 = arith.subf %more, %1 : f32
        %3 = arith.divf %r, %2 : f32
        affine.store %3, %p[%i, %j] : memref<?x?xf32>
        %4 = affine.load %u[%j, %i - 1] : memref<?x?xf32>
        %5 = affine.load %u[%j, %i] : memref<?x?xf32>
        %6 = affine.load %u[%j, %i + 1] : memref<?x?xf32>
        %7 = arith.addf %4, %6 : f32
        %8 = arith.mulf %r, %7 : f32
        %9 = arith.mulf %less, %5 : f32
        %10 = arith.addf %8, %9 : f32
        %11 = affine.load %q[%i, %j - 1] : memref<?x?xf32>
        %12 = arith.mulf %r, %11 : f32
        %13 = arith.addf %10, %12 : f32
        %14 = arith.divf %13, %2 : f32
        affine.store %14, %q[%i, %j] : memref<?x?xf32>
      }
      affine.store %one, %v[symbol(%n) - 1, %i] : memref<?x?xf32>
      affine.for %k = 2 to %n {
        %0 = affine.load %p[%i, symbol(%n) - %k] : memref<?x?xf32>
        %1 = affine.load %v[symbol(%n) - %k + 1, %i] : memref<?x?xf32>
        %2 = arith.mulf %0, %1 : f32
        %3 = affine.load %q[%i, symbol(%n) - %k] : memref<?x?xf32>
        %4 = arith.addf %2, %3 : f32
        affine.store %4, %v[symbol(%n) - %k, %i] : memref<?x?xf32>
      }
    }
    affine.for %i = 1 to affine_map<(n) -> (n - 1)>(%n) {
      affine.store %one, %u[%i, 0] : memref<?x?xf32>
      affine.store %zero, %p[%i, 0] : memref<?x?xf32>
      affine.store %one, %q[%i, 0] : memref<?x?xf32>
      affine.for %j = 1 to affine_map<(n) -> (n - 1)>(%n) {
        %0 = affine.load %p[%i, %j - 1] : memref<?x?xf32>
        %1 = arith.mulf %r, %0 : f32
        %2 = arith.subf %more, %1 : f32
        %3 = arith.divf %r, %2 : f32
        affine.store %3, %p[%i, %j] : memref<?x?xf32>
        %4 = affine.load %v[%i - 1, %j] : memref<?x?xf32>
        %5 = affine.load %v[%i, %j] : memref<?x?xf32>
        %6 = affine.load %v[%i + 1, %j] : memref<?x?xf32>
        %7 = arith.addf %4, %6 : f32
        %8 = arith.mulf %r, %7 : f32
        %9 = arith.mulf %less, %5 : f32
        %10 = arith.addf %8, %9 : f32
        %11 = affine.load %q[%i, %j - 1] : memref<?x?xf32>
        %12 = arith.mulf %r, %11 : f32
        %13 = arith.addf %10, %12 : f32
        %14 = arith.divf %13, %2 : f32
        affine.store %14, %q[%i, %j] : memref<?x?xf32>
      }
      affine.store %one, %u[%i, symbol(%n) - 1] : memref<?x?xf32>
      affine.for %k = 2 to %n {
        %0 = affine.load %p[%i, symbol(%n) - %k] : memref<?x?xf32>
        %1 = affine.load %u[%i, symbol(%n) - %k + 1] : memref<?x?xf32>
        %2 = arith.mulf %0, %1 : f32
        %3 = affine.load %q[%i, symbol(%n) - %k] : memref<?x?xf32>
        %4 = arith.addf %2, %3 : f32
        affine.store %4, %u[%i, symbol(%n) - %k] : memref<?x?xf32>
      }
    }
  }
  memref.dealloc %v : memref<?x?xf32>
  memref.dealloc %p : memref<?x?xf32>
  memref.dealloc %q : memref<?x?xf32>
  return
}
