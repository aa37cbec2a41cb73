// RUN: stencil-opt %s | FileCheck %s
// A read of a cell that does not exist: its author's fault, which a run on the simulator tells.
// CHECK: stencil.gather
module @p attributes {stencil.params = [], stencil.steps = affine_map<() -> (1)>} {
  "stencil.grid"() {lower = affine_map<() -> (0)>, sym_name = "G", upper = affine_map<() -> (63)>} : () -> ()
  "stencil.field"() {grid = @G, role = "const", sym_name = "K", type = f32} : () -> ()
  "stencil.field"() {grid = @G, role = "state", sym_name = "B", type = f32} : () -> ()
  func.func private @f() -> f32 {
    %i = arith.constant 64 : i64
    %0 = "stencil.gather"(%i) {field = @K} : (i64) -> f32
    return %0 : f32
  }
  "stencil.apply"() {pieces = [{function = @f, lower = affine_map<() -> (0)>, upper = affine_map<() -> (63)>}], updates = [@B]} : () -> ()
}
