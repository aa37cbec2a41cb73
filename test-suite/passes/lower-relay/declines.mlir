// RUN: stencilc %programs/star2d1r.stencil --emit=stencil -o %t
// RUN: rm -f %t.out
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=relay tile=64,90 per-thread=1,3 pyramid-height=4},split-interior,lower-relay)' -o %t.out 2>&1 | FileCheck %s --check-prefix=WIDE
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=relay tile=64,90 per-thread=2,3 pyramid-height=1},split-interior,lower-relay)' -o %t.out 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=relay tile=64,64 per-thread=1,13 pyramid-height=4},split-interior,lower-relay{max-shared=4096})' -o %t.out 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=relay tile=64,64 per-thread=1,13 pyramid-height=4},split-interior,lower-relay{max-threads=64})' -o %t.out 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=relay tile=64,64 per-thread=1,91 pyramid-height=7},split-interior,lower-relay)' -o %t.out 2>&1 | FileCheck %s --check-prefix=REGISTERS
// RUN: stencilc %programs/heat2d.stencil --emit=stencil -o %t.2
// RUN: not stencil-opt %t.2 --pass-pipeline='builtin.module(tile-overlapped{strategy=relay tile=64,64 per-thread=1,3 pyramid-height=2},split-interior,lower-relay)' -o %t.out 2>&1 | FileCheck %s --check-prefix=FIELDS
// RUN: not ls %t.out
// Tiles that no block can hold, and functions of several fields, are declined with what they need.

// WIDE: error: declined [tile-shape]: a tile 90 columns wide needs 102 columns with its halo, and a warp with 3 cells per lane has 96
// SHAPE: error: declined [tile-shape]: the strategy relay needs a grid of two dimensions and tiled.per_thread = [1, cells per lane], and here tile and tiled.per_thread are [64, 90] and [2, 3]
// SHARED: error: declined [shared-memory]: a tile of [64, 64] cells with 4 steps per launch needs {{[0-9]+}} bytes of shared memory, and a block has 4096 at most
// THREADS: error: declined [threads]: a tile of [64, 64] cells with [1, 13] cells per thread and 4 steps per launch needs 128 threads, and a block has 64 at most; make the pyramid height smaller
// REGISTERS: error: declined [registers]: the rows in flight of a lane with 91 cells take {{[0-9]+}} registers with the steps shared among up to 16 warps, more than there are; give a lane fewer cells, or make the pyramid height smaller
// FIELDS: error: declined [applies]: the strategy relay takes functions that update one field and read no other; choose another strategy
