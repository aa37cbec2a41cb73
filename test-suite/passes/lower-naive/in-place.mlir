// RUN: stencilc %programs/fdtd2d.stencil --emit=stencil -D N=8 -D M=64 -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=naive},lower-naive,gpu.module(canonicalize,cse))' | FileCheck %s
// Each function of FDTD reads its own field at the point alone, so each kernel updates it in place:
// one buffer, and nothing is copied where no piece lies.

// CHECK: module @fdtd2d attributes {gpu.container_module,
// The point functions and tile kernels are gone; the schedule names the lowered kernels.
// CHECK-NOT: func.func
// CHECK: "tiled.repeat"() {count = {{.*}}, kernels = [@fdtd2d_0, @fdtd2d_1, @fdtd2d_2]}
// CHECK: gpu.module @kernels
// CHECK: gpu.func @fdtd2d_0(%[[ey:.+]]: memref<f32> {llvm.noalias, tiled.binding = "read_write", tiled.name = "Ey"}, %[[hz:.+]]: memref<f32> {llvm.noalias, llvm.readonly, tiled.binding = "read", tiled.name = "Hz"}, %{{.*}}: i64 {tiled.binding = "step"}) kernel
// CHECK-SAME: known_block_size = array<i32: 64, 4, 1>,{{.*}} tiled.grid = #[[blocks:[a-z0-9]+]]
// CHECK: %[[Ey:.+]] = memref.reinterpret_cast %[[ey]] to offset: [0], sizes: [8, 64], strides: [64, 1]
// CHECK: %[[Hz:.+]] = memref.reinterpret_cast %[[hz]]
// CHECK: scf.if
// CHECK: scf.if
// CHECK: memref.load %[[Ey]]
// CHECK: memref.load %[[Hz]]
// CHECK: memref.load %[[Hz]]
// CHECK: memref.store %{{.*}}, %[[Ey]]
// CHECK-NOT: else
// CHECK-NOT: memref.store
// CHECK: gpu.return
// CHECK: gpu.func @fdtd2d_1({{.*}}tiled.binding = "read_write", tiled.name = "Ex"}
// CHECK: gpu.func @fdtd2d_2({{.*}}tiled.binding = "read", tiled.name = "Ex"}, {{.*}}tiled.binding = "read", tiled.name = "Ey"}, {{.*}}tiled.binding = "read_write", tiled.name = "Hz"}
