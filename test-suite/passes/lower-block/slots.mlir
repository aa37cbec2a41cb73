// RUN: stencilc %programs/j2d5pt.stencil --emit=stencil -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{tile=8,32 pyramid-height=4},lower-block,gpu.module(canonicalize,cse))' | FileCheck %s
// Four steps take two buffers in turn: the third tile lies where the first was, which no later
// apply reads. Each step reads what another thread wrote, so a barrier stands between any two; none
// is needed before the first load and after the last step.

// CHECK: gpu.func @j2d5pt_4(
// CHECK-SAME: workgroup(%[[even:[a-z0-9]+]] : memref<16x40xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}, %[[odd:[a-z0-9]+]] : memref<14x38xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}) kernel
// CHECK: scf.if
// CHECK-NOT: gpu.barrier
// CHECK: memref.store %{{.*}}, %[[even]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[even]]
// CHECK: memref.store %{{.*}}, %[[odd]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[odd]]
// CHECK: memref.store %{{.*}}, %[[even]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[even]]
// CHECK: memref.store %{{.*}}, %[[odd]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[odd]]
// CHECK-NOT: gpu.barrier
// CHECK: } else {
// CHECK: gpu.func @j2d5pt_2(
