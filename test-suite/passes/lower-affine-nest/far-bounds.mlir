// RUN: stencil-opt %s --pass-pipeline='builtin.module(lower-affine-nest)' | FileCheck %s
// A bound that may leave 64 bits gets checks; counters are eliminated from them. One that fits for
// all sizes gets none.

// The factor is divided out of the checks of the first loop: 2^61 is 1048576 * 2199023255552.
// CHECK-DAG: #[[near:map[0-9]*]] = affine_map<()[s0] -> (-s0 + 281474976710656)>
// CHECK-DAG: #[[above:map[0-9]*]] = affine_map<()[s0] -> (-s0 + 2199023255552)>
// CHECK-DAG: #[[below:map[0-9]*]] = affine_map<()[s0] -> (s0 + 2199023255551)>
// CHECK: the size `N` must lie within 2^48 of 0{{.*}}value = #[[near]]}
// CHECK: a bound of a loop must lie within 2^61 of 0 ({{.*}}:16:3){{.*}}value = #[[above]]}
// CHECK: a bound of a loop must lie within 2^61 of 0 ({{.*}}:16:3){{.*}}value = #[[below]]}
// CHECK: a bound of a loop must lie within 2^61 of 0 ({{.*}}:21:5){{.*}}value = #[[above]]}
// CHECK-NOT: a bound of a loop

func.func @nest(%a: memref<8xf32> {stencil.name = "a"}, %n: index {stencil.name = "N"}) {
  affine.for %i = 0 to min affine_map<()[s] -> (8, s * 1048576)>()[%n] {
    %0 = affine.load %a[%i] : memref<8xf32>
    affine.store %0, %a[%i] : memref<8xf32>
  }
  affine.for %i = 0 to %n {
    affine.for %j = 0 to min affine_map<(d0) -> (8, d0 * 1048576 + 3)>(%i) {
      %0 = affine.load %a[%j] : memref<8xf32>
      affine.store %0, %a[%j] : memref<8xf32>
    }
  }
  affine.for %i = 0 to min affine_map<()[s] -> (8, s * 4096 + 1)>()[%n] {
    %0 = affine.load %a[%i] : memref<8xf32>
    affine.store %0, %a[%i] : memref<8xf32>
  }
  return
}
