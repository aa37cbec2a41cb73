// RUN: stencil-opt %s --split-input-file --verify-diagnostics
// Declarations that form no program, and names that stand for two things.

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
// The sizes are missing.
// expected-error @+1 {{the module is no stencil program: it lacks stencil.params, the names of its run-time sizes}}
module attributes {stencil.steps = #steps} {
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
// A program within another module.
// expected-error @+1 {{the module is no stencil program: it lacks stencil.params}}
module {
  module attributes {stencil.params = ["N"], stencil.steps = #steps} {
    "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
    "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
    func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
      return %w : f32
    }
    "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #one, upper = #last}]} : () -> ()
  }
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
// A declaration that nobody reads.
module attributes {stencil.params = ["N"], stencil.steps = #steps} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #one, upper = #last}]} : () -> ()
  module {
    // expected-error @+1 {{stencil.grid must stand at the top of the program's module; move it there}}
    "stencil.grid"() {sym_name = "H", lower = #zero, upper = #last} : () -> ()
  }
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
// Nothing is computed.
// expected-error @+1 {{there is no stencil.apply; the program has no functions}}
module attributes {stencil.params = ["N"], stencil.steps = #steps} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
// A name is that of a size and of a scalar or field.
module attributes {stencil.params = ["N"], stencil.steps = #steps} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{@N is declared twice: it is the name of a size, too; choose another}}
  "stencil.scalar"() {sym_name = "N", type = f32, default = []} : () -> ()
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
  // expected-error @+1 {{@N is declared twice}}
  "stencil.field"() {sym_name = "N", grid = @G, type = f32, role = "const"} : () -> ()
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
module attributes {stencil.constants = [{name = "M", value = 3}], stencil.params = ["N"], stencil.steps = #steps} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{@M is declared twice}}
  "stencil.field"() {sym_name = "M", grid = @G, type = f32, role = "const"} : () -> ()
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
  // expected-error @+1 {{@steps is declared twice: it is the name of the number of steps, too; choose another}}
  "stencil.scalar"() {sym_name = "steps", type = f32, default = []} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #one, upper = #last}]} : () -> ()
}
