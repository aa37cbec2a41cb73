// RUN: stencilc %programs/j2d5pt.stencil --emit=stencil -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{tile=94,126 pyramid-height=1 per-thread=16},lower-block)' | FileCheck %s --check-prefix=STATIC
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{tile=96,128 pyramid-height=2 per-thread=16},lower-block)' | FileCheck %s --check-prefix=DYNAMIC
// RUN: stencilc %programs/j2d5pt.stencil --strategy block --tile 96,128 --pyramid-height 2 --per-thread 16 --emit=plan | FileCheck %s --check-prefix=PLAN
// Up to 48 KB the buffers are static; beyond, they are cut out of one dynamic buffer, whose size
// the plan tells. 96 x 128 cells of 4 bytes are 48 KB exactly.

// STATIC-NOT: gpu.dynamic_shared_memory
// STATIC: gpu.func @j2d5pt_1({{.*}} workgroup(%{{.*}} : memref<96x128xf32

// 100 x 132 cells, then 98 x 130 from byte 52,800: 103,760 bytes, a multiple of 16.
// DYNAMIC: gpu.func @j2d5pt_2(
// DYNAMIC-NOT: workgroup(
// DYNAMIC-SAME: tiled.dynamic_shared = 103760 : i64
// DYNAMIC: %[[all:.+]] = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
// DYNAMIC: memref.view %[[all]][%{{.*}}][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<100x132xf32, #gpu.address_space<workgroup>>
// DYNAMIC: %[[second:.+]] = arith.constant 52800 : index
// DYNAMIC: memref.view %[[all]][%[[second]]][] : {{.*}} to memref<98x130xf32, #gpu.address_space<workgroup>>

// PLAN: "dynamic_shared": 103760
