// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-affine-nest)' | FileCheck %s --check-prefix=TILE
// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-affine-nest)' > %t.once.mlir
// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-affine-nest,tile-affine-nest)' | diff %t.once.mlir -
// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-affine-nest{threads=2,2 per-thread=2,1 time=4},lower-affine-nest,gpu.module(canonicalize{top-down=false},cse))' | FileCheck %s
// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-affine-nest{threads=2,2 per-thread=8,1 time=4},lower-affine-nest,gpu.module(canonicalize{top-down=false},cse))' | FileCheck %s --check-prefix=CYCLIC
// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-affine-nest{threads=2,2 per-thread=8,1 time=4 blocked=on},lower-affine-nest,gpu.module(canonicalize{top-down=false},cse))' | FileCheck %s --check-prefix=BLOCKED
// Rows of a thread: four side by side and four behind those of the other thread, or eight side by side.
// CYCLIC: %[[ROW:.*]] = arith.muli %thread_id_y, %c4
// CYCLIC-NOT: arith.muli %thread_id_y, %c8
// BLOCKED: %[[ROW:.*]] = arith.muli %thread_id_y, %c8
// BLOCKED-NOT: arith.muli %thread_id_y, %c4
// A product of matrices. By default a thread has 8 x 8 cells. Then a smaller tile: a thread has two rows of a column. The
// rows of A lie last in their buffer, since a thread reads several of them; each column of B serves both rows.
// TILE: } {tiled.nest_tile = {per_thread = array<i64: 8, 8>, threads = array<i64: 16, 16>, time = 8 : i64}}
// CHECK-DAG: #[[COLUMNS:.*]] = affine_map<()[s0, s1, s2] -> (s1 ceildiv 2, 1)>
// CHECK-DAG: #[[ROWS:.*]] = affine_map<()[s0, s1, s2] -> (s0 ceildiv 4, 1)>
// CHECK: gpu.func @mm_0(
// CHECK-SAME: workgroup(%[[A:.*]] : memref<4x4xf32, #gpu.address_space<workgroup>>{{.*}}, %[[B:.*]] : memref<4x2xf32, #gpu.address_space<workgroup>>
// CHECK-SAME: known_block_size = array<i32: 2, 2, 1>
// CHECK-SAME: tiled.grid = [#[[ROWS]], #[[COLUMNS]]], tiled.per_thread = array<i64: 2, 1>
// CHECK-SAME: tiled.tile = array<i64: 4, 2>
// What comes before the loop in time is of the cells that have anything to do.
// CHECK: scf.if
// CHECK: memref.store %{{.*}}, %{{.*}} : memref<?x?xf32
// The sums of both cells, and then the shares of the first tile: 16 elements of A and 8 of B for 4 threads.
// CHECK: %[[SUMS:.*]]:8 = scf.for %[[L0:.*]] = %c0{{.*}} to %{{.*}} step %c4{{.*}} iter_args(%[[S0:.*]] = %{{.*}}, %[[S1:.*]] = %{{.*}}, %{{.*}}) -> (f32, f32, f32, f32, f32, f32, f32, f32)
// CHECK-NEXT: gpu.barrier
// CHECK-COUNT-4: memref.store {{.*}}, %[[A]][
// CHECK-COUNT-2: memref.store {{.*}}, %[[B]][
// CHECK: gpu.barrier
// CHECK-COUNT-6: scf.if
// CHECK: memref.load %[[A]][%c0,
// CHECK: memref.load %[[A]][%c0,
// CHECK: memref.load %[[B]][%c0,
// CHECK-NOT: memref.load %[[B]][%c0,
// CHECK: memref.load %[[A]][%c1,
// CHECK: memref.load %[[B]][%c3,
// CHECK: scf.yield
// The iterations that are no whole tile.
// CHECK: scf.if %{{.*}} -> (f32, f32) {
// CHECK-NEXT: gpu.barrier
// CHECK: scf.for
// CHECK: memref.load %[[A]]
func.func @mm(
    %c: memref<?x?xf32> {stencil.name = "C", stencil.extents = ["N", "M"]},
    %a: memref<?x?xf32> {stencil.name = "A", stencil.extents = ["N", "K"]},
    %b: memref<?x?xf32> {stencil.name = "B", stencil.extents = ["K", "M"]}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %c, %c0 : memref<?x?xf32>
  %m = memref.dim %c, %c1 : memref<?x?xf32>
  %k = memref.dim %a, %c1 : memref<?x?xf32>
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      affine.store %zero, %c[%i, %j] : memref<?x?xf32>
      affine.for %l = 0 to %k {
        %0 = affine.load %c[%i, %j] : memref<?x?xf32>
        %1 = affine.load %a[%i, %l] : memref<?x?xf32>
        %2 = affine.load %b[%l, %j] : memref<?x?xf32>
        %3 = arith.mulf %1, %2 : f32
        %4 = arith.addf %0, %3 : f32
        affine.store %4, %c[%i, %j] : memref<?x?xf32>
      }
    }
  }
  return
}
