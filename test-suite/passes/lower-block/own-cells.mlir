// RUN: stencilc %programs/fdtd2d.stencil --emit=stencil -D N=64 -D M=64 -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{tile=8,32 pyramid-height=1},split-interior,lower-block,gpu.module(canonicalize,cse))' | FileCheck %s
// A region that reaches beyond the tile is computed whole and stored to global memory only where
// the cell is the tile's own: Ey is computed for 9 rows and stored for 8.

// CHECK: gpu.func @fdtd2d_1(
// CHECK-DAG: %[[rows:.+]] = arith.constant 9 : index
// CHECK-DAG: %[[own:.+]] = arith.constant 8 : index
// CHECK: gpu.barrier
// CHECK: scf.for %[[i:.+]] = %thread_id_y to %[[rows]]
// CHECK: arith.mulf
// CHECK-NEXT: %[[value:.+]] = arith.subf %{{.*}}, %{{.*}} fastmath<contract> : f32
// CHECK-NEXT: memref.store %[[value]], %{{.*}} : memref<9x32xf32, #gpu.address_space<workgroup>>
// CHECK: %[[mine:.+]] = arith.cmpi slt, %[[i]], %[[own]] : index
// CHECK: scf.if %[[mine]] {
// CHECK: memref.store %[[value]], %{{.*}} : memref<64x64xf32, strided<[64, 1]>>
