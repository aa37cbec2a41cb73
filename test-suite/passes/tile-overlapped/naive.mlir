// RUN: stencilc %programs/fdtd2d.stencil --emit=stencil -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=naive})' | FileCheck %s
// The strategy naive: one kernel an apply, launched in turn; the last ends the step.

// CHECK: #[[steps:.+]] = affine_map<()[s0, s1, s2] -> (s2)>
// CHECK: func.func @fdtd2d_0() attributes {tiled.per_thread = array<i64: 1, 1>, tiled.steps = 0 : i64, tiled.strategy = "naive", tiled.tile = array<i64: 4, 64>}
// CHECK: "tiled.apply"{{.*}}updates = [@Ey]
// CHECK-NOT: "tiled.apply"
// CHECK: func.func @fdtd2d_1() attributes {{.*}}tiled.steps = 0 : i64
// CHECK: "tiled.apply"{{.*}}updates = [@Ex]
// CHECK: func.func @fdtd2d_2() attributes {{.*}}tiled.steps = 1 : i64
// CHECK: "tiled.apply"{{.*}}updates = [@Hz]
// CHECK: "tiled.repeat"() {count = #[[steps]], kernels = [@fdtd2d_0, @fdtd2d_1, @fdtd2d_2]}
// CHECK-NOT: "tiled.repeat"
