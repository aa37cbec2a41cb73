// RUN: stencilc %programs/wave3d.stencil --emit=stencil -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{pyramid-height=2 tile=4,8,32 per-thread=2})' | FileCheck %s
// One function updates two fields: one apply with two results, over the hull of what is needed of
// either. A single number of cells a thread is that of the slowest dimension.

// CHECK: func.func @wave3d_2() attributes {tiled.per_thread = array<i64: 2, 1, 1>, tiled.steps = 2 : i64, tiled.strategy = "block", tiled.tile = array<i64: 4, 8, 32>}
// CHECK-NEXT: %[[p:.+]] = "tiled.load"() {field = @P, lower = array<i64: -1, -1, -1>, upper = array<i64: 1, 1, 1>}
// CHECK-NEXT: %[[u:.+]] = "tiled.load"() {field = @U, lower = array<i64: -2, -2, -2>, upper = array<i64: 2, 2, 2>}
// CHECK-NEXT: %[[c:.+]] = "tiled.load"() {field = @C, lower = array<i64: -1, -1, -1>, upper = array<i64: 1, 1, 1>}
// CHECK-NEXT: %[[one:.+]]:2 = "tiled.apply"(%[[p]], %[[u]], %[[c]]) {lower = array<i64: -1, -1, -1>, {{.*}}reads = [@P, @U, @C], step = 0 : i64, updates = [@P, @U], upper = array<i64: 1, 1, 1>}
// CHECK-NEXT: %[[two:.+]]:2 = "tiled.apply"(%[[one]]#0, %[[one]]#1, %[[c]]) {lower = array<i64: 0, 0, 0>, {{.*}}step = 1 : i64
// CHECK-NEXT: "tiled.store"(%[[two]]#0) {field = @P}
// CHECK-NEXT: "tiled.store"(%[[two]]#1) {field = @U}
