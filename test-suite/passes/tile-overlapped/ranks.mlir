// RUN: stencil-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(tile-overlapped{pyramid-height=2})'
// What tile-overlapped declines.

// Functions on grids of two ranks take a kernel each, and a launch no more than one step.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.grid"() {sym_name = "H", lower = affine_map<()[n] -> (0, 0)>, upper = affine_map<()[n] -> (n - 1, n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @H, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func private @g(%w: f32 {stencil.read = @B, stencil.offset = array<i64: -1, 0>}) -> f32 {
    return %w : f32
  }
  // expected-error @unknown {{the functions update fields on grids that no tile covers or repeats together, so a launch takes at most one step; leave pyramid-height out}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
  "stencil.apply"() {updates = [@B], pieces = [{function = @g, lower = affine_map<()[n] -> (1, 0)>, upper = affine_map<()[n] -> (n - 1, n - 1)>}]} : () -> ()
}

// -----

// expected-error @+1 {{there is no stencil.apply; the program has no functions}}
module attributes {stencil.params = [], stencil.steps = affine_map<() -> (4)>} {
}

// -----

// expected-error @+1 {{the module is no stencil program: it lacks stencil.params, the names of its run-time sizes}}
module {
}
