// RUN: split-file %s %t
// RUN: stencilc %t/heat.stencil --arch=x86-64-v4 --emit=gpu --tile=64,128 --pyramid-height=2 \
// RUN:     | FileCheck %s --check-prefix=STEPS
// RUN: stencilc %t/heat.stencil --arch=x86-64-v3 --emit=gpu --tile=64,128 --pyramid-height=2 \
// RUN:     | FileCheck %s --check-prefix=NARROW
// RUN: stencilc %t/rule.stencil --arch=x86-64-v4 --emit=gpu | FileCheck %s --check-prefix=RULE
// RUN: stencilc %t/exp.stencil --arch=x86-64-v4 --emit=gpu | FileCheck %s --check-prefix=EXP
// RUN: stencilc %t/heat.stencil --arch=neoverse-v2 --emit=asm | FileCheck %s --check-prefix=ARM
// RUN: stencilc %t/wave.stencil --arch=x86-64-v4 --emit=gpu --tile=64,128 --pyramid-height=3 \
// RUN:     | FileCheck %s --check-prefix=WAVE
// RUN: stencilc %t/late.stencil --arch=x86-64-v4 --emit=gpu --tile=64,128 --pyramid-height=3 \
// RUN:     | FileCheck %s --check-prefix=LATE
// RUN: stencilc %t/pair.stencil --arch=x86-64-v4 --emit=gpu --tile=64,128 --pyramid-height=2 \
// RUN:     | FileCheck %s --check-prefix=PAIR
// RUN: not stencilc %t/heat.stencil --arch=x86-64-v4 --strategy=block --emit=gpu 2>&1 \
// RUN:     | FileCheck %s --check-prefix=BLOCK
// RUN: not stencilc %t/heat.stencil --arch=x86-64-v4 --emit=ptx 2>&1 \
// RUN:     | FileCheck %s --check-prefix=PTX

// Both steps share the function of a box, whose rows are computed in vectors of 64 bytes, four rows
// together. A row that several of them read is loaded once, and the cells beside a point are
// shifted out of two lines.
// STEPS: func.func private @box.0(
// STEPS: scf.if
// STEPS: scf.for
// STEPS: vector.load {{.*}} vector<16xf32>
// STEPS-COUNT-8: vector.shuffle
// STEPS-COUNT-4: vector.store
// STEPS-NOT: func.func private
// STEPS: func.func @heat_2({{.*}}%{{.*}}: index, %{{.*}}: memref<i8>)
// The second step runs a row behind the first, in slabs of four rows.
// STEPS: scf.for
// STEPS: func.call @box.0
// STEPS: arith.addi %{{.*}}, %c-1
// STEPS: func.call @box.0
// STEPS-NOT: func.call
// STEPS: return

// Vectors of half a line begin in lines seldom enough that each cell has its own load.
// NARROW: vector<8xf32>
// NARROW-NOT: vector.shuffle
// NARROW-NOT: vector<16xf32>

// Where reads leave the grid, cells are computed one by one; rows inside have no test.
// RULE: func.func private @box.0(
// RULE: arith.maxsi
// RULE: vector.load {{.*}} vector<16xf32>

// A function of the C library has no vectors. The cells of the rim, which keep their values, do.
// EXP: vector.load
// EXP-NEXT: arith.addi
// EXP-NEXT: vector.store
// EXP: math.exp %{{.*}} : f32
// EXP-NOT: vector

// `P' = U` needs no memory: the thread has windows of U alone, for the first two steps.
// WAVE: func.func @wave_3({{.*}}tiled.dynamic_shared = 11392
// WAVE: memref.view %{{.*}}[%c0][] : memref<11392xi8> to memref<1408xf32>
// WAVE: memref.view %{{.*}}[%c5696][] : memref<11392xi8> to memref<1408xf32>
// WAVE-NOT: memref.view
// WAVE: return

// Where P is read beside the point, its rim may be, and P has windows of its own.
// LATE: func.func @late_3({{.*}}tiled.dynamic_shared = 22784

// Both fields of a kernel, and both kernels, share the function that loads a box. It has no
// argument for the buffers of the kernel.
// PAIR: func.func private @box.0(%{{[^@]*}}tiled.name = "N"}, %{{[^@]*}}tiled.name = "M"}
// PAIR-NOT: tiled.name = "W
// PAIR: func.func @pair_2(
// PAIR-COUNT-2: func.call @box.0
// PAIR-NOT: func.func private
// PAIR: func.func @pair_1(
// PAIR-COUNT-2: func.call @box.0

// ARM: tile.stencil.heat_1:
// ARM: .globl stencil_code_

// BLOCK: declined [target]: the strategy block is for GPUs, not for processors; choose

// PTX: the level ptx is that of NVIDIA's GPUs, and x86-64-v4 is a processor; take llvm or asm

//--- heat.stencil
param N
param M
grid G = [0..N-1, 0..M-1]
field A : f32 on G
fn f -> A [1..N-2, 1..M-2] = 0.25*(A[-1,0] + A[1,0] + A[0,-1] + A[0,1])
steps 10

//--- rule.stencil
param N
param M
grid G = [0..N-1, 0..M-1]
field A : f32 on G
boundary A = nearest
fn f -> A [0..N-1, 0..M-1] = 0.25*(A[-1,0] + A[1,0] + A[0,-1] + A[0,1])
steps 10

//--- exp.stencil
param N
grid G = [0..N-1]
field A : f32 on G
fn f -> A [1..N-2] = exp(-A[-1]) + A[1]
steps 10

//--- wave.stencil
param N
param M
grid G = [0..N-1, 0..M-1]
field P : f32 on G
field U : f32 on G
fn f -> (P, U) [1..N-2, 1..M-2] =
    (U[0,0], U[-1,0] + U[1,0] + U[0,-1] + U[0,1] - 2*U[0,0] - P[0,0])
steps 10

//--- late.stencil
param N
param M
grid G = [0..N-1, 0..M-1]
field P : f32 on G
field U : f32 on G
fn f -> (P, U) [1..N-2, 1..M-2] =
    (U[0,0], U[-1,0] + U[1,0] + U[0,-1] + U[0,1] - 2*U[0,0] - P[0,1])
steps 10

//--- pair.stencil
param N
param M
struct Pair { a : f32, b : f32 }
grid G = [0..N-1, 0..M-1]
field W : Pair on G
boundary W = periodic
fn cross -> W [0..N-1, 0..M-1] = Pair { a: W[0,-1].b + W[-1,0].a, b: W[0,1].a + W[1,0].b }
steps 4
