// RUN: stencilc run %s --target sim --check --size N=1 --in S=random:1 --in B=random:2
// Threads other than the first have no value of `%0`, and must not divide by what stands for it.

func.func @first(%s: memref<1xi32> {stencil.name = "S"}, %b: memref<8xi32> {stencil.name = "B"},
                 %n: index {stencil.name = "N"}) {
  %c7 = arith.constant 7 : i32
  affine.for %i = 0 to %n {
    %0 = affine.load %s[0] : memref<1xi32>
    affine.for %k = 0 to 2 {
      %1 = arith.divsi %c7, %0 : i32
      affine.for %l = 0 to 2 {
        affine.store %1, %s[0] : memref<1xi32>
      }
    }
    affine.for %j = 0 to 8 {
      %2 = affine.load %b[%j] : memref<8xi32>
      %3 = arith.addi %2, %c7 : i32
      affine.store %3, %b[%j] : memref<8xi32>
    }
  }
  return
}
