// RUN: stencilc %programs/heat2d.stencil --emit=stencil -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{tile=8,32 pyramid-height=5})' | FileCheck %s --check-prefixes=CHECK,FIVE
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{tile=8,32 pyramid-height=4})' | FileCheck %s --check-prefixes=CHECK,FOUR
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{tile=8,32 pyramid-height=1})' | FileCheck %s --check-prefixes=CHECK,ONE
// The steps of a run are those of the main kernel and, for what is left over, one launch a binary
// digit: T floor(s / T) + sum over d of 2^d ((s mod T) / 2^d mod 2) = s for every s.

// FIVE-DAG: #[[main:.+]] = affine_map<()[s0, s1, s2] -> (s2 floordiv 5)>
// FIVE-DAG: #[[digit4:.+]] = affine_map<()[s0, s1, s2] -> (((s2 mod 5) floordiv 4) mod 2)>
// FIVE-DAG: #[[digit2:.+]] = affine_map<()[s0, s1, s2] -> (((s2 mod 5) floordiv 2) mod 2)>
// FIVE-DAG: #[[digit1:.+]] = affine_map<()[s0, s1, s2] -> ((s2 mod 5) mod 2)>
// FIVE: func.func @heat2d_5()
// FIVE-NEXT: "tiled.load"() {field = @A, lower = array<i64: -5, -5>, upper = array<i64: 5, 5>}
// The coefficient is read at the point alone, and so needs one ring less.
// FIVE-NEXT: "tiled.load"() {field = @K, lower = array<i64: -4, -4>, upper = array<i64: 4, 4>}
// FIVE-COUNT-5: "tiled.apply"
// FIVE-NOT: "tiled.apply"
// FIVE: "tiled.store"({{.*}}) {field = @A}
// A const field is not stored.
// FIVE-NOT: "tiled.store"
// FIVE: func.func @heat2d_4()
// FIVE: "tiled.repeat"() {count = #[[main]], kernels = [@heat2d_5]}
// FIVE: "tiled.repeat"() {count = #[[digit4]], kernels = [@heat2d_4]}
// FIVE: "tiled.repeat"() {count = #[[digit2]], kernels = [@heat2d_2]}
// FIVE: "tiled.repeat"() {count = #[[digit1]], kernels = [@heat2d_1]}

// FOUR-DAG: #[[main:.+]] = affine_map<()[s0, s1, s2] -> (s2 floordiv 4)>
// FOUR-DAG: #[[digit2:.+]] = affine_map<()[s0, s1, s2] -> (((s2 mod 4) floordiv 2) mod 2)>
// FOUR: "tiled.repeat"() {count = #[[main]], kernels = [@heat2d_4]}
// FOUR: "tiled.repeat"() {count = #[[digit2]], kernels = [@heat2d_2]}
// FOUR: "tiled.repeat"() {count = {{.*}}, kernels = [@heat2d_1]}

// ONE: #[[main:.+]] = affine_map<()[s0, s1, s2] -> (s2)>
// ONE: "tiled.repeat"() {count = #[[main]], kernels = [@heat2d_1]}
// CHECK-NOT: "tiled.repeat"
