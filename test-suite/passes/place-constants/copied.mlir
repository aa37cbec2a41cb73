// RUN: stencilc %s --emit=gpu | FileCheck %s
// A table that does not fit: all threads use the same element of it, and the threads of a block copy it to shared memory.
// CHECK: tiled.not_constant = ["y: the kernel stores to it", "W: the kernel copies it to shared memory"]
func.func @copied(
    %y: memref<?xf32> {stencil.name = "y", stencil.extents = ["N"]},
    %w: memref<4096xf32> {stencil.name = "W"},
    %n: index {stencil.name = "N"}) {
  affine.for %i = 0 to %n {
    affine.for %j = 0 to 4096 {
      %0 = affine.load %w[%j] : memref<4096xf32>
      %1 = affine.load %y[%i] : memref<?xf32>
      %2 = arith.mulf %0, %1 : f32
      affine.store %2, %y[%i] : memref<?xf32>
    }
  }
  return
}
