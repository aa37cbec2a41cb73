// RUN: stencilc %programs/heat2d.stencil --emit=stencil -o %t
// RUN: rm -f %t.out
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=stream tile=64,124 pyramid-height=4},lower-stream)' -o %t.out 2>&1 | FileCheck %s --check-prefix=WIDE
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=stream tile=64,30 pyramid-height=4},lower-stream)' -o %t.out 2>&1 | FileCheck %s --check-prefix=MULTIPLE
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=stream per-thread=2,4 tile=64,64},lower-stream)' -o %t.out 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=stream},lower-stream{warps=64})' -o %t.out 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: stencilc %programs/jacobi3d.stencil --emit=stencil -o %t.3d
// RUN: not stencil-opt %t.3d --pass-pipeline='builtin.module(tile-overlapped{strategy=stream},lower-stream)' -o %t.out 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: not ls %t.out
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=stream tile=64,120 pyramid-height=4},lower-stream{warps=3})' | FileCheck %s --check-prefix=FITS
// Tiles that no warp can hold are declined with what they need.

// WIDE: error: a tile 124 columns wide with pyramid height 4 needs 132 columns with its halo, and a warp with 4 cells a lane has 128
// MULTIPLE: error: a tile 30 columns wide {{.*}} the tile's columns must also be a multiple of 4
// ROWS: error: the strategy stream needs a grid of two dimensions and tiled.per_thread = [1, cells a lane]
// OPTION: error: warps=64: a whole number from 1 to 32 is wanted
// RANK: error: the strategy stream is for grids of two dimensions, and this one has 3; choose naive or block
// FITS: known_block_size = array<i32: 96, 1, 1>
