// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-overlapped)' --split-input-file --verify-diagnostics
// A schedule in the module's attributes is checked as options are.

// expected-error @+1 {{pyramid-height=-1: expected a whole number from 1 to 1024}}
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>, tiled.steps = -1 : i64} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

// expected-error @+1 {{pyramid-height=0: expected a whole number from 1 to 1024}}
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>, tiled.steps = 0 : i64} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

// expected-error @+1 {{per-thread=0: expected a whole number from 1 to 1048576}}
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>, tiled.per_thread = array<i64: 0>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

// expected-error @+1 {{tile=0: expected a whole number from 1 to 1048576}}
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>, tiled.tile = array<i64: 0>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

// expected-error @+1 {{the attribute 'tiled.tile' is of the wrong kind: 64 : i64}}
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>, tiled.tile = 64 : i64} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

// expected-error @+1 {{the attribute 'tiled.strategy' is of the wrong kind: 1 : i64}}
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>, tiled.strategy = 1 : i64} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

// expected-error @+1 {{the attribute 'tiled.steps' is of the wrong kind}}
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>, tiled.steps = "two"} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}
