// RUN: split-file %s %t
// RUN: stencilc %t/ring.stencil --emit=gpu --strategy=block --tile=64 --per-thread=1 --pyramid-height=2 | FileCheck %s
// Tiles at a rim hold cells beyond the grid: each is loaded and computed as the cell that it repeats, by a
// remainder, and only cells of the grid are stored. Tiles away from it know nothing of that.

// CHECK: gpu.func @ring_2(
// CHECK: %[[A:.+]] = memref.reinterpret_cast %arg0
// CHECK: %[[Next:.+]] = memref.reinterpret_cast %arg1
// CHECK: scf.if
// CHECK-NOT: arith.remsi
// CHECK: memref.store %{{.*}}, %[[Next]]
// CHECK: } else {
// CHECK: arith.remsi
// CHECK: memref.load %[[A]]
// CHECK: gpu.barrier
// CHECK: arith.addf
// CHECK: gpu.barrier
// CHECK: arith.addf
// CHECK: scf.if
// CHECK: memref.store %{{.*}}, %[[Next]]

//--- ring.stencil
param N
grid G = [0..N-1]
field A : f32 on G
boundary A = periodic
fn ring -> A [0..N-1] = A[-1] + A[1]
steps 2
