// RUN: stencilc %programs/fdtd2d.stencil --emit=stencil -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{pyramid-height=1})' | FileCheck %s
// Three functions in order: each region is the hull of what the later ones read and of the tile
// that is stored. hz reads Ex one to the right and Ey one below; both read Hz to the left and above.

// CHECK: func.func @fdtd2d_1()
// CHECK-NEXT: %[[ex:.+]] = "tiled.load"() {field = @Ex, lower = array<i64: 0, 0>, upper = array<i64: 0, 1>}
// CHECK-NEXT: %[[ey:.+]] = "tiled.load"() {field = @Ey, lower = array<i64: 0, 0>, upper = array<i64: 1, 0>}
// CHECK-NEXT: %[[hz:.+]] = "tiled.load"() {field = @Hz, lower = array<i64: -1, -1>, upper = array<i64: 1, 1>}
// CHECK-NEXT: %[[ey1:.+]] = "tiled.apply"(%[[ey]], %[[hz]]) {lower = array<i64: 0, 0>, {{.*}}reads = [@Ey, @Hz], step = 0 : i64, updates = [@Ey], upper = array<i64: 1, 0>}
// CHECK-NEXT: %[[ex1:.+]] = "tiled.apply"(%[[ex]], %[[hz]]) {lower = array<i64: 0, 0>, {{.*}}reads = [@Ex, @Hz], step = 0 : i64, updates = [@Ex], upper = array<i64: 0, 1>}
// CHECK-NEXT: %[[hz1:.+]] = "tiled.apply"(%[[ex1]], %[[ey1]], %[[hz]]) {lower = array<i64: 0, 0>, {{.*}}updates = [@Hz], upper = array<i64: 0, 0>}
// CHECK-NEXT: "tiled.store"(%[[ex1]]) {field = @Ex}
// CHECK-NEXT: "tiled.store"(%[[ey1]]) {field = @Ey}
// CHECK-NEXT: "tiled.store"(%[[hz1]]) {field = @Hz}
