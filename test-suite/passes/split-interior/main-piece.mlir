// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-overlapped{tile=64 pyramid-height=1},split-interior)' | FileCheck %s
// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-overlapped{tile=64 pyramid-height=2},split-interior,lower-block,gpu.module(canonicalize,cse))' | FileCheck %s --check-prefix=GPU
// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-overlapped{tile=64 pyramid-height=2},lower-block,gpu.module(canonicalize,cse))' | FileCheck %s --check-prefix=WHOLE
// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-overlapped{strategy=naive tile=64},split-interior)' | FileCheck %s --check-prefix=NAIVE
// The second of three pieces is the one that holds most cells; tiles that lie in it run no checks.

#zero = affine_map<()[n] -> (0)>
#one = affine_map<()[n] -> (1)>
#before = affine_map<()[n] -> (n - 2)>
#last = affine_map<()[n] -> (n - 1)>
module @line attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.check"() {value = affine_map<()[n] -> (n - 2)>, unless_empty = [], message = "a line has two ends"} : () -> ()
  func.func private @first(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 1>}) -> f32 {
    return %a : f32
  }
  func.func private @inner(%a: f32 {stencil.read = @A, stencil.offset = array<i64: -1>},
                           %b: f32 {stencil.read = @A, stencil.offset = array<i64: 1>}) -> f32 {
    %r = arith.addf %a, %b : f32
    return %r : f32
  }
  func.func private @last(%a: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %a : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @first, lower = #zero, upper = #zero},
      {function = @inner, lower = #one, upper = #before}, {function = @last, lower = #last, upper = #last}]} : () -> ()
}

// CHECK: func.func @line_1() attributes {tiled.interior = array<i64: 1>, tiled.per_thread
// NAIVE: func.func @line_0() attributes {tiled.per_thread

// Two steps in the interior: no condition but those of the loops.
// GPU: gpu.func @line_2(
// GPU: scf.if
// GPU: gpu.barrier
// GPU-NOT: scf.if
// GPU: arith.addf
// GPU: gpu.barrier
// GPU-NOT: scf.if
// GPU: arith.addf
// GPU: } else {
// GPU: gpu.return

// One body, with checks.
// WHOLE: gpu.func @line_2(
// WHOLE-COUNT-2: arith.addf
// WHOLE-NOT: arith.addf
// WHOLE: gpu.func @line_1(
