// RUN: stencil-opt %s --pass-pipeline='builtin.module(transpose-arrays)' | FileCheck %s
// RUN: stencil-opt %s --pass-pipeline='builtin.module(transpose-arrays,tile-affine-nest,lower-affine-nest)' | FileCheck %s --check-prefix=LOWERED
// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-affine-nest,transpose-arrays,lower-affine-nest)' | FileCheck %s --check-prefix=LOWERED
// RUN: stencilc run %s --transpose-arrays --target sim --check --size N=37 --size M=21 --in A=random:1 --in B=random:2
// RUN: stencilc run %s --transpose-arrays --target sim --check --size N=1 --size M=1 --in A=random:1 --in B=random:2
// RUN: stencilc %s --transpose-arrays --emit=gpu,ptx,plan -o %t && FileCheck %s --check-prefix=PLAN <%t.plan.json
// RUN: stencilc %s --transpose-arrays --report --emit=gpu,ptx,plan -o %t 2>&1 | FileCheck %s --check-prefix=REPORT
// RUN: stencilc %s --emit=plan | FileCheck %s --check-prefix=OFF
// A nest as other front ends write it: a parallel loop, an aligned array of its own whose extents are sums, and a load
// of a single cell. Rows of A and of the own array are stored by a thread each. B is read by columns in both sweeps.
// CHECK: %[[T:.*]] = memref.alloc(%{{.*}}, %{{.*}}) {tiled.transposed = "A"} : memref<?x?xf32>
// CHECK: memref.alloc(%{{.*}}, %{{.*}}) {tiled.layout_note = "transposed: the order 1, 0 saves {{.*}} bytes a cell", tiled.transposed = "temp0"} : memref<?x?xf32>
// CHECK: affine.parallel
// LOWERED: "stencil.field"() {{.*}}role = "state"{{.*}}stencil.layout_note = "transposed:{{.*}}sym_name = "A"
// LOWERED: "stencil.field"() {{.*}}role = "temp"{{.*}}sym_name = "A_transposed"
// LOWERED: "stencil.field"() {{.*}}role = "temp"{{.*}}sym_name = "temp0_transposed"
// PLAN: "name": "A_transposed"
// PLAN-NEXT: "element": "f32"
// PLAN-NEXT: "role": "temp"
// PLAN: "layout": "row-major"
// REPORT: layout of A: row-major; transposed: the order 1, 0 saves
// REPORT: layout of B: row-major; kernels use it as it is: no other order
// REPORT: layout of temp0_transposed: row-major; transposed:
// OFF-NOT: transposed
#end = affine_map<(m) -> (m + 2)>
func.func @by_hand(
    %a: memref<?x?xf32> {stencil.name = "A", stencil.extents = ["N", "M"]},
    %b: memref<?x?xf32> {stencil.name = "B", stencil.extents = ["M", "N"]},
    %n: index {stencil.name = "N"}, %m: index {stencil.name = "M"}) {
  %more = affine.apply #end(%m)
  %own = memref.alloc(%n, %more) {alignment = 64 : i64} : memref<?x?xf32>
  %half = arith.constant 0.5 : f32
  affine.for %t = 0 to 5 {
    affine.parallel (%i) = (0) to (symbol(%n)) {
      affine.store %half, %own[%i, 1] : memref<?x?xf32>
      affine.for %j = 2 to #end(%m) {
        %0 = affine.load %own[%i, %j - 1] : memref<?x?xf32>
        %1 = affine.load %b[%j - 2, %i] : memref<?x?xf32>
        %2 = arith.mulf %0, %half : f32
        %3 = arith.addf %2, %1 : f32
        affine.store %3, %own[%i, %j] : memref<?x?xf32>
      }
      affine.for %j = 1 to %m {
        %0 = affine.load %a[%i, %j - 1] : memref<?x?xf32>
        %1 = affine.load %own[%i, %j + 2] : memref<?x?xf32>
        %2 = affine.load %own[%i, 0] : memref<?x?xf32>
        %3 = arith.mulf %0, %half : f32
        %4 = arith.addf %3, %1 : f32
        %5 = arith.addf %4, %2 : f32
        affine.store %5, %a[%i, %j] : memref<?x?xf32>
      }
    }
  }
  memref.dealloc %own : memref<?x?xf32>
  return
}
