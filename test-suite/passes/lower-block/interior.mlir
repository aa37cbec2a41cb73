// RUN: stencilc %programs/heat2d.stencil --emit=stencil -D N=344 -D M=403 -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{tile=8,32 pyramid-height=2},split-interior,lower-block,gpu.module(canonicalize,cse))' | FileCheck %s
// Two steps in one launch: tiles in shared memory with their halo, a body without checks for the
// tiles whose loads and applies stay inside, and one with checks for those at the rim.

// CHECK: #[[blocks:.+]] = affine_map<() -> (559)>
// CHECK: gpu.func @heat2d_2(
// Two rings for A, one for K and for A after the first step; the last step goes to global memory.
// CHECK-SAME: workgroup(%[[a0:.+]] : memref<12x36xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}, %[[k:.+]] : memref<10x34xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}, %[[a1:.+]] : memref<10x34xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
// Four rows a thread.
// CHECK-SAME: known_block_size = array<i32: 32, 2, 1>,{{.*}} tiled.grid = #[[blocks]],
// CHECK: %[[A:.+]] = memref.reinterpret_cast %arg0
// CHECK: %[[K:.+]] = memref.reinterpret_cast %arg1
// CHECK: %[[Next:.+]] = memref.reinterpret_cast %arg2
// Interior: the load's two rings decide; they hold more than the pieces ask for.
// CHECK-COUNT-4: arith.cmpi
// CHECK-NOT: arith.cmpi
// CHECK: scf.if
// CHECK: memref.load %[[A]]
// CHECK: memref.store %{{.*}}, %[[a0]]
// Another buffer is filled: no barrier between the loads.
// CHECK-NOT: gpu.barrier
// CHECK: memref.load %[[K]]
// CHECK: memref.store %{{.*}}, %[[k]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[a0]]
// CHECK-NOT: scf.if
// CHECK: memref.store %{{.*}}, %[[a1]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[a1]]
// CHECK-NOT: scf.if
// CHECK: memref.store %{{.*}}, %[[Next]]
// CHECK-NOT: gpu.barrier
// CHECK: } else {
// Rim: a cell is loaded where it lies in the grid, and computed where it lies in the piece; others
// keep their value.
// CHECK: arith.cmpi
// CHECK: scf.if
// CHECK: memref.load %[[A]]
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK: %[[new:.+]] = scf.if {{.*}} -> (f32) {
// CHECK: arith.mulf
// CHECK: } else {
// CHECK: %[[kept:.+]] = memref.load %[[a0]]
// CHECK: scf.yield %[[kept]]
// CHECK: memref.store %[[new]], %[[a1]]
// CHECK: gpu.barrier
// CHECK: %[[last:.+]] = scf.if {{.*}} -> (f32) {
// CHECK: memref.store %[[last]], %[[Next]]
// CHECK: gpu.return
