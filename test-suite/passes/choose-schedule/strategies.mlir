// RUN: stencilc %programs/star2d1r.stencil --emit=stencil -D N=16384 -D M=16384 -o %t.2d
// RUN: stencil-opt %t.2d --pass-pipeline='choose-schedule' | FileCheck %s --check-prefix=STREAM
// RUN: stencil-opt %t.2d --pass-pipeline='choose-schedule,tile-overlapped' | FileCheck %s --check-prefix=TILED
// RUN: stencil-opt %t.2d --pass-pipeline='choose-schedule{strategy=block pyramid-height=2},tile-overlapped' | FileCheck %s --check-prefix=FORCED
// RUN: stencil-opt %t.2d --pass-pipeline='choose-schedule,tile-overlapped{strategy=naive pyramid-height=1 tile=4,64 per-thread=1,1}' | FileCheck %s --check-prefix=OVERRULED
// RUN: stencil-opt %t.2d --pass-pipeline='choose-schedule{strategy=block pyramid-height=2 tile=32,64}' -o %t.own.mlir
// RUN: stencil-opt %t.own.mlir --pass-pipeline='choose-schedule' | FileCheck %s --check-prefix=OWN
// RUN: stencil-opt %t.own.mlir --pass-pipeline='choose-schedule{pyramid-height=1}' | FileCheck %s --check-prefix=OWN-HEIGHT
// RUN: stencilc %t.own.mlir --emit=plan | FileCheck %s --check-prefix=OWN-PLAN
// RUN: stencilc %programs/jacobi1d3.stencil --emit=stencil -o %t.1d
// RUN: stencil-opt %t.1d --pass-pipeline='choose-schedule{strategy=block}' | FileCheck %s --check-prefix=LONG

// Streams of as many steps as registers allow; the tile is left to the kernels.
// STREAM: module @star2d1r attributes {
// STREAM-NOT: tiled.tile
// STREAM-SAME: tiled.per_thread = array<i64: 1, 4>, tiled.steps = {{[0-9]+}} : i64, tiled.strategy = "stream"}
// STREAM: "stencil.apply"

// TILED: func.func @star2d1r_{{[0-9]+}}() attributes {tiled.per_thread = array<i64: 1, 4>, tiled.steps = {{[0-9]+}} : i64, tiled.strategy = "stream"

// What is forced is taken, and the rest chosen within it.
// FORCED: func.func @star2d1r_2() attributes {{.*}}tiled.strategy = "block", tiled.tile = array<i64: {{32|64}}, 64>}
// FORCED: func.func @star2d1r_1()

// Options of tile-overlapped come before the choice.
// OVERRULED: func.func @star2d1r_0() attributes {tiled.per_thread = array<i64: 1, 1>, tiled.steps = 1 : i64, tiled.strategy = "naive", tiled.tile = array<i64: 4, 64>}

// A module's own schedule is kept, and options come before it.
// OWN: tiled.steps = 2 : i64, tiled.strategy = "block", tiled.tile = array<i64: 32, 64>
// OWN-HEIGHT: tiled.steps = 1 : i64, tiled.strategy = "block", tiled.tile = array<i64: 32, 64>
// OWN-PLAN-DAG: "strategy": "block"
// OWN-PLAN-DAG: "pyramid_height": 2

// Many steps a launch pay in one dimension, where the halo is small.
// LONG: tiled.steps = 32 : i64, tiled.strategy = "block"
