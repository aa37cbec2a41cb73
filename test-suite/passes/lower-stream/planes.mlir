// RUN: stencilc %programs/star3d1r.stencil --emit=stencil -D N=256 -D M=256 -D L=256 --fp-contract=off -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=stream pyramid-height=2 tile=64,28,52 per-thread=1,2,4},split-interior,lower-stream,gpu.module(canonicalize,cse))' | FileCheck %s
// Planes of two steps in flight in the registers of a block: 28 rows and a halo of 2 on each side are 16
// parts of two rows; 52 columns and a halo of 4 are 15 lanes of four cells, so two parts share a warp.

// Two values hand rows to the parts above and below: a double buffer with two rows of 16 parts, and of
// two that the block lacks.
// CHECK: gpu.func @star3d1r_2(
// CHECK-SAME: memref<2x18x2x64xf32, #gpu.address_space<workgroup>>{{.*}}memref<2x18x2x64xf32, #gpu.address_space<workgroup>>
// CHECK-SAME: known_block_size = array<i32: 16, 16, 1>
// CHECK: gpu.barrier
// CHECK: scf.for
// CHECK: scf.if
// No plane of these iterations lies at a rim. Rows of other parts come from the half that was filled
// an iteration ago; one barrier a plane.
// CHECK: vector.load {{.*}} {alignment = 16 : i64}
// CHECK: vector.load {{.*}}#gpu.address_space<workgroup>>
// CHECK: gpu.shuffle up
// CHECK-NOT: arith.select
// CHECK: vector.store {{.*}}#gpu.address_space<workgroup>>
// CHECK-NOT: vector.store {{.*}}strided
// CHECK: gpu.barrier
// CHECK: gpu.barrier
// CHECK: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: } else {
// One at a time: planes are clamped to the grid, and those outside of the piece keep their values.
// CHECK: scf.for
// CHECK: arith.minsi
// CHECK: gpu.barrier
// CHECK: } else {
// At rims of rows and columns each cell is checked.
// CHECK: scf.for
// CHECK: arith.select
// CHECK: gpu.return
