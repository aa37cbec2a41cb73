// RUN: stencilc %programs/jacobi1d5.stencil --emit=stencil -o %t
// RUN: rm -f %t.out
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=warp tile=124 per-thread=4 pyramid-height=2},lower-warp)' -o %t.out 2>&1 | FileCheck %s --check-prefix=LONG
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=warp tile=30 per-thread=4 pyramid-height=4},lower-warp)' -o %t.out 2>&1 | FileCheck %s --check-prefix=MULTIPLE
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=warp},lower-warp{warps=64})' -o %t.out 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: stencilc %programs/heat2d.stencil --emit=stencil -o %t.2d
// RUN: not stencil-opt %t.2d --pass-pipeline='builtin.module(tile-overlapped{strategy=warp},lower-warp)' -o %t.out 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: not ls %t.out
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=warp tile=120 per-thread=4 pyramid-height=2},lower-warp{warps=3})' | FileCheck %s --check-prefix=FITS
// Tiles that no warp can hold are declined with what they need.

// LONG: error: declined [tile-shape]: a tile of 124 cells with 2 steps per launch needs 132 cells with its halo, and a warp with 4 cells per lane has 128
// MULTIPLE: error: declined [tile-shape]: a tile's cells must be a multiple of the 4 cells per lane, and 30 are not
// OPTION: error: declined [threads]: {{.*}} needs 2048 threads, and a block has 1024 at most; make warps smaller
// RANK: error: declined [rank]: the strategy warp is for grids of 1 dimension, and this one has 2; choose block, stream, plane, patch, resident, relay or naive
// FITS: known_block_size = array<i32: 96, 1, 1>
