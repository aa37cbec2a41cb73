// RUN: stencil-opt %s --split-input-file --verify-diagnostics
// What IRDL and the verifier refuse in tile kernels and host schedules.

// IRDL: a tile value is wanted.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    %x = arith.constant 1.0 : f32
    // expected-error @+1 {{expected base type 'tiled.tile' but got 'builtin.f32'}}
    "tiled.store"(%x) {field = @A} : (f32) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

// IRDL: an attribute is missing.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    // expected-error @+1 {{attribute "step" is expected but not provided}}
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

// IRDL: a count is an affine map.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  // expected-error @+1 {{expected base attribute 'builtin.affine_map' but got 'builtin.integer'}}
  "tiled.repeat"() {count = 3 : i64, kernels = [@k]} : () -> ()
}

// -----

// A tile kernel says all of its schedule.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{func.func: the attribute 'tiled.steps' is missing}}
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{func.func: the attribute 'tiled.tile' is of the wrong kind: 64 : i64}}
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = 64 : i64, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{tiled.tile and tiled.per_thread need 1 numbers, one a dimension}}
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64, 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{tiled.tile and tiled.per_thread must be from 1 to 1048576, tiled.steps from 0 to 1024}}
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 0>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{tiled.tile and tiled.per_thread must be from 1 to 1048576, tiled.steps from 0 to 1024}}
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = -1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

// Tile kernels compute by tiled.apply alone.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    // expected-error @+1 {{arith.constant can't stand in a tile kernel: it holds tiled.load, tiled.apply and tiled.store only}}
    %x = arith.constant 1.0 : f32
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

