// RUN: split-file %s %t
// RUN: stencilc %t/ring.stencil --emit=gpu --strategy=block --tile=64 --per-thread=1 --pyramid-height=2 | FileCheck %s
// RUN: stencilc %t/beside.stencil --emit=gpu --strategy=block --tile=64 --per-thread=1 --pyramid-height=1 | FileCheck %s --check-prefix=BESIDE
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

// Another grid than that of the tiles may have no cells; then nothing is loaded from it.
// BESIDE: } else {
// BESIDE: arith.remsi
// BESIDE: memref.load
// BESIDE: memref.store
// BESIDE: %[[last:.+]] = affine.apply
// BESIDE: %[[holds:.+]] = arith.cmpi sge, %[[last]], %c0
// BESIDE-NEXT: scf.if %[[holds]] {
// BESIDE-NOT: }
// BESIDE: arith.remsi
// BESIDE-NOT: }
// BESIDE: memref.load

//--- ring.stencil
param N
grid G = [0..N-1]
field A : f32 on G
boundary A = periodic
fn ring -> A [0..N-1] = A[-1] + A[1]
steps 2

//--- beside.stencil
param N
grid G = [0..N]
grid H = [0..N-1]
field A : f32 on G
const field B : f32 on H
boundary B = periodic
fn beside -> A [0..N-1] = A[0] + B[1]
steps 2
