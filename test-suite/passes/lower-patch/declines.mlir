// RUN: stencilc %programs/heat2d.stencil --emit=stencil -o %t
// RUN: rm -f %t.out
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=patch tile=64,124 per-thread=4,4 pyramid-height=4},split-interior,lower-patch)' -o %t.out 2>&1 | FileCheck %s --check-prefix=WIDE
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=patch tile=64,30 per-thread=4,4 pyramid-height=4},split-interior,lower-patch)' -o %t.out 2>&1 | FileCheck %s --check-prefix=MULTIPLE
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=patch tile=100,64 per-thread=2,4 pyramid-height=2},split-interior,lower-patch)' -o %t.out 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=patch tile=24,64 per-thread=2,4 pyramid-height=2},split-interior,lower-patch{max-shared=16384})' -o %t.out 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=patch tile=100,60 per-thread=90,4 pyramid-height=2},split-interior,lower-patch)' -o %t.out 2>&1 | FileCheck %s --check-prefix=REGISTERS
// RUN: stencilc %programs/jacobi1d3.stencil --emit=stencil -o %t.1d
// RUN: not stencil-opt %t.1d --pass-pipeline='builtin.module(tile-overlapped{strategy=patch},split-interior,lower-patch)' -o %t.out 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: not stencilc %programs/heat2d.stencil --strategy=patch --arch=gfx942 -o %t.out 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not ls %t.out
// Tiles that no block can hold are declined with what they need.

// WIDE: error: declined [tile-shape]: a tile 124 columns wide with 4 steps per launch needs 132 columns with its halo, and a warp with 4 columns per lane has 128
// MULTIPLE: error: declined [tile-shape]: a tile's columns must be a multiple of the 4 columns per lane, and 30 are not
// THREADS: error: declined [threads]: a tile of [100, 64] cells with [2, 4] cells per thread and 2 steps per launch needs 1664 threads, and a block has 1024 at most; make the tile smaller or give a thread more cells
// SHARED: error: declined [shared-memory]: a tile of [24, 64] cells with 2 steps per launch needs {{[0-9]+}} bytes of shared memory, and a block has 16384 at most
// REGISTERS: error: declined [registers]: the cells of a lane with 90 x 4 cells take {{[0-9]+}} registers, and the strategy patch holds {{[0-9]+}} at most; give a lane fewer cells, or choose another strategy
// RANK: error: declined [rank]: the strategy patch is for grids of 2 or 3 dimensions, and this one has 1; choose block, warp or naive
// TARGET: error: declined [target]: the strategy patch is for NVIDIA's GPUs, not for AMD's GPUs; choose block or naive