// One operand a field of `reads`.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    // expected-error @+1 {{tiled.apply has the wrong operands or results}}
    %u = "tiled.apply"(%a) {reads = [@A, @B], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

// One result a field of `updates`.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    // expected-error @+1 {{tiled.apply has the wrong operands or results}}
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A, @B], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    // expected-error @+1 {{an apply needs at least one}}
    "tiled.apply"(%a) {reads = [@A], updates = [], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> ()
    "tiled.store"(%a) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    // expected-error @+1 {{there is no stencil.field @C}}
    %c = "tiled.load"() {field = @C, lower = array<i64: 0>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    // expected-error @+1 {{lower and upper need 1 numbers here, one a dimension}}
    %a = "tiled.load"() {field = @A, lower = array<i64: -1, 0>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    // expected-error @+1 {{lower and upper need 1 numbers here, one a dimension}}
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0, 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

// A tile belongs to its field.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %b = "tiled.load"() {field = @B, lower = array<i64: 0>, upper = array<i64: 0>} : () -> !tiled.tile
    // expected-error @+1 {{a tile of @A stands for @B}}
    %u = "tiled.apply"(%a, %a) {reads = [@A, @B], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile, !tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    // expected-error @+1 {{a tile of @A is stored to @B}}
    "tiled.store"(%u) {field = @B} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

// A store takes the whole tile.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 1>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    // expected-error @+1 {{tiled.store of @A needs the whole tile, and its operand reaches from [1] to [0]}}
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

// Read: the input region holds the output region moved by the offset.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: 0>, upper = array<i64: 0>} : () -> !tiled.tile
    // expected-error @+1 {{the tile of @A reaches from [0] to [0], and the apply needs one that reaches from [-1] to [-1]: the field is read at [-1] by @f}}
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

// Kept: cells outside the pieces come from the input too.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: -1>} : () -> !tiled.tile
    // expected-error @+1 {{the tile of @A reaches from [-1] to [-1], and the apply needs one that reaches from [0] to [0]: the field is updated, and keeps its value where no piece lies}}
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@B], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    // expected-error @+1 {{tiled.store of @B needs a value in every cell, and the pieces of its apply may leave some out; give the apply an operand of @B}}
    "tiled.store"(%u) {field = @B} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @g(%w: f32 {stencil.read = @B, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -2>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@B], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: -1>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    // The point 2 reads a cell of the piece, the point 1 does not.
    %v = "tiled.apply"(%a, %u) {reads = [@A, @B], updates = [@A], pieces = [{function = @g, lower = affine_map<()[n] -> (2)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile, !tiled.tile) -> !tiled.tile
    // expected-error @+1 {{@g reads @B at [-1] where it may have no value: the apply that makes the tile has no operand of @B for the cells that its pieces leave out}}
    %w = "tiled.apply"(%v, %u) {reads = [@A, @B], updates = [@A], pieces = [{function = @g, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile, !tiled.tile) -> !tiled.tile
    "tiled.store"(%w) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %b = "tiled.load"() {field = @B, lower = array<i64: 0>, upper = array<i64: 0>} : () -> !tiled.tile
    // expected-error @+1 {{@A is read at [-1] by @f but is not among `reads`}}
    %u = "tiled.apply"(%b) {reads = [@B], updates = [@B], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @B} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    // expected-error @+1 {{there is no func.func @g}}
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @g, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

// The host schedule names kernels that are there.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  // expected-error @+1 {{there is no kernel @l}}
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@l]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  // expected-error @+1 {{the count of a tiled.repeat needs one result, a symbol a run-time size, and the steps as last symbol}}
  "tiled.repeat"() {count = affine_map<()[steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

// Counts that divide by what is not positive.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  // expected-error @+1 {{the count of a tiled.repeat divides by 0; a divisor must be positive, so change it}}
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps floordiv 0)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  // expected-error @+1 {{the count of a tiled.repeat divides by 0; a divisor must be positive, so change it}}
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (1 + (steps mod 0) * 2)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  gpu.module @kernels {
    // expected-error @+1 {{tiled.grid divides by -4; a divisor must be positive, so change it}}
    gpu.func @k(%a: memref<f32> {tiled.binding = "read", tiled.name = "A"}) kernel attributes {known_block_size = array<i32: 64, 1, 1>, tiled.grid = affine_map<()[n] -> (n ceildiv -4)>,
        tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
      gpu.return
    }
  }
}

// -----

// A tile larger than any that is possible, and one whose volume leaves 64 bits.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{tiled.tile and tiled.per_thread must be from 1 to 1048576}}
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 9223372036854775807>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{tiled.steps from 0 to 1024}}
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1025 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

// PTX must be able to name a kernel.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{ can't name a kernel; choose a letter, then letters, digits and _, and not WARP_SZ}}
  func.func @"a b"() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@"a b"]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{the tile kernel @k has arguments; remove them, because tiled.load fetches tiles}}
  func.func @k(%x: i32) attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    // expected-error @+1 {{the step 1 lies outside of the kernel's 1, which count from 0}}
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 1 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    // expected-error @+1 {{attribute 'step' is of the wrong kind}}
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i129, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

// What is loaded can't be stored.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    // expected-error @+1 {{tiled.store of @A needs the result of a tiled.apply; what is loaded is there already}}
    "tiled.store"(%a) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

// Pieces are those of a stencil.apply, and hold to the same rules.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    // expected-error @+1 {{the read of @A at [-1] by @f reaches below the grid @G in dimension 0; make the piece smaller}}
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    // expected-error @+1 {{the bounds need 1 symbols, one a run-time size of stencil.params, and no dimensions}}
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n, m] -> (m)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{@f returns f64 for @A, which holds f32}}
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f64 {
    %d = arith.extf %w : f32 to f64
    return %d : f64
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

// A schedule launches kernels alone.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -1>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
  // expected-error @+1 {{there is no kernel @f}}
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@f]} : () -> ()
}

// -----

// expected-error @+1 {{tiled.index_width must be 32 or 64}}
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>, tiled.index_width = 16 : i64} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
}

// -----

// Lowered kernels: what their arguments are bound to is declared, and of its type.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  gpu.module @kernels {
    // expected-error @+1 {{there is no stencil.field @B}}
    gpu.func @k(%a: memref<f32> {tiled.binding = "read", tiled.name = "B"}) kernel attributes {known_block_size = array<i32: 64, 1, 1>, tiled.grid = affine_map<()[n] -> (n)>,
        tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
      gpu.return
    }
  }
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  gpu.module @kernels {
    // expected-error @+1 {{an argument of type memref<f64> can't be bound to Read("A")}}
    gpu.func @k(%a: memref<f64> {tiled.binding = "read", tiled.name = "A"}) kernel attributes {known_block_size = array<i32: 64, 1, 1>, tiled.grid = affine_map<()[n] -> (n)>,
        tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
      gpu.return
    }
  }
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  gpu.module @kernels {
    // expected-error @+1 {{an argument of type i32 can't be bound to Param("N")}}
    gpu.func @k(%n: i32 {tiled.binding = "param", tiled.name = "N"}) kernel attributes {known_block_size = array<i32: 64, 1, 1>, tiled.grid = affine_map<()[n] -> (n)>,
        tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
      gpu.return
    }
  }
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  gpu.module @kernels {
    // expected-error @+1 {{an argument of the kernel has no valid tiled.binding; add what it is bound to}}
    gpu.func @k(%n: i32 {tiled.binding = "wrote", tiled.name = "N"}) kernel attributes {known_block_size = array<i32: 64, 1, 1>, tiled.grid = affine_map<()[n] -> (n)>,
        tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
      gpu.return
    }
  }
}

