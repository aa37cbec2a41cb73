// RUN: stencilc %programs/star2d1r.stencil --emit=stencil -D N=1024 -D M=2048 --fp-contract=off -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=stream pyramid-height=2 tile=64,120},split-interior,lower-stream,gpu.module(canonicalize,cse))' | FileCheck %s
// Two steps in flight in the registers of a warp: 120 columns and a halo of 4 on each side, 17 rows of
// tiles by 18. The first row is smaller, for tiles at the upper rim run code with checks, and the first and the
// last column are halves: 20 blocks a row.

// CHECK: #[[blocks:.+]] = affine_map<() -> (340)>
// CHECK: #[[rows:.+]] = affine_map<() -> (17)>
// CHECK: gpu.func @star2d1r_2(
// CHECK-SAME: tiled.binding = "row"
// CHECK-SAME: known_block_size = array<i32: 32, 1, 1>, nvvm.maxnreg = 128 : i64, tiled.cut = {{{.*}}order = "rim_first_in_halves", reads = [{above = array<i64: 2, 2>, below = array<i64: -2, -2>, field = @A{{.*}}, tiled.grid = #[[blocks]]
// CHECK-SAME: tiled.reach = 1 : i64, tiled.rows = #[[rows]]
// CHECK: %[[A:.+]] = memref.reinterpret_cast %arg0
// CHECK: %[[Next:.+]] = memref.reinterpret_cast %arg1
// CHECK: scf.if
// Away from rims: three rows are loaded ahead, by 16 bytes.
// CHECK-COUNT-3: vector.load %[[A]]{{.*}} {alignment = 16 : i64}
// Two rows of four cells of two values, and three rows of four that wait.
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
// A row's edges come from the lanes beside it, once a row and step; no check but the store's.
// CHECK: vector.load %[[A]]
// CHECK: memref.prefetch %[[A]]
// CHECK: gpu.shuffle up
// CHECK: gpu.shuffle down
// CHECK: arith.mulf
// CHECK: gpu.shuffle up
// CHECK: gpu.shuffle down
// CHECK-NOT: arith.select
// CHECK: scf.if
// CHECK: vector.store {{.*}}, %[[Next]]{{.*}} {alignment = 16 : i64}
// CHECK: vector.load %[[A]]
// CHECK: vector.store
// CHECK: vector.load %[[A]]
// CHECK: vector.store
// CHECK: scf.yield
// CHECK: } else {
// At a rim: rows and columns inside the grid, kept values, and stores that are checked. Rows of the
// grid are a multiple of four cells long, so four lie all inside or all outside.
// CHECK: arith.maxsi
// CHECK: vector.load %[[A]]
// CHECK: scf.for
// CHECK: scf.if
// CHECK: arith.mulf
// CHECK: arith.select
// CHECK: vector.store {{.*}}, %[[Next]]
// CHECK: gpu.return
