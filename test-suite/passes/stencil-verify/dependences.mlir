// RUN: stencil-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(stencil-verify)'
// Values of the same sweep are computed before: the first number of an offset that is not 0 is negative.

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0, 0)>, upper = affine_map<()[n] -> (n - 1, n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{the dependence [1, -1] of @A is not lexicographically negative, so the value is not computed yet; it would be with the dimensions in the order [1, 0]}}
  func.func private @f(%w: f32 {stencil.current = @A, stencil.offset = array<i64: 1, -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1, 1)>, upper = affine_map<()[n] -> (n - 2, n - 2)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{the dependence [0] of @A is not lexicographically negative, so the value is not computed yet; no order of dimensions makes it so; read the old value by stencil.read}}
  func.func private @f(%w: f32 {stencil.current = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 2)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{stencil.current is for fields that the apply updates, and @B is none; use stencil.read}}
  func.func private @f(%w: f32 {stencil.current = @B, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 2)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.current = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{the read of @A at [-1] by @f reaches below the grid @G in dimension 0; make the piece smaller}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 2)>}]} : () -> ()
}
