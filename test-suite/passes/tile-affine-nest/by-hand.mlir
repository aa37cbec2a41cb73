// RUN: stencilc run %s --target sim --check --size N=23 --size M=9 --in W=random:1 --in U=random:2 --in V=random:3 --in G=random:4
// RUN: stencilc run %s --target sim --check --size N=1 --size M=1 --in W=random:1 --in U=random:2 --in V=random:3 --in G=random:4
// RUN: sed 's/per_thread = array/copiers = 3 : i64, &/' %s >%t.mlir && stencilc run %t.mlir --target sim --check --size N=23 --size M=9 --in W=random:1 --in U=random:2 --in V=random:3 --in G=random:4
// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-affine-nest,lower-affine-nest)' | FileCheck %s
// A tile that the text states is kept. Its threads fill no warp, and its cells and time divide nothing. The nest has a
// parallel loop, two loops in time of which one has a loop within it, an index that runs backwards, a diagonal, and a
// division in the loop, so that each cell has its share guarded. The dimension with two cells of a thread comes last.
// CHECK: workgroup(%{{.*}} : memref<5x6xf32, #gpu.address_space<workgroup>>
// CHECK-SAME: tiled.per_thread = array<i64: 2, 1>
func.func @by_hand(
    %w: memref<?x?xi32> {stencil.name = "W", stencil.extents = ["N", "M"]},
    %u: memref<?x32xf32> {stencil.name = "U", stencil.extents = ["N"]},
    %v: memref<64x8xf32> {stencil.name = "V"},
    %g: memref<?x8xi32> {stencil.name = "G", stencil.extents = ["M"]},
    %n: index {stencil.name = "N"}, %m: index {stencil.name = "M"}) {
  %one = arith.constant 1 : i32
  %many = arith.constant 100.0 : f32
  affine.parallel (%i, %j) = (0, 0) to (symbol(%n), symbol(%m)) {
    affine.store %one, %w[%i, %j] : memref<?x?xi32>
    affine.for %k = 0 to 7 {
      affine.for %l = 0 to 3 {
        %0 = affine.load %u[%i, 31 - %k - %l] : memref<?x32xf32>
        %1 = affine.load %v[%k + %l, %k] : memref<64x8xf32>
        %2 = arith.mulf %0, %1 : f32
        %3 = math.sin %2 : f32
        %4 = arith.mulf %3, %many : f32
        %5 = arith.fptosi %4 : f32 to i32
        %6 = affine.load %w[%i, %j] : memref<?x?xi32>
        %7 = arith.addi %6, %5 : i32
        affine.store %7, %w[%i, %j] : memref<?x?xi32>
      }
    }
    affine.for %k = 0 to 8 {
      %0 = affine.load %g[%j, %k] : memref<?x8xi32>
      %1 = arith.ori %0, %one : i32
      %2 = affine.load %w[%i, %j] : memref<?x?xi32>
      %3 = arith.remsi %2, %1 : i32
      %4 = arith.addi %2, %3 : i32
      affine.store %4, %w[%i, %j] : memref<?x?xi32>
    }
  } {tiled.nest_tile = {per_thread = array<i64: 2, 1>, threads = array<i64: 3, 5>, time = 3 : i64}}
  return
}
