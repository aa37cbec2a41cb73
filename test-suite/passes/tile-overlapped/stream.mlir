// RUN: stencilc %programs/star2d1r.stencil --emit=stencil -D N=16384 -D M=16384 -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=stream})' | FileCheck %s
// RUN: stencilc %programs/star2d1r.stencil --emit=stencil -o %t.run-time
// RUN: stencil-opt %t.run-time --pass-pipeline='builtin.module(tile-overlapped{strategy=stream pyramid-height=3})' | FileCheck %s --check-prefix=RUNTIME
// As many steps as registers allow, strips less their halo, and rows that fill the device in whole
// waves of warps; launches for the steps left over have strips of their own.

// CHECK: func.func @star2d1r_12() attributes {tiled.per_thread = array<i64: 1, 4>, tiled.steps = 12 : i64, tiled.strategy = "stream", tiled.tile = array<i64: {{[0-9]+}}, 104>}
// CHECK: func.func @star2d1r_8() attributes {{.*}}, 112>}
// CHECK: func.func @star2d1r_4() attributes {{.*}}, 120>}

// RUNTIME: func.func @star2d1r_3() {{.*}}tiled.tile = array<i64: 256, 120>
