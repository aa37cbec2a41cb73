// RUN: stencilc %programs/heat2d.stencil --emit=stencil -o %t
// RUN: not stencil-opt %t --pass-pipeline='choose-schedule{tile=300,3000 per-thread=1,1}' -o %t.out 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: not stencil-opt %t --pass-pipeline='choose-schedule{strategy=blocks},tile-overlapped' -o %t.out 2>&1 | FileCheck %s --check-prefix=STRATEGY
// RUN: not stencil-opt %t --pass-pipeline='choose-schedule{pyramid-height=0}' -o %t.out 2>&1 | FileCheck %s --check-prefix=HEIGHT
// RUN: stencil-opt %t --pass-pipeline='choose-schedule{tile=15,33}' | FileCheck %s --check-prefix=ODD

// Where no strategy takes the tile, the first says why.
// TILE: error: {{.*}}a tile of [300, 3000] cells with [1, 1] cells per thread and {{[0-9]+}} steps per launch needs 900000 threads
// STRATEGY: error: there is no strategy 'blocks'
// HEIGHT: error: pyramid-height=0

// A tile that a lane's cells do not divide is none for streams.
// ODD-NOT: tiled.strategy = "stream"
// ODD: tiled.strategy = "{{block|naive}}", tiled.tile = array<i64: 15, 33>
