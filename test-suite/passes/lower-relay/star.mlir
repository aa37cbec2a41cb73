// RUN: stencilc %programs/jacobi2d_f64.stencil --emit=stencil -D N=256 -D M=256 --fp-contract=off -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=relay pyramid-height=4 tile=64,88 per-thread=1,3},split-interior,lower-relay{warps=2},gpu.module(canonicalize,cse))' | FileCheck %s
// Two warps of two steps each: rows of 96 cells, three a lane. Three rings have two slots each.

// CHECK: gpu.func @jacobi2d_f64_4(
// CHECK-SAME: memref<2x288xf64, #gpu.address_space<workgroup>>
// CHECK-SAME: known_block_size = array<i32: 32, 2, 1>
// Tiles at no rim and those at rims of columns have a loop each, and those at rims of rows.
// CHECK: scf.if
// CHECK: scf.if
// Before the loop the first row comes in; its end is a barrier.
// CHECK: gpu.barrier
// CHECK: scf.for
// Rows that are done leave, 16 bytes a thread, and those of the next iteration come.
// CHECK: vector.load {{.*}}#gpu.address_space<workgroup>>
// CHECK: vector.load {{.*}} {alignment = 16 : i64} : memref<256x256xf64
// CHECK: memref.prefetch
// CHECK: vector.store {{.*}} {alignment = 16 : i64} : memref<256x256xf64
// A warp takes a row, computes two steps without checks, and hands the row over.
// CHECK-COUNT-3: memref.load {{.*}}#gpu.address_space<workgroup>>
// CHECK-COUNT-8: gpu.shuffle
// CHECK-NOT: arith.select
// CHECK-COUNT-3: memref.store {{.*}}#gpu.address_space<workgroup>>
// CHECK: vector.store {{.*}}#gpu.address_space<workgroup>>
// CHECK: gpu.barrier
// CHECK: scf.yield
// CHECK: } else {
// At rims of columns, some cells keep their old values.
// CHECK: scf.for
// CHECK: arith.select
// CHECK: } else {
// At rims of rows, a row that no piece covers keeps all of them.
// CHECK: scf.for
// CHECK: scf.if {{.*}} -> (f64, f64, f64)
// CHECK: gpu.return
