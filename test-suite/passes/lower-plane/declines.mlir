// RUN: stencilc %programs/heat2d.stencil --emit=stencil -o %t
// RUN: rm -f %t.out
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=plane tile=64,30},lower-plane)' -o %t.out 2>&1 | FileCheck %s --check-prefix=MULTIPLE
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=plane per-thread=2,4 tile=64,64},lower-plane)' -o %t.out 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=plane pyramid-height=2},lower-plane)' -o %t.out 2>&1 | FileCheck %s --check-prefix=STEPS
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=plane per-thread=1,4096 tile=64,4096},lower-plane)' -o %t.out 2>&1 | FileCheck %s --check-prefix=REGISTERS
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=plane tile=64,8192},lower-plane)' -o %t.out 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=plane},lower-plane{max-shared=64})' -o %t.out 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: stencilc %programs/jacobi1d3.stencil --emit=stencil -o %t.1d
// RUN: not stencil-opt %t.1d --pass-pipeline='builtin.module(tile-overlapped{strategy=plane},lower-plane)' -o %t.out 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: not ls %t.out

// MULTIPLE: error: declined [tile-shape]: a tile's columns must be a multiple of the 4 cells per thread, and 30 are not
// SHAPE: error: declined [tile-shape]: the strategy plane needs a grid of two dimensions and tiled.per_thread = [1, cells per thread], or one of three and [1, 1, cells per thread], and here tile and tiled.per_thread are [64, 64] and [2, 4]
// STEPS: error: declined
// REGISTERS: error: declined
// THREADS: error: declined [threads]: a tile of [64, 8192] cells with [1, 4] cells per thread and 1 step per launch needs 2048 threads, and a block has 1024 at most; make the tile smaller
// SHARED: error: declined [shared-memory]: a tile of {{.*}} cells with 1 step per launch needs {{[0-9]+}} bytes of shared memory, and a block has 64 at most
// RANK: error: declined [rank]: the strategy plane is for grids of 2 or 3 dimensions, and this one has 1; choose block, warp or naive
