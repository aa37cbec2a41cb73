// RUN: stencilc %programs/ring1d.stencil --emit=stencil -o %t
// RUN: not stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=naive tile=1048576},lower-naive{max-threads=9999999})' 2>&1 | FileCheck %s
// A limit above the device's own is the device's: such a block can't be launched.

// CHECK: error: declined [threads]: a tile of [1048576] cells {{.*}} needs 1048576 threads, and a block has 1024 at most; make the tile smaller
