// RUN: stencil-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(lower-naive)'
// What lower-naive declines.

module attributes {stencil.params = [], stencil.steps = affine_map<() -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<() -> (0)>, upper = affine_map<() -> (9)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%c: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %c : f32
  }
  // expected-error @+1 {{a tile kernel of strategy naive has one tiled.apply, and @k has 2}}
  func.func @k() attributes {tiled.strategy = "naive", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 2 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: 0>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<() -> (0)>, upper = affine_map<() -> (9)>}],
                            step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    %v = "tiled.apply"(%u) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<() -> (0)>, upper = affine_map<() -> (9)>}],
                            step = 1 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%v) {field = @A} : (!tiled.tile) -> ()
    return
  }
}

// -----

module attributes {stencil.params = [], stencil.steps = affine_map<() -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<() -> (0)>, upper = affine_map<() -> (9)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%c: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %c : f32
  }
  // expected-error @+1 {{the tile kernel stores nothing}}
  func.func @k() attributes {tiled.strategy = "naive", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: 0>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<() -> (0)>, upper = affine_map<() -> (9)>}],
                            step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    return
  }
}

// -----

// Kernels of another strategy are left alone.
module attributes {stencil.params = [], stencil.steps = affine_map<() -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<() -> (0)>, upper = affine_map<() -> (9)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%c: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %c : f32
  }
  func.func @k() attributes {tiled.strategy = "block", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: 0>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<() -> (0)>, upper = affine_map<() -> (9)>}],
                            step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
}

// -----

module attributes {stencil.params = [], stencil.steps = affine_map<() -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<() -> (0)>, upper = affine_map<() -> (9999)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%c: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %c : f32
  }
  // expected-error @+1 {{a tile of [1025] cells with [1] cells per thread and 1 step per launch needs 1025 threads, and a block has 1024 at most; make the tile smaller}}
  func.func @k() attributes {tiled.strategy = "naive", tiled.tile = array<i64: 1025>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: 0>, upper = array<i64: 0>} : () -> !tiled.tile
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<() -> (0)>, upper = affine_map<() -> (9999)>}],
                            step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
}

// -----

module attributes {stencil.params = [], stencil.steps = affine_map<() -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<() -> (0)>, upper = affine_map<() -> (9)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%c: f32 {stencil.current = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %c : f32
  }
  func.func @k() attributes {tiled.strategy = "naive", tiled.tile = array<i64: 64>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64} {
    %a = "tiled.load"() {field = @A, lower = array<i64: 0>, upper = array<i64: 0>} : () -> !tiled.tile
    // expected-error @+1 {{the strategy of the kernel computes all points at once, and the function reads values of its own sweep; take a strategy for sweeps}}
    %u = "tiled.apply"(%a) {reads = [@A], updates = [@A], pieces = [{function = @f, lower = affine_map<() -> (1)>, upper = affine_map<() -> (9)>}],
                            step = 0 : i64, lower = array<i64: 0>, upper = array<i64: 0>} : (!tiled.tile) -> !tiled.tile
    "tiled.store"(%u) {field = @A} : (!tiled.tile) -> ()
    return
  }
}
