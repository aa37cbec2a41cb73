// RUN: stencilc %programs/star3d2r.stencil --emit=stencil -D N=256 -D M=256 -D L=256 --fp-contract=off -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=plane tile=64,8,32 per-thread=1,1,4},lower-plane,gpu.module(canonicalize,cse))' | FileCheck %s
// Tiles of 8 rows of 8 groups. A thread holds planes -2 to 2 of its group. The current plane lies in
// shared memory, with two rows above and below and a group on each side, beside the next one.

// CHECK: gpu.func @star3d2r_0(
// CHECK-SAME: memref<2x12x40xf32, #gpu.address_space<workgroup>>
// CHECK-SAME: known_block_size = array<i32: 8, 8, 1>
// Five planes of the own group before the first iteration, and the rim of the first one: 2 x 2 rows of 8
// groups and 2 groups in each of 8 rows, which is less than one for each thread.
// CHECK-COUNT-5: vector.load {{.*}} {alignment = 16 : i64} : memref<256x256x256xf32
// CHECK: arith.cmpi {{.*}}
// CHECK: gpu.barrier
// CHECK: scf.for
// CHECK-SAME: -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, index, index)
// The next plane of the own group, and of the rim.
// CHECK: vector.load {{.*}} : memref<256x256x256xf32
// CHECK: scf.if
// CHECK: vector.load {{.*}} : memref<256x256x256xf32
// Two groups beside the own one and four above and below.
// CHECK: scf.if
// CHECK-COUNT-6: vector.load {{.*}}#gpu.address_space<workgroup>>
// CHECK: arith.select
// CHECK: vector.store {{.*}} : memref<256x256x256xf32
// CHECK: vector.store {{.*}}#gpu.address_space<workgroup>>
// CHECK: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: gpu.return
