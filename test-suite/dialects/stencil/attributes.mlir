// RUN: stencil-opt %s --split-input-file --verify-diagnostics
// Attributes and keys of unknown names are refused: MLIR would keep them, and nobody read them.

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
// An attribute of the dialect is misspelt.
module attributes {stencil.params = ["N"], stencil.steps = #steps} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{there is no attribute stencil.repeats; stencil.apply has updates, pieces, stencil.repeat and tiled.kernel}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #one, upper = #last}], stencil.repeats = array<i64: 0, 3>} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
// It lacks the prefix.
module attributes {stencil.params = ["N"], stencil.steps = #steps} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{there is no attribute repeat; stencil.apply has updates, pieces, stencil.repeat and tiled.kernel}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #one, upper = #last}], repeat = array<i64: 0, 3>} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
module attributes {stencil.params = ["N"], stencil.steps = #steps} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  // expected-error @+1 {{there is no attribute stencil.inital; stencil.field has sym_name, grid, type, role, stencil.initial,}}
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state", stencil.inital = 1.0 : f32} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #one, upper = #last}]} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
module attributes {stencil.params = ["N"], stencil.steps = #steps} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  // expected-error @+1 {{there is no attribute stencil.boundery; stencil.field has}}
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state", stencil.boundery = "nearest"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #one, upper = #last}]} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
module attributes {stencil.params = ["N"], stencil.steps = #steps} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  // expected-error @+1 {{there is no attribute boundary; stencil.field has}}
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state", boundary = "nearest"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #one, upper = #last}]} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
module attributes {stencil.params = ["N"], stencil.steps = #steps} {
  // expected-error @+1 {{there is no attribute tiled.tile; stencil.grid has sym_name, lower and upper}}
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last, tiled.tile = array<i64: 8>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #one, upper = #last}]} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
// expected-error @+1 {{there is no attribute stencil.constant; builtin.module has stencil.params, stencil.steps, stencil.constants, stencil.target and stencil.devices}}
module attributes {stencil.constant = [], stencil.params = ["N"], stencil.steps = #steps} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #one, upper = #last}]} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
// expected-error @+1 {{there is no attribute tiled.tiles; there are tiled.bank_pad,}}
module attributes {tiled.tiles = array<i64: 8>, stencil.params = ["N"], stencil.steps = #steps} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #one, upper = #last}]} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
module attributes {stencil.params = ["N"], stencil.steps = #steps} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{there is no attribute stencil.offsets; an argument has stencil.read,}}
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offsets = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #one, upper = #last}]} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
// Operations of other dialects have none of ours that nobody reads.
module attributes {stencil.params = ["N"], stencil.steps = #steps} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{there is no attribute stencil.repeat of func.func; remove it}}
  func.func private @g() attributes {stencil.repeat = array<i64: 0, 3>}
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #one, upper = #last}]} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
// An argument stands for one thing.
module attributes {stencil.params = ["N"], stencil.steps = #steps} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{argument 0 has both stencil.current and stencil.read, and it stands for one thing; remove one}}
  func.func private @f(%w: f32 {stencil.read = @A, stencil.current = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #one, upper = #last}]} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
// Keys of dictionaries.
module attributes {stencil.params = ["N"], stencil.steps = #steps} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{there is no key step of pieces; it has function, lower and upper}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #one, upper = #last, step = 2}]} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
module attributes {stencil.params = ["N"], stencil.steps = #steps} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{pieces lacks the key upper; it needs function, lower and upper}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #one}]} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
module attributes {stencil.params = ["N"], stencil.steps = #steps} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{function of pieces is a symbol, not "f"}}
  "stencil.apply"() {updates = [@A], pieces = [{function = "f", lower = #one, upper = #last}]} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
module attributes {stencil.params = ["N"], stencil.steps = #steps} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{lower of pieces[1] is an affine map, not 1 : i64}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #zero, upper = #zero}, {function = @f, lower = 1, upper = #last}]} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
// expected-error @+1 {{there is no key values of stencil.constants; it has name and value}}
module attributes {stencil.constants = [{name = "M", values = 3}], stencil.params = ["N"], stencil.steps = #steps} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #one, upper = #last}]} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
// Attributes of other dialects may stand anywhere.
module attributes {arith.x, stencil.params = ["N"], stencil.steps = #steps} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state", arith.color = "red"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #one, upper = #last}], arith.order = 1} : () -> ()
}
