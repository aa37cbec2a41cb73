// RUN: stencilc %programs/jacobi1d3.stencil --emit=stencil -D N=65536 --fp-contract=off -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=warp per-thread=8 pyramid-height=8},split-interior,lower-warp{unroll=2},gpu.module(canonicalize,cse))' | FileCheck %s
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=warp per-thread=8 pyramid-height=5},split-interior,lower-warp{unroll=2 warps=1},gpu.module(canonicalize,cse))' | FileCheck %s --check-prefix=ODD
// Eight steps in the registers of a warp: 240 cells, and a lane's cells on each side as halo. 274 tiles,
// four a block.

// CHECK: #[[blocks:.+]] = affine_map<() -> (69)>
// CHECK: gpu.func @jacobi1d3_8(
// CHECK-SAME: known_block_size = array<i32: 128, 1, 1>, tiled.cut = {{{.*}}reads = [{above = array<i64: 8>, below = array<i64: -8>, field = @A{{.*}}, tiled.grid = #[[blocks]]
// CHECK: %[[A:.+]] = memref.reinterpret_cast %arg0
// CHECK: %[[Next:.+]] = memref.reinterpret_cast %arg1
// CHECK: scf.if
// CHECK: scf.if
// Away from rims: eight cells a lane in two accesses, four rounds of two steps, two shuffles a step.
// CHECK-COUNT-2: vector.load %[[A]]{{.*}} {alignment = 16 : i64}
// CHECK-NOT: vector.load
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c2 iter_args({{.*}}) -> (f32, f32, f32, f32, f32, f32, f32, f32)
// CHECK: gpu.shuffle up
// CHECK: gpu.shuffle down
// CHECK-COUNT-8: arith.divf
// CHECK: gpu.shuffle up
// CHECK: gpu.shuffle down
// CHECK-NOT: gpu.shuffle
// CHECK-COUNT-8: arith.divf
// CHECK-NOT: arith.select
// CHECK: scf.yield
// CHECK: scf.if
// CHECK-COUNT-2: vector.store {{.*}}, %[[Next]]{{.*}} {alignment = 16 : i64}
// CHECK: } else {
// At a rim: single cells inside the grid, one step a round, kept values, and stores that are checked.
// CHECK: arith.maxsi
// CHECK: memref.load %[[A]]
// CHECK-NOT: vector.load
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c1
// CHECK: arith.select
// CHECK: memref.store {{.*}}, %[[Next]]
// CHECK-NOT: vector.store
// CHECK: gpu.return

// Four steps in two rounds, and one behind the loop.
// ODD: gpu.func @jacobi1d3_5(
// ODD-SAME: known_block_size = array<i32: 32, 1, 1>
// ODD: scf.for %{{.*}} = %c0 to %c4 step %c2
// ODD-COUNT-16: arith.divf
// ODD-NOT: arith.divf
// ODD: scf.yield
// ODD-COUNT-8: arith.divf
// ODD: vector.store
// ODD: } else {
