// Sums of absolute differences of the 4 x 4 block of each place with blocks moved by up to R cells.
func.func @sad(
    %s: memref<?x?x?xi32> {stencil.name = "S", stencil.extents = ["N", "M", "D"]},
    %a: memref<?x?xi32> {stencil.name = "A"},
    %b: memref<?x?xi32> {stencil.name = "B"},
    %n: index {stencil.name = "N"}, %m: index {stencil.name = "M"},
    %d: index {stencil.name = "D"}) {
  %zero = arith.constant 0 : i32
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      affine.for %r = 0 to %d {
        affine.store %zero, %s[%i, %j, %r] : memref<?x?x?xi32>
        affine.for %k = 0 to 4 {
          affine.for %l = 0 to 4 {
            %0 = affine.load %a[4 * %i + %k, 4 * %j + %l] : memref<?x?xi32>
            %1 = affine.load %b[4 * %i + %k, 4 * %j + %l + %r] : memref<?x?xi32>
            %2 = arith.subi %0, %1 : i32
            %3 = arith.subi %zero, %2 : i32
            %4 = arith.maxsi %2, %3 : i32
            %5 = affine.load %s[%i, %j, %r] : memref<?x?x?xi32>
            %6 = arith.addi %5, %4 : i32
            affine.store %6, %s[%i, %j, %r] : memref<?x?x?xi32>
          }
        }
      }
    }
  }
  return
}
