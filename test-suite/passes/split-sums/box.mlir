// RUN: stencilc %programs/box2d1r.stencil --emit=stencil -D N=4096 -D M=4096 -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=stream pyramid-height=2},split-sums)' | FileCheck %s
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=block pyramid-height=2},split-sums)' | FileCheck %s --check-prefix=OTHER
// RUN: stencilc %programs/star2d1r.stencil --emit=stencil -D N=4096 -D M=4096 -o %t.star
// RUN: stencil-opt %t.star --pass-pipeline='builtin.module(tile-overlapped{strategy=stream pyramid-height=2},split-sums)' | FileCheck %s --check-prefix=OTHER
// A box of three rows is three applies; each row's function adds its terms to the partial sum. A star, which
// would hold as many partial sums as rows, and kernels of other strategies stay whole.

// CHECK: func.func private @box2d1r.0(
// CHECK-SAME: array<i64: -1, -1>
// CHECK-SAME: array<i64: -1, 1>
// CHECK-NOT: stencil.partial
// CHECK: func.func private @box2d1r.1(
// CHECK-NOT: array<i64: -1, 0>
// CHECK-SAME: array<i64: 0, -1>
// CHECK-SAME: f32 {stencil.partial}) -> f32
// CHECK: func.func private @box2d1r.2(
// CHECK-SAME: array<i64: 1, 1>
// CHECK-SAME: f32 {stencil.partial}) -> f32

// CHECK: func.func @box2d1r_2()
// CHECK: %[[OLD:.+]] = "tiled.load"()
// CHECK: %[[P:.+]] = "tiled.apply"(%[[OLD]])
// CHECK-SAME: function = @box2d1r.0
// CHECK-SAME: tiled.keeps = "nothing"
// CHECK: %[[Q:.+]] = "tiled.apply"(%[[OLD]], %[[P]])
// CHECK-SAME: function = @box2d1r.1
// CHECK-NOT: tiled.keeps
// CHECK-SAME: tiled.partial
// CHECK: %[[NEW:.+]] = "tiled.apply"(%[[OLD]], %[[Q]])
// CHECK-SAME: function = @box2d1r.2
// CHECK-SAME: tiled.keeps = "partial", tiled.partial
// CHECK: "tiled.apply"(%[[NEW]])
// CHECK-SAME: function = @box2d1r.0

// OTHER-NOT: tiled.partial
// OTHER: return