// -----

// Lowered kernels: grid and block are possible.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  gpu.module @kernels {
    // expected-error @+1 {{a block has a positive number of threads in each of three directions, and known_block_size is [0, 1, 1]}}
    gpu.func @k(%a: memref<f32> {tiled.binding = "read", tiled.name = "A"}) kernel attributes {known_block_size = array<i32: 0, 1, 1>, tiled.grid = affine_map<()[n] -> (n)>,
        tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
      gpu.return
    }
  }
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  gpu.module @kernels {
    // expected-error @+1 {{tiled.grid needs one result, the number of blocks, and one symbol a run-time size}}
    gpu.func @k(%a: memref<f32> {tiled.binding = "read", tiled.name = "A"}) kernel attributes {known_block_size = array<i32: 64, 1, 1>, tiled.grid = affine_map<()[n] -> (n, 1)>,
        tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
      gpu.return
    }
  }
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  gpu.module @kernels {
    // expected-error @+1 {{tiled.grid needs one result, the number of blocks, and one symbol a run-time size}}
    gpu.func @k(%a: memref<f32> {tiled.binding = "read", tiled.name = "A"}) kernel attributes {known_block_size = array<i32: 64, 1, 1>, tiled.grid = affine_map<(d)[n] -> (d)>,
        tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
      gpu.return
    }
  }
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %a : f32
  }
  func.func @k() attributes {tiled.interior = array<i64: 1>, tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %0 = "tiled.load"() {field = @A, lower = array<i64: 0>, upper = array<i64: 0>} : () -> !tiled.tile
    // expected-error @+1 {{tiled.interior needs the number of a piece, from 0, for each tiled.apply in order, and has none for this one}}
    %1 = "tiled.apply"(%0) {reads = [@A], updates = [@A], step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>,
        pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}]} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%1) {field = @A} : (!tiled.tile) -> ()
    return
  }
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{tiled.interior has more numbers than there are applies}}
  func.func @k() attributes {tiled.interior = array<i64: 0>, tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    return
  }
}

// -----

// The nearest cell inside may be the point itself.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "K", grid = @G, type = f32, role = "const", stencil.boundary = "nearest"} : () -> ()
  func.func private @f(%a: f32 {stencil.read = @K, stencil.offset = array<i64: -2>}) -> f32 {
    return %a : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %0 = "tiled.load"() {field = @A, lower = array<i64: 0>, upper = array<i64: 0>} : () -> !tiled.tile
    %1 = "tiled.load"() {field = @K, lower = array<i64: -2>, upper = array<i64: -2>} : () -> !tiled.tile
    // expected-error @+1 {{the tile of @K reaches from [-2] to [-2], and the apply needs one that reaches from [-2] to [0]: the field is read at [-2] by @f}}
    %2 = "tiled.apply"(%0, %1) {reads = [@A, @K], updates = [@A], step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>,
        pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}]} : (!tiled.tile, !tiled.tile) -> !tiled.tile
    "tiled.store"(%2) {field = @A} : (!tiled.tile) -> ()
    return
  }
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // A fixed region may compute cells from what no tile holds, but not those that are stored.
  func.func @k() attributes {tiled.strategy = "block", tiled.region = "fixed", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 3 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -2>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: -2>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    %v = "tiled.apply"(%u) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 1 : i64, lower = array<i64: -2>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    %w = "tiled.apply"(%v) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 2 : i64, lower = array<i64: -2>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    // expected-error @+1 {{tiled.store of @A needs the whole tile, and what comes from cells that tiles hold reaches from [1] to [0]}}
    "tiled.store"(%w) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f32, role = "temp"} : () -> ()
  func.func private @f(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %a : f32
  }
  func.func private @g(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 1152921504606846970>}) -> f32 {
    return %a : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.region = "fixed", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: -100>, upper = array<i64: 100>} : () -> !tiled.tile
    %b = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    // Nobody needs its result, but it goes farther than any tile can.
    // expected-error @+1 {{the tile of @A reaches from [-100] to [100], and the apply needs one that reaches from [1152921504606846970] to [1152921504606846970]: the field is read at [1152921504606846970] by @g}}
    %c = "tiled.apply"(%a) {reads = [@A], updates = [@B], pieces = [{function = @g, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1152921504606846971)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%b) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps)>, kernels = [@k]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  // expected-error @+1 {{there is no region 'large'; there are shrinking and fixed}}
  func.func @k() attributes {tiled.strategy = "block", tiled.region = "large", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    return
  }
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  gpu.module @kernels {
    // expected-error @+1 {{tiled.rows has one result, the number of tile rows, and one symbol a run-time size, and tiled.reach is from 0 to 2^32 - 1}}
    gpu.func @k(%row: index {tiled.binding = "row"}) kernel attributes {known_block_size = array<i32: 64, 1, 1>, tiled.grid = affine_map<()[n] -> (n)>,
        tiled.rows = affine_map<()[n] -> (n)>, tiled.reach = -1 : i64,
        tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
      gpu.return
    }
  }
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  gpu.module @kernels {
    // expected-error @+1 {{a kernel has an argument bound to "row" if, and only if, it has tiled.rows}}
    gpu.func @k(%step: i64 {tiled.binding = "step"}) kernel attributes {known_block_size = array<i32: 64, 1, 1>, tiled.grid = affine_map<()[n] -> (n)>,
        tiled.rows = affine_map<()[n] -> (n)>, tiled.reach = 1 : i64,
        tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
      gpu.return
    }
  }
}

