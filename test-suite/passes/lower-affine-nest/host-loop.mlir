// RUN: stencil-opt %s --pass-pipeline='builtin.module(lower-affine-nest,gpu.module(canonicalize,cse))' | FileCheck %s
// The loop of steps carries all dependences between threads: it runs on the host. The triangle is of the step, which the
// kernel gets as the number of the launch's step; its threads lie in the hull.
// CHECK-DAG: #[[HULL:.*]] = affine_map<()[s0] -> ((s0 - 1) ceildiv 256, 1)>
// CHECK-DAG: #[[TRIPS:.*]] = affine_map<()[s0, s1] -> (s0)>
// CHECK: gpu.func @steps_0({{.*}}%[[STEP:.*]]: i64 {tiled.binding = "step"})
// CHECK-SAME: tiled.grid = [#[[HULL]]]
// CHECK-SAME: tiled.steps = 0
// CHECK: %[[K:.*]] = arith.index_cast %[[STEP]]
// CHECK: %[[LOWER:.*]] = affine.apply {{.*}}[%[[K]]]
// CHECK: %[[I:.*]] = arith.addi %{{.*}}, %c1
// CHECK: %[[ABOVE:.*]] = arith.cmpi sge, %[[I]], %[[LOWER]]
// CHECK: %[[BELOW:.*]] = arith.cmpi slt, %[[I]]
// CHECK: arith.andi %[[ABOVE]], %[[BELOW]]
// CHECK: gpu.func @steps_1
// CHECK-SAME: tiled.steps = 1
// CHECK: "tiled.repeat"() {count = #[[TRIPS]], kernels = [@steps_0, @steps_1]}
func.func @steps(
    %a: memref<?xf32> {stencil.name = "A", stencil.extents = ["N"]},
    %b: memref<?xf32> {stencil.name = "B", stencil.extents = ["N"]}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?xf32>
  affine.for %k = 0 to %n {
    affine.for %i = affine_map<(k) -> (k + 1)>(%k) to %n {
      %0 = affine.load %a[%k] : memref<?xf32>
      affine.store %0, %b[%i] : memref<?xf32>
    }
    affine.for %i = 0 to %n {
      %0 = affine.load %b[%i] : memref<?xf32>
      affine.store %0, %a[%i] : memref<?xf32>
    }
  }
  return
}
