// RUN: stencilc %programs/jacobi1d3.stencil --emit=stencil -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=warp})' | FileCheck %s
// RUN: stencilc %programs/jacobi1d7_f64.stencil --emit=stencil -o %t.wide
// RUN: stencil-opt %t.wide --pass-pipeline='builtin.module(tile-overlapped{strategy=warp})' | FileCheck %s --check-prefix=WIDE
// As many cells a lane as registers allow, and as many steps as the halo does: whole lanes of it.

// CHECK: func.func @jacobi1d3_48() attributes {tiled.per_thread = array<i64: 48>, tiled.steps = 48 : i64, tiled.strategy = "warp", tiled.tile = array<i64: 1440>}
// CHECK: func.func @jacobi1d3_32() attributes {{.*}}, tiled.tile = array<i64: 1440>}

// WIDE: func.func @jacobi1d7_f64_16() attributes {tiled.per_thread = array<i64: 24>, {{.*}}, tiled.tile = array<i64: 672>}
