// RUN: stencilc %programs/heat2d.stencil --emit=stencil -o %t
// RUN: rm -f %t.out
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{tile=128,64},lower-block)' -o %t.out 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{tile=128,256 per-thread=32 pyramid-height=8},lower-block)' -o %t.out 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped,lower-block{max-shared=1000})' -o %t.out 2>&1 | FileCheck %s --check-prefix=DEVICE
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{pyramid-height=64},lower-block)' -o %t.out 2>&1 | FileCheck %s --check-prefix=HIGH
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped,lower-block{max-threads=0})' -o %t.out 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{tile=1048576,1048576 per-thread=1048576,1048576},lower-block)' -o %t.out 2>&1 | FileCheck %s --check-prefix=HUGE
// RUN: not ls %t.out
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{tile=64,64 per-thread=4},lower-block)' | FileCheck %s --check-prefix=FITS
// Tiles that no block can hold are declined with the number that is too large and what to change.

// THREADS: error: declined [threads]: a tile of [128, 64] cells with [4, 1] cells per thread and {{[0-9]+}} steps per launch needs 2048 threads, and a block has 1024 at most; make the tile smaller or give a thread more cells
// SHARED: error: declined [shared-memory]: a tile of [128, 256] cells with 8 steps per launch needs {{[0-9]+}} bytes of shared memory, and a block has 232448 at most; make the tile or the pyramid height smaller
// DEVICE: error: declined [shared-memory]: a tile of [32, 64] cells with 4 steps per launch needs {{[0-9]+}} bytes of shared memory, and a block has 1000 at most
// HIGH: error: declined [shared-memory]: a tile of [32, 64] cells with 64 steps per launch needs {{[0-9]+}} bytes of shared memory
// OPTION: error: max-threads=0: expected a whole number from 1 to 4294967295
// HUGE: error: declined [shared-memory]: a tile of [1048576, 1048576] cells with 4 steps per launch needs {{[0-9]+}} bytes of shared memory
// FITS: known_block_size = array<i32: 64, 16, 1>
