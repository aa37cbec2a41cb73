// The most pairs of each part of a sequence, as of RNA, from shorter parts. Rows go upward.
func.func @nussinov(
    %P: memref<?x?xi32> {stencil.name = "P", stencil.extents = ["N", "N"]},
    %S: memref<?xi32> {stencil.name = "S", stencil.extents = ["N"]},
    %n: index {stencil.name = "N"}) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %three = arith.constant 3 : i32
  affine.for %r = 0 to %n {
    affine.for %j = affine_map<(r)[n] -> (n - r)>(%r)[%n] to %n {
      %0 = affine.load %P[symbol(%n) - 1 - %r, %j - 1] : memref<?x?xi32>
      %1 = affine.load %P[symbol(%n) - 1 - %r, %j] : memref<?x?xi32>
      %2 = arith.maxsi %0, %1 : i32
      %3 = affine.load %P[symbol(%n) - %r, %j] : memref<?x?xi32>
      %4 = arith.maxsi %2, %3 : i32
      %5 = affine.load %P[symbol(%n) - %r, %j - 1] : memref<?x?xi32>
      %6 = affine.load %S[symbol(%n) - 1 - %r] : memref<?xi32>
      %7 = affine.load %S[%j] : memref<?xi32>
      %8 = arith.addi %6, %7 : i32
      %9 = arith.cmpi eq, %8, %three : i32
      %10 = arith.select %9, %one, %zero : i32
      %11 = arith.addi %5, %10 : i32
      %12 = arith.maxsi %4, %11 : i32
      affine.store %12, %P[symbol(%n) - 1 - %r, %j] : memref<?x?xi32>
      affine.for %k = affine_map<(r)[n] -> (n - r)>(%r)[%n] to affine_map<(j) -> (j)>(%j) {
        %13 = affine.load %P[symbol(%n) - 1 - %r, %j] : memref<?x?xi32>
        %14 = affine.load %P[symbol(%n) - 1 - %r, %k] : memref<?x?xi32>
        %15 = affine.load %P[%k + 1, %j] : memref<?x?xi32>
        %16 = arith.addi %14, %15 : i32
        %17 = arith.maxsi %13, %16 : i32
        affine.store %17, %P[symbol(%n) - 1 - %r, %j] : memref<?x?xi32>
      }
    }
  }
  return
}
