// RUN: stencil-opt %s --split-input-file --verify-diagnostics
// What the verifier refuses of reductions and the condition of a run.

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.grid"() {sym_name = "cell", lower = #zero, upper = #zero} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "worst", grid = @cell, type = f32, role = "reduction"} : () -> ()
  func.func private @value(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %a : f32
  }
  // expected-error @+1 {{there is no reduction "median"; there are sum, min, max and all}}
  "stencil.reduce"() {field = @worst, grid = @G, function = @value, operation = "median"} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.grid"() {sym_name = "cell", lower = #zero, upper = #zero} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "worst", grid = @cell, type = f32, role = "reduction"} : () -> ()
  func.func private @value(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %a : f32
  }
  // expected-error @+1 {{"all" combines integers, which are 0 or 1}}
  "stencil.reduce"() {field = @worst, grid = @G, function = @value, operation = "all"} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.grid"() {sym_name = "cell", lower = #zero, upper = #zero} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "worst", grid = @cell, type = f32, role = "reduction"} : () -> ()
  func.func private @value(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %a : f32
  }
  // expected-error @+1 {{there is no stencil.grid @H}}
  "stencil.reduce"() {field = @worst, grid = @H, function = @value, operation = "max"} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.grid"() {sym_name = "cell", lower = #zero, upper = #zero} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "worst", grid = @cell, type = f32, role = "reduction"} : () -> ()
  // expected-error @+1 {{there is no func.func @value}}
  "stencil.reduce"() {field = @worst, grid = @G, function = @value, operation = "max"} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.grid"() {sym_name = "cell", lower = #zero, upper = #zero} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @value(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %a : f32
  }
  // expected-error @+1 {{@A can hold no reduction; give it the role "reduction" or "condition"}}
  "stencil.reduce"() {field = @A, grid = @G, function = @value, operation = "max"} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.grid"() {sym_name = "cell", lower = #zero, upper = #zero} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "worst", grid = @cell, type = f32, role = "condition"} : () -> ()
  func.func private @value(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %a : f32
  }
  // expected-error @+1 {{a condition is an i32: 0, or another number where it holds}}
  "stencil.reduce"() {field = @worst, grid = @G, function = @value, operation = "max"} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.grid"() {sym_name = "cell", lower = #zero, upper = #zero} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{@worst has two stencil.reduce; leave one out}}
  "stencil.field"() {sym_name = "worst", grid = @cell, type = f32, role = "reduction"} : () -> ()
  func.func private @value(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %a : f32
  }
  "stencil.reduce"() {field = @worst, grid = @G, function = @value, operation = "max"} : () -> ()
  "stencil.reduce"() {field = @worst, grid = @G, function = @value, operation = "max"} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.grid"() {sym_name = "cell", lower = #zero, upper = #zero} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{@worst holds one value: its grid is one point along one dimension, and it has no boundary rule}}
  "stencil.field"() {sym_name = "worst", grid = @G, type = f32, role = "reduction"} : () -> ()
  func.func private @value(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %a : f32
  }
  "stencil.reduce"() {field = @worst, grid = @G, function = @value, operation = "max"} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.grid"() {sym_name = "cell", lower = #zero, upper = #zero} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{stencil.initial is a number of the type of a reduction's field}}
  "stencil.field"() {sym_name = "worst", grid = @cell, type = f32, role = "reduction", stencil.initial = 1 : i32} : () -> ()
  func.func private @value(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %a : f32
  }
  "stencil.reduce"() {field = @worst, grid = @G, function = @value, operation = "max"} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.grid"() {sym_name = "cell", lower = #zero, upper = #zero} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "worst", grid = @cell, type = f32, role = "reduction"} : () -> ()
  // expected-error @+1 {{a reduction has no sweep; read @A by stencil.read}}
  func.func private @value(%a: f32 {stencil.current = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %a : f32
  }
  "stencil.reduce"() {field = @worst, grid = @G, function = @value, operation = "max"} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.grid"() {sym_name = "cell", lower = #zero, upper = #zero} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "worst", grid = @cell, type = f32, role = "reduction"} : () -> ()
  // expected-error @+1 {{@worst is a reduction; read it by stencil.gather}}
  func.func private @value(%a: f32 {stencil.read = @worst, stencil.offset = array<i64: 0>}) -> f32 {
    return %a : f32
  }
  "stencil.reduce"() {field = @worst, grid = @G, function = @value, operation = "max"} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.grid"() {sym_name = "cell", lower = #zero, upper = #zero} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "worst", grid = @cell, type = f32, role = "reduction"} : () -> ()
  func.func private @value(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 1>}) -> f32 {
    return %a : f32
  }
  // expected-error @+1 {{the read of @A at [1] by @value reaches above the grid @G in dimension 0; make the piece smaller}}
  "stencil.reduce"() {field = @worst, grid = @G, function = @value, operation = "max"} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.grid"() {sym_name = "cell", lower = #zero, upper = #zero} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "worst", grid = @cell, type = f32, role = "reduction"} : () -> ()
  func.func private @value(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %a : f32
  }
  // expected-error @+1 {{@worst is a reduction; a stencil.reduce alone can update it}}
  "stencil.apply"() {updates = [@worst], pieces = [{function = @value, lower = #zero, upper = #zero}]} : () -> ()
  "stencil.reduce"() {field = @worst, grid = @G, function = @value, operation = "max"} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.grid"() {sym_name = "cell", lower = #zero, upper = #zero} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "worst", grid = @cell, type = f32, role = "reduction"} : () -> ()
  func.func private @value(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %a : f32
  }
  "stencil.reduce"() {field = @worst, grid = @G, function = @value, operation = "max"} : () -> ()
  // expected-error @+1 {{@worst is no field of the role "condition"}}
  "stencil.until"() {condition = @worst, every = 1 : i64, text = ""} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.grid"() {sym_name = "cell", lower = #zero, upper = #zero} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "met", grid = @cell, type = i32, role = "condition"} : () -> ()
  // expected-error @+1 {{every is from 1 to 1048576, not 0}}
  "stencil.until"() {condition = @met, every = 0 : i64, text = ""} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.grid"() {sym_name = "cell", lower = #zero, upper = #zero} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "met", grid = @cell, type = i32, role = "condition"} : () -> ()
  "stencil.until"() {condition = @met, every = 1 : i64, text = ""} : () -> ()
  // expected-error @+1 {{a program has one stencil.until at most}}
  "stencil.until"() {condition = @met, every = 1 : i64, text = ""} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.grid"() {sym_name = "cell", lower = #zero, upper = #zero} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{tiled.until needs a stencil.until in the module}}
  "tiled.repeat"() {count = affine_map<()[n, s] -> (s)>, kernels = [], tiled.until = "body"} : () -> ()
}

// -----

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.grid"() {sym_name = "cell", lower = #zero, upper = #zero} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{tiled.until is "body" or "otherwise", not "before"}}
  "tiled.repeat"() {count = affine_map<()[n, s] -> (s)>, kernels = [], tiled.until = "before"} : () -> ()
}
