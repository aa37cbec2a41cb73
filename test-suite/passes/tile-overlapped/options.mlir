// RUN: not stencil-opt %s --pass-pipeline='builtin.module(tile-overlapped{strategy=spiral})' 2>&1 | FileCheck %s --check-prefix=STRATEGY
// RUN: not stencil-opt %s --pass-pipeline='builtin.module(tile-overlapped{tile=8,8})' 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: not stencil-opt %s --pass-pipeline='builtin.module(tile-overlapped{per-thread=2,2})' 2>&1 | FileCheck %s --check-prefix=THREAD
// RUN: not stencil-opt %s --pass-pipeline='builtin.module(tile-overlapped{tile=0})' 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not stencil-opt %s --pass-pipeline='builtin.module(tile-overlapped{pyramid-height=two})' 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: not stencil-opt %s --pass-pipeline='builtin.module(tile-overlapped{pyramid-height=99999999999999999999})' 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not stencil-opt %s --pass-pipeline='builtin.module(tile-overlapped{strategy=naive pyramid-height=2})' 2>&1 | FileCheck %s --check-prefix=NAIVE
// RUN: not stencil-opt %s --pass-pipeline='builtin.module(tile-overlapped{height=2})' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not stencil-opt %s --pass-pipeline='builtin.module(tile-overlapped{tile})' 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not stencil-opt %s --pass-pipeline='builtin.module(tile-overlapped,tile-overlapped)' 2>&1 | FileCheck %s --check-prefix=TWICE
// Options that can't be taken are refused with what could be.

// STRATEGY: error: there is no strategy 'spiral'; there are block, stream, warp, plane, patch, resident, relay, naive, strip, wavefront, slab and rows
// RANK: error: tile has 2 numbers, and the grid has 1 dimension; give one per dimension
// THREAD: error: per-thread has 2 numbers, and the grid has 1 dimension; give one per dimension
// ZERO: error: tile=0: expected a whole number from 1 to 1048576
// WORD: error: pyramid-height=two: expected a whole number from 1 to 1024
// LARGE: error: pyramid-height=99999999999999999999: expected a whole number from 1 to 1024
// NAIVE: error: declined [height]: the strategy naive runs one step per launch; leave pyramid-height out or choose another strategy
// UNKNOWN: error: the pass tile-overlapped has no option 'height'; it has strategy, tile, pyramid-height, per-thread
// VALUE: error: 'tile' is no option; write name=value
// TWICE: error: there is no stencil.apply to tile; add a function, or name the passes that lower a program that is tiled already
module @shift attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }

  // The place of a message without one of its own is the first function.
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}