// -----

// Two applies of one step, and none of the other.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %a : f32
  }
  // expected-error @+1 {{the kernel @k has 2 steps, and no tiled.apply computes step 1}}
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 2 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: 0>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    %v = "tiled.apply"(%u) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%v) {field = @A} : (!tiled.tile) -> ()
    return
  }
}

// -----

// Two applies of one step that both go on with the loaded tile: the first update is lost.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %a : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: 0>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    // expected-error @+1 {{an old tile of @A is used here, and an earlier tiled.apply has updated the field; use its result}}
    %v = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%v) {field = @A} : (!tiled.tile) -> ()
    return
  }
}

// -----

// Steps that run backwards.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %a : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 2 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: 0>, upper = array<i64: 0>} : () -> !tiled.tile
    // expected-error @+1 {{a tiled.apply of step 1 stands where step 0 begins; the applies of a kernel go through its steps in order}}
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 1 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    %v = "tiled.apply"(%u) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%v) {field = @A} : (!tiled.tile) -> ()
    return
  }
}

// -----

// Kernels that are lowered and those that are not share their names.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  gpu.module @kernels {
    gpu.func @k(%step: i64 {tiled.binding = "step"}) kernel attributes {known_block_size = array<i32: 64, 1, 1>, tiled.grid = affine_map<()[n] -> (n)>,
        tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
      gpu.return
    }
  }
  // expected-error @+1 {{a lowered kernel has the name @k too; rename one of them}}
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    return
  }
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  gpu.module @kernels {
  }
  // expected-error @+1 {{a program has one gpu.module; move its kernels to the first}}
  gpu.module @others {
  }
}

// -----

// A constant of PTX.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  // expected-error @+1 {{@"WARP_SZ" can't name a kernel; choose a letter, then letters, digits and _, and not WARP_SZ}}
  func.func @WARP_SZ() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    return
  }
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  gpu.module @kernels {
    // expected-error @+1 {{tiled.dynamic_shared is from 0 to 2^32 - 1 bytes, not -5}}
    gpu.func @k(%step: i64 {tiled.binding = "step"}) kernel attributes {known_block_size = array<i32: 64, 1, 1>, tiled.grid = affine_map<()[n] -> (n)>,
        tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64, tiled.dynamic_shared = -5 : i64} {
      gpu.return
    }
  }
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  gpu.module @kernels {
    // expected-error @+1 {{the attribute 'tiled.dynamic_shared' is of the wrong kind}}
    gpu.func @k(%step: i64 {tiled.binding = "step"}) kernel attributes {known_block_size = array<i32: 64, 1, 1>, tiled.grid = affine_map<()[n] -> (n)>,
        tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64, tiled.dynamic_shared = "x"} {
      gpu.return
    }
  }
}

// -----

// An absolute read sees the field as it was before the launch.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%i: i64 {stencil.coord = 0 : i64}) -> f32 {
    %a = "stencil.gather"(%i) {field = @A} : (i64) -> f32
    return %a : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 2 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: 0>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    // expected-error @+1 {{@A is read at computed places, and an apply before it in @k updates it; the reads need the whole field, so put the apply into a kernel of its own}}
    %v = "tiled.apply"(%u) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}],
                          step = 1 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%v) {field = @A} : (!tiled.tile) -> ()
    return
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (steps floordiv 2)>, kernels = [@k]} : () -> ()
}
