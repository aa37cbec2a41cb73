// RUN: stencilc %programs/star3d2r.stencil --emit=stencil -D N=256 -D M=256 -D L=256 --fp-contract=off -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=plane tile=64,8,32 per-thread=1,1,4},lower-plane{unroll=1 ahead=1},gpu.module(canonicalize,cse))' | FileCheck %s
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=plane tile=64,8,32 per-thread=1,1,4},lower-plane{unroll=3 ahead=1},gpu.module(canonicalize,cse))' | FileCheck %s --check-prefix=BODY
// Tiles of 8 rows of 8 segments. A thread holds planes -2 to 2 of its segment. The current plane
// lies in shared memory, with two rows above and below and a segment on each side, beside the next one.

// CHECK: gpu.func @star3d2r_0(
// CHECK-SAME: memref<2x12x40xf32, #gpu.address_space<workgroup>>
// CHECK-SAME: known_block_size = array<i32: 8, 8, 1>
// Five planes of the own segment before the first iteration, and the halo of the first: 2 x 2 rows of 8
// segments and 2 segments in each of 8 rows, which is less than one for each thread.
// CHECK-COUNT-5: vector.load {{.*}} {alignment = 16 : i64} : memref<256x256x256xf32
// CHECK: scf.if
// CHECK: vector.load {{.*}} : memref<256x256x256xf32
// CHECK: gpu.barrier
// CHECK: scf.for
// CHECK-SAME: -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, index, index)
// The next plane of the own segment, and of the halo.
// CHECK: vector.load {{.*}} : memref<256x256x256xf32
// CHECK: scf.if
// CHECK: vector.load {{.*}} : memref<256x256x256xf32
// Two segments beside the own one and four above and below.
// CHECK: scf.if
// CHECK-COUNT-6: vector.load {{.*}}#gpu.address_space<workgroup>>
// CHECK: arith.select
// CHECK: vector.store {{.*}} : memref<256x256x256xf32
// CHECK: vector.store {{.*}}#gpu.address_space<workgroup>>
// CHECK: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: gpu.return

// Three planes in the loop's body, and those that are left over one by one.
// BODY: gpu.barrier
// BODY: scf.for
// BODY-COUNT-3: gpu.barrier
// BODY-NOT: gpu.barrier
// BODY: scf.for
// BODY: gpu.barrier
// BODY-NOT: gpu.barrier
// BODY: gpu.return
