// RUN: split-file %s %t
// RUN: stencilc %t/pieces.stencil --emit=stencil -o %t.mlir
// RUN: stencil-opt %t.mlir --pass-pipeline='builtin.module(tile-overlapped{strategy=stream pyramid-height=1},split-interior,lower-stream,gpu.module(canonicalize,cse))' | FileCheck %t/pieces.stencil

//--- pieces.stencil
# Where an apply has several pieces, every tile is checked: each cell takes the value of the piece
# that covers it, or keeps its own.
param N
grid G = [0..N-1, 0..N-1]
field A : f32 on G
fn f -> A {
  [0, 0..N-1] = 0.5 * A[0,0]
  [1..N-2, 1..N-2] = A[0,-1] + A[1,0]
}
steps 1
# CHECK: gpu.func @pieces_1(
# CHECK: scf.for
# CHECK-NOT: vector.load
# CHECK: arith.mulf
# CHECK: %[[sum:.+]] = arith.addf
# CHECK: %[[inner:.+]] = arith.select {{.*}}, %[[sum]],
# CHECK: arith.select {{.*}}, %[[inner]]
# CHECK: gpu.return
