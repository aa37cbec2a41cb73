// RUN: stencilc %programs/star2d1r.stencil --emit=stencil -D N=256 -D M=256 --fp-contract=off -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=patch pyramid-height=2 tile=28,120 per-thread=2,4},split-interior,lower-patch,gpu.module(canonicalize,cse))' | FileCheck %s
// All rows of a tile in the registers of a block: 28 rows and a halo of 2 on each side are 16 parts of
// two rows, and 120 columns and a halo of 4 are 32 lanes of four columns.

// Two values take turns in handing rows to the parts above and below.
// CHECK: gpu.func @star2d1r_2(
// CHECK-SAME: memref<16x2x1x128xf32, #gpu.address_space<workgroup>>{{.*}}memref<16x2x1x128xf32, #gpu.address_space<workgroup>>
// CHECK-SAME: known_block_size = array<i32: 32, 16, 1>
// CHECK: scf.if
// Nothing is checked at no rim: one load a row, one barrier a step.
// CHECK-COUNT-2: vector.load {{.*}} {alignment = 16 : i64} : memref<256x256xf32
// CHECK-NOT: vector.load
// CHECK-COUNT-2: vector.store {{.*}}#gpu.address_space<workgroup>>
// CHECK-COUNT-4: gpu.shuffle
// CHECK: gpu.barrier
// CHECK-COUNT-2: vector.load {{.*}}#gpu.address_space<workgroup>>
// CHECK-NOT: vector.load
// CHECK-NOT: arith.select
// CHECK-COUNT-2: vector.store {{.*}}#gpu.address_space<workgroup>>
// CHECK: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK-NOT: arith.select
// CHECK-COUNT-2: vector.store {{.*}} memref<256x256xf32
// CHECK: } else {
// At a rim, loads keep to the grid. Lanes whose rows lie at no rim check the first and the last of
// their four columns: the other two lie at no rim of any tile.
// CHECK-COUNT-2: vector.load {{.*}} {alignment = 16 : i64} : memref<256x256xf32
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK-COUNT-4: arith.select
// CHECK-NOT: arith.select
// CHECK: } else {
// CHECK-COUNT-8: arith.select
// CHECK-NOT: arith.select
// CHECK: gpu.barrier
// CHECK: gpu.return
