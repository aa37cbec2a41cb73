// RUN: stencil-opt %s > %t.before
// RUN: stencil-opt %s --pass-pipeline='builtin.module(stencil-verify)' > %t.after
// RUN: diff %t.before %t.after
// RUN: FileCheck %s < %t.after
// A program whose bounds are decided by a check at launch passes, and nothing in it changes.

// CHECK: module @middle
// CHECK: "stencil.apply"()
module @middle attributes {stencil.params = ["N", "K"], stencil.steps = affine_map<()[n, k] -> (k)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n, k] -> (0)>, upper = affine_map<()[n, k] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f64, role = "state"} : () -> ()
  // The piece reaches to 2 K - 1 and its reads one beyond: N - 1 - 2 K must not be negative.
  "stencil.check"() {value = affine_map<()[n, k] -> (n - 2 * k)>, unless_empty = [], message = "the piece lies outside the grid"} : () -> ()
  "stencil.check"() {value = affine_map<()[n, k] -> (n - 2 * k - 1)>, unless_empty = [], message = "a read lies outside the grid"} : () -> ()
  func.func private @right(%e: f64 {stencil.read = @A, stencil.offset = array<i64: 1>}) -> f64 {
    return %e : f64
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @right, lower = affine_map<()[n, k] -> (0)>, upper = affine_map<()[n, k] -> (2 * k - 1)>}]} : () -> ()
}
