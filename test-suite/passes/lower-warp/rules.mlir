// RUN: split-file %s %t
// RUN: stencilc %t/held.stencil --emit=gpu --strategy=warp --tile=56 --per-thread=2 --pyramid-height=2 | FileCheck %s
// RUN: stencilc %t/ring.stencil --emit=gpu --strategy=warp --tile=56 --per-thread=2 --pyramid-height=2 | FileCheck %s --check-prefix=RING
// RUN: stencilc run %t/held.stencil --target sim --check --fp-contract=off --size N=5 --steps 7 --in A=random:1 --strategy=warp --pyramid-height=3
// RUN: stencilc run %t/ring.stencil --target sim --check --fp-contract=off --size N=3 --steps 7 --in A=random:1 --strategy=warp --pyramid-height=5
// RUN: stencilc run %t/ring.stencil --target sim --check --fp-contract=off --size N=203 --steps 7 --in A=random:1 --strategy=warp --pyramid-height=5
// Tiles at a rim select the cell that a boundary rule finds among those in registers, or hold the grid repeated;
// tiles away from it know nothing of that.

// CHECK: scf.if
// CHECK-NOT: arith.maxsi
// CHECK: } else {
// CHECK: arith.maxsi
// CHECK: arith.select

// RING: scf.if
// RING-NOT: arith.remsi
// RING: } else {
// RING: arith.remsi
// RING: memref.load

//--- held.stencil
param N
grid G = [0..N-1]
field A : f32 on G
boundary A = reflect
fn held -> A [0..N-1] = A[-2] + A[1]
steps 4

//--- ring.stencil
param N
grid G = [0..N-1]
field A : f32 on G
boundary A = periodic
fn ring -> A [0..N-1] = 0.5 * (A[-1] + A[1])
steps 4
