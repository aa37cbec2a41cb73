// RUN: stencilc %programs/heat2d.stencil --emit=stencil -o %t
// RUN: rm -f %t.out
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=stream tile=64,124 pyramid-height=4},split-interior,lower-stream)' -o %t.out 2>&1 | FileCheck %s --check-prefix=WIDE
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=stream tile=64,30 pyramid-height=4},split-interior,lower-stream)' -o %t.out 2>&1 | FileCheck %s --check-prefix=MULTIPLE
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=stream per-thread=2,4 tile=64,64},split-interior,lower-stream)' -o %t.out 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=stream},split-interior,lower-stream{ahead=0})' -o %t.out 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: stencilc %programs/jacobi1d3.stencil --emit=stencil -o %t.1d
// RUN: not stencil-opt %t.1d --pass-pipeline='builtin.module(tile-overlapped{strategy=stream},split-interior,lower-stream)' -o %t.out 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: stencilc %programs/jacobi3d.stencil --emit=stencil -o %t.3d
// RUN: not stencil-opt %t.3d --pass-pipeline='builtin.module(tile-overlapped{strategy=stream tile=32,126,120 per-thread=1,2,4 pyramid-height=1},split-interior,lower-stream)' -o %t.out 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not stencil-opt %t.3d --pass-pipeline='builtin.module(tile-overlapped{strategy=stream tile=32,120,8 per-thread=1,1,4 pyramid-height=4},split-interior,lower-stream{max-shared=65536})' -o %t.out 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: not ls %t.out
// Tiles that no warp or no block can hold are declined with what they need.

// WIDE: error: declined [tile-shape]: a tile 124 columns wide with 4 steps per launch needs 132 columns with its halo, and a warp with 4 cells per lane has 128
// MULTIPLE: error: declined [tile-shape]: a tile's columns must be a multiple of the 4 cells per lane along a row, and 30 are not
// ROWS: error: declined [tile-shape]: the strategy stream needs a grid of two dimensions and tiled.per_thread = [1, cells per lane], or one of three
// OPTION: error: ahead=0: expected a whole number from 1 to 64
// RANK: error: declined [rank]: the strategy stream is for grids of 2 or 3 dimensions, and this one has 1; choose block, warp or naive
// THREADS: error: declined [threads]: a tile of [32, 126, 120] cells with [1, 2, 4] cells per thread and 1 step per launch needs 2048 threads, and a block has 1024 at most
// SHARED: error: declined [shared-memory]: a tile of [32, 120, 8] cells with 4 steps per launch needs {{[0-9]+}} bytes of shared memory, and a block has 65536 at most
