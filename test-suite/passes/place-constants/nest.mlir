// RUN: stencilc %s --emit=ptx,plan -o %t.on && FileCheck %s <%t.on.ptx && FileCheck %s --check-prefix=PLAN <%t.on.plan.json
// RUN: stencilc %s --no-place-constants --emit=ptx,plan -o %t.off && FileCheck %s --check-prefix=OFF <%t.off.ptx && FileCheck %s --check-prefix=OFF <%t.off.plan.json
// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-affine-nest{constants=on})' | FileCheck %s --check-prefix=TILE
// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-affine-nest{constants=on},tile-affine-nest{constants=on})' | FileCheck %s --check-prefix=TILE
// RUN: stencilc run %s --target sim --check --size N=19 --size M=70 --in V=random:1 --in W=random:3 --in sum_0_constant=random:4
// RUN: stencilc run %s --target sim --check --size N=1 --size M=1 --in V=random:1 --in W=random:3 --in sum_0_constant=random:4
// Tables whose elements all threads read alike come from constant memory, and are not copied to shared memory. The
// name of an array is that of a variable, too.

// CHECK: .visible .const .align 16 .b8 sum_0_constant_2[96];
// CHECK: .visible .const .align 16 .b8 sum_0_constant_3[200];
// CHECK: ld.const
// PLAN: "name": "W in constant memory",
// PLAN: "constant": "sum_0_constant_2"
// PLAN: "name": "sum_0_constant in constant memory",
// PLAN: "constant": "sum_0_constant_3"
// OFF-NOT: .const
// OFF-NOT: ld.const
// OFF-NOT: "constant":
// TILE: tiled.nest_constants = ["W", "sum_0_constant"]
// TILE-SAME: tiled.nest_tile
func.func @sum(
    %v: memref<?x?xf64> {stencil.name = "V", stencil.extents = ["N", "M"]},
    %w: memref<24xf32> {stencil.name = "W"},
    %z: memref<5x5xf64> {stencil.name = "sum_0_constant"},
    %n: index {stencil.name = "N"}, %m: index {stencil.name = "M"}) {
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      affine.for %l = 1 to 24 {
        %0 = affine.load %w[%l] : memref<24xf32>
        %1 = arith.extf %0 : f32 to f64
        %2 = affine.load %v[%i, %j] : memref<?x?xf64>
        %3 = arith.subf %2, %1 : f64
        affine.store %3, %v[%i, %j] : memref<?x?xf64>
        affine.for %k = 0 to 5 {
          %4 = affine.load %z[4 - %k, %k] : memref<5x5xf64>
          %5 = affine.load %v[%i, %j] : memref<?x?xf64>
          %6 = arith.mulf %5, %4 : f64
          affine.store %6, %v[%i, %j] : memref<?x?xf64>
        }
      }
    }
  }
  return
}
