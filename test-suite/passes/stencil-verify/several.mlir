// RUN: rm -f %t
// RUN: not stencil-opt %s --pass-pipeline='builtin.module(stencil-verify)' -o %t 2>&1 | FileCheck %s
// RUN: not ls %t
// RUN: not stencilc %s --emit=ptx -o %t 2>&1 | FileCheck %s
// RUN: not ls %t
// All that is wrong is told in one message with its places, and no output is written.

// CHECK: error: the read of @A at [-1] by @f reaches below the grid @G in dimension 0; make the piece smaller
// CHECK: several.mlir:[[@LINE+16]]:3
// CHECK: func.func private @g(
// CHECK-NEXT: there is no stencil.field @B
// CHECK: "stencil.apply"() {updates = [@A], pieces
// CHECK: "stencil.apply"() {updates = [@K], pieces
// CHECK-NEXT: @K is a const field; it can't be updated
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "K", grid = @G, type = f32, role = "const"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func private @g(%w: f32 {stencil.read = @B, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
  "stencil.apply"() {updates = [@A], pieces = [{function = @g, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
  "stencil.apply"() {updates = [@K], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}
