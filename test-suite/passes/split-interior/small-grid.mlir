// RUN: stencilc %programs/heat2d.stencil --emit=stencil -D N=40 -D M=70 -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{tile=32,64 pyramid-height=4},split-interior)' | FileCheck %s
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{tile=32,64 pyramid-height=1},split-interior)' | FileCheck %s --check-prefix=ONE
// RUN: stencilc %programs/heat2d.stencil -D N=40 -D M=70 --strategy block --tile 32,64 --pyramid-height 1 --no-split-interior --emit=tiled | FileCheck %s --check-prefix=NONE
// A tile with the halo of four steps is 40 by 72 cells, more than the grid has: no tile goes without checks.

// CHECK: func.func @heat2d_4() attributes {tiled.per_thread
// NONE-NOT: tiled.interior
// ONE: func.func @heat2d_1() attributes {tiled.interior = array<i64: 0>
