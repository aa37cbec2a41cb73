// RUN: stencilc %programs/fdtd2d.stencil --emit=stencil -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{tile=8,32 pyramid-height=1},lower-block,gpu.module(canonicalize,cse))' | FileCheck %s
// The new Ex lies where the old Ey was, whose last reader is the first function: a slot as large as
// either in each dimension. The price is a barrier between the two, since other threads may still
// read the old Ey.

// CHECK: gpu.func @fdtd2d_1(
// CHECK-SAME: workgroup(%[[ex:[a-z0-9]+]] : memref<8x33xf32, {{[^>]*>>}} {llvm.align = 16 : i64}, %[[shared:[a-z0-9]+]] : memref<9x33xf32, {{[^>]*>>}} {llvm.align = 16 : i64}, %[[hz:[a-z0-9]+]] : memref<10x34xf32, {{[^>]*>>}} {llvm.align = 16 : i64}, %[[ey1:[a-z0-9]+]] : memref<9x32xf32, {{[^>]*>>}} {llvm.align = 16 : i64}) kernel
// CHECK: scf.if
// CHECK-NOT: gpu.barrier
// CHECK: memref.store %{{.*}}, %[[hz]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[shared]]
// CHECK: memref.store %{{.*}}, %[[ey1]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[ex]]
// CHECK: memref.store %{{.*}}, %[[shared]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[hz]]
// CHECK-NOT: gpu.barrier
// CHECK: } else {
