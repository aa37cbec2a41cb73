// RC5-72, twelve rounds: the words that each of N keys makes of two plain words. A key is three
// words: its number counted from `first`, `middle`, and the byte `last`. S is the schedule of each
// key, with the numbers of a key side by side with those of its neighbours.
func.func @rc5(
    %c: memref<2x?xi32> {stencil.name = "C", stencil.extents = ["N"]},
    %s: memref<26x?xi32> {stencil.name = "S", stencil.extents = ["N"]},
    %l: memref<3x?xi32> {stencil.name = "L", stencil.extents = ["N"]},
    %magic: memref<26xi32> {stencil.name = "magic"},
    %n: index {stencil.name = "N"}, %first: i32 {stencil.name = "first"},
    %middle: i32 {stencil.name = "middle"}, %last: i32 {stencil.name = "last"},
    %plain0: i32 {stencil.name = "plain0"}, %plain1: i32 {stencil.name = "plain1"}) {
  %zero = arith.constant 0 : i32
  %three = arith.constant 3 : i32
  %twentynine = arith.constant 29 : i32
  %width = arith.constant 32 : i32
  %most = arith.constant 31 : i32
  affine.for %i = 0 to %n {
    %number = arith.index_cast %i : index to i32
    %key = arith.addi %number, %first : i32
    affine.store %key, %l[0, %i] : memref<3x?xi32>
    affine.store %middle, %l[1, %i] : memref<3x?xi32>
    affine.store %last, %l[2, %i] : memref<3x?xi32>
    affine.for %j = 0 to 26 {
      %m = affine.load %magic[%j] : memref<26xi32>
      affine.store %m, %s[%j, %i] : memref<26x?xi32>
    }
    // The two words that go on from step to step lie in C.
    affine.store %zero, %c[0, %i] : memref<2x?xi32>
    affine.store %zero, %c[1, %i] : memref<2x?xi32>
    affine.for %pass = 0 to 3 {
      affine.for %j = 0 to 26 {
        %a0 = affine.load %c[0, %i] : memref<2x?xi32>
        %b0 = affine.load %c[1, %i] : memref<2x?xi32>
        %s0 = affine.load %s[%j, %i] : memref<26x?xi32>
        %0 = arith.addi %s0, %a0 : i32
        %1 = arith.addi %0, %b0 : i32
        %2 = arith.shli %1, %three : i32
        %3 = arith.shrui %1, %twentynine : i32
        %a = arith.ori %2, %3 : i32
        affine.store %a, %s[%j, %i] : memref<26x?xi32>
        affine.store %a, %c[0, %i] : memref<2x?xi32>
        // The words of the key take turns.
        %l0 = affine.load %l[0, %i] : memref<3x?xi32>
        %l1 = affine.load %l[1, %i] : memref<3x?xi32>
        %l2 = affine.load %l[2, %i] : memref<3x?xi32>
        %sum = arith.addi %a, %b0 : i32
        %4 = arith.addi %l0, %sum : i32
        %left = arith.andi %sum, %most : i32
        %5 = arith.subi %width, %left : i32
        %right = arith.andi %5, %most : i32
        %6 = arith.shli %4, %left : i32
        %7 = arith.shrui %4, %right : i32
        %b = arith.ori %6, %7 : i32
        affine.store %l1, %l[0, %i] : memref<3x?xi32>
        affine.store %l2, %l[1, %i] : memref<3x?xi32>
        affine.store %b, %l[2, %i] : memref<3x?xi32>
        affine.store %b, %c[1, %i] : memref<2x?xi32>
      }
    }
    %s0 = affine.load %s[0, %i] : memref<26x?xi32>
    %x = arith.addi %plain0, %s0 : i32
    affine.store %x, %c[0, %i] : memref<2x?xi32>
    %s1 = affine.load %s[1, %i] : memref<26x?xi32>
    %y = arith.addi %plain1, %s1 : i32
    affine.store %y, %c[1, %i] : memref<2x?xi32>
    affine.for %round = 1 to 13 {
      %a0 = affine.load %c[0, %i] : memref<2x?xi32>
      %b0 = affine.load %c[1, %i] : memref<2x?xi32>
      %0 = arith.xori %a0, %b0 : i32
      %1 = arith.andi %b0, %most : i32
      %2 = arith.subi %width, %1 : i32
      %3 = arith.andi %2, %most : i32
      %4 = arith.shli %0, %1 : i32
      %5 = arith.shrui %0, %3 : i32
      %6 = arith.ori %4, %5 : i32
      %even = affine.load %s[2 * %round, %i] : memref<26x?xi32>
      %a = arith.addi %6, %even : i32
      %7 = arith.xori %b0, %a : i32
      %8 = arith.andi %a, %most : i32
      %9 = arith.subi %width, %8 : i32
      %10 = arith.andi %9, %most : i32
      %11 = arith.shli %7, %8 : i32
      %12 = arith.shrui %7, %10 : i32
      %13 = arith.ori %11, %12 : i32
      %odd = affine.load %s[2 * %round + 1, %i] : memref<26x?xi32>
      %b = arith.addi %13, %odd : i32
      affine.store %a, %c[0, %i] : memref<2x?xi32>
      affine.store %b, %c[1, %i] : memref<2x?xi32>
    }
  }
  return
}
