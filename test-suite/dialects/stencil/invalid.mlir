// RUN: stencil-opt %s --split-input-file --verify-diagnostics
// What IRDL and the verifier refuse in a stencil program, each complaint once.

// IRDL: an attribute is missing.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-error @+1 {{attribute "upper" is expected but not provided}}
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>} : () -> ()
}

// -----

// IRDL: a bound is no affine map.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-error @+1 {{expected base attribute 'builtin.affine_map' but got 'builtin.integer'}}
  "stencil.grid"() {sym_name = "G", lower = 0 : i64, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
}

// -----

// IRDL: the grid of a field is no symbol.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  // expected-error @+1 {{expected base attribute 'builtin.symbol_ref' but got 'builtin.string'}}
  "stencil.field"() {sym_name = "A", grid = "G", type = f32, role = "state"} : () -> ()
}

// -----

// IRDL: operations of the dialect have no operands.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  %zero = arith.constant 0 : index
  // expected-error @+1 {{op expects exactly 0 operands, but got 1}}
  "stencil.scalar"(%zero) {sym_name = "c", type = f32, default = []} : (index) -> ()
}

// -----

// IRDL: there is no such operation.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-error @+1 {{unregistered operation 'stencil.mesh' found in dialect ('stencil')}}
  "stencil.mesh"() : () -> ()
}

// -----

// A program says how many steps it takes.
// expected-error @+1 {{the attribute 'stencil.steps' is missing}}
module attributes {stencil.params = ["N"]} {
}

// -----

// expected-error @+1 {{the attribute 'stencil.steps' is of the wrong kind: 4 : i64}}
module attributes {stencil.params = ["N"], stencil.steps = 4 : i64} {
}

// -----

// expected-error @+1 {{the attribute 'stencil.params' is of the wrong kind}}
module attributes {stencil.params = [4], stencil.steps = affine_map<()[n] -> (4)>} {
}

// -----

// expected-error @+1 {{stencil.steps needs a result and one symbol a run-time size}}
module attributes {stencil.params = ["N"], stencil.steps = affine_map<() -> (4)>} {
}

// -----

// A role is state, const or temp.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  // expected-error @+1 {{there is no role "stat"; there are state, const, temp, reduction and condition}}
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "stat"} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  // expected-error @+1 {{stencil.field: the attribute 'type' is of the wrong kind: 32 : i64}}
  "stencil.field"() {sym_name = "A", grid = @G, type = 32 : i64, role = "state"} : () -> ()
}

// -----

// A piece has a function and two bounds.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{there is no key fn of pieces; it has function, lower and upper}}
  "stencil.apply"() {updates = [@A], pieces = [{fn = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{stencil.apply: the attribute 'updates' is of the wrong kind}}
  "stencil.apply"() {updates = ["A"], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

// Bounds of the piece that makes a check void come in pairs.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-error @+1 {{stencil.check: the attribute 'unless_empty' is of the wrong kind}}
  "stencil.check"() {value = affine_map<()[n] -> (n)>, unless_empty = [affine_map<()[n] -> (n)>], message = "m"} : () -> ()
}

// -----

// MLIR: names are unique among grids, fields, scalars and functions.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-note @+1 {{see existing symbol definition here}}
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  // expected-error @+1 {{redefinition of symbol named 'G'}}
  "stencil.field"() {sym_name = "G", grid = @G, type = f32, role = "state"} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-error @+1 {{a grid has 1 to 3 dimensions, @G has 4}}
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0, 0, 0, 0)>, upper = affine_map<()[n] -> (n, n, n, n)>} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-error @+1 {{lower and upper of @G have 1 and 2 results}}
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n, n)>} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-error @+1 {{the bounds need 1 symbols, one a run-time size of stencil.params, and no dimensions}}
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n, m] -> (n - 1)>} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-error @+1 {{the bounds must be sums of sizes times constants}}
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n floordiv 2)>} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-error @+1 {{there is no stencil.grid @G}}
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  // expected-error @+1 {{there are no cells of type tf32; a cell is one of f16, bf16, f32, f64, i8, i16, i32, i64, ui8, ui16, ui32, ui64}}
  "stencil.field"() {sym_name = "A", grid = @G, type = tf32, role = "state"} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-error @+1 {{there are no cells of type i24}}
  "stencil.scalar"() {sym_name = "c", type = i24, default = []} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-error @+1 {{the default of @c must be a number of type ui32, but is 3 : i32}}
  "stencil.scalar"() {sym_name = "c", type = ui32, default = [3 : i32]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = ui32, role = "state"} : () -> ()
  // expected-error @+1 {{argument 0 of @f has type ui32, and what it stands for has type i32}}
  func.func private @f(%a: ui32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> ui32 {
    return %a : ui32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-error @+1 {{the value of a stencil.check has one result}}
  "stencil.check"() {value = affine_map<()[n] -> (n, n)>, unless_empty = [], message = "m"} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-error @+1 {{the bounds need 1 symbols}}
  "stencil.check"() {value = affine_map<() -> (1)>, unless_empty = [], message = "m"} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{an apply needs at least one updated field and one piece}}
  "stencil.apply"() {updates = [@A], pieces = []} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{there is no stencil.field @B}}
  "stencil.apply"() {updates = [@B], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "const"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{@A is a const field; it can't be updated}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> (f32, f32) {
    return %w, %w : f32, f32
  }
  // expected-error @+1 {{@A is updated twice by one apply}}
  "stencil.apply"() {updates = [@A, @A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{a piece of @f has 2 bounds, and the grid has rank 1}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1, 1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{there is no func.func @f}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{the function has no body; a point function needs one}}
  func.func private @f(f32) -> f32
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{the point function @f has several blocks; use scf.if}}
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    cf.br ^end
  ^end:
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{argument 0 of a point function has no meaning: it needs stencil.read or stencil.current with stencil.offset, stencil.scalar, stencil.param, stencil.coord or stencil.step}}
  func.func private @f(%w: f32 {stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

// An offset has one number a dimension.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{the offset [0, -1] of @A has the wrong rank; the grid has 1 dimensions}}
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: 0, -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{there is no stencil.field @B}}
  func.func private @f(%w: f32 {stencil.read = @B, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{there is no stencil.scalar @c}}
  func.func private @f(%w: f32 {stencil.scalar = @c}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{there is no run-time size "M" in stencil.params}}
  func.func private @f(%m: i64 {stencil.param = "M"}) -> f32 {
    %r = arith.sitofp %m : i64 to f32
    return %r : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{there is no coordinate 1 in a grid of 1 dimensions}}
  func.func private @f(%j: i64 {stencil.coord = 1 : i64}) -> f32 {
    %r = arith.sitofp %j : i64 to f32
    return %r : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{argument 0 of @f has type f64, and what it stands for has type f32}}
  func.func private @f(%w: f64 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    %r = arith.truncf %w : f64 to f32
    return %r : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

// The step number is an i64.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{argument 0 of @f has type i32, and what it stands for has type i64}}
  func.func private @f(%t: i32 {stencil.step}) -> f32 {
    %r = arith.sitofp %t : i32 to f32
    return %r : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

// A point function computes, and touches no memory.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    // expected-error @+1 {{memref.alloc can't stand in a point function; arith, math, scf.if and stencil.gather can}}
    %m = memref.alloc() : memref<1xf32>
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{@f returns 2 values, and 1 fields are updated}}
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> (f32, f32) {
    return %w, %w : f32, f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{@f returns i64 for @A, which holds f32}}
  func.func private @f(%t: i64 {stencil.step}) -> i64 {
    return %t : i64
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

// The piece lies in the grid for every size.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{the piece reaches above the grid @G in dimension 0; make the piece smaller}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{the piece reaches below the grid @G in dimension 0; make the piece smaller}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (-1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

// So do the reads.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{the read of @A at [-1] by @f reaches below the grid @G in dimension 0; make the piece smaller}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: 1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{the read of @A at [1] by @f reaches above the grid @G in dimension 0; make the piece smaller}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

// What sizes decide needs a check at launch; the check must be of the very margin.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.check"() {value = affine_map<()[n] -> (n - 3)>, unless_empty = [], message = "m"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{the piece reaches above the grid @G in dimension 0; make the piece smaller, or guard it by a stencil.check}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (8)>}]} : () -> ()
}

// -----

// Bounds beyond 64 bits.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 2)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: 9223372036854775807>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{the bounds are too large: sums of them leave 64 bits; use smaller constants}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 2)>}]} : () -> ()
}

// -----

// Pieces are disjoint for every size.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.check"() {value = affine_map<()[n] -> (n - 2)>, unless_empty = [], message = "m"} : () -> ()
  "stencil.check"() {value = affine_map<()[n] -> (n - 3)>, unless_empty = [], message = "m"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{the pieces of @f and @f may overlap: no dimension separates them for all sizes}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 2)>},
                                                {function = @f, lower = affine_map<()[n] -> (n - 2)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

// Every wrong declaration is told of.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  // expected-error @+1 {{cells of type i7}}
  "stencil.field"() {sym_name = "A", grid = @G, type = i7, role = "state"} : () -> ()
  // expected-note @+1 {{cells of type i24}}
  "stencil.scalar"() {sym_name = "c", type = i24, default = []} : () -> ()
}

// -----

// Sizes have names that the plan can use, each one.
// expected-error @+1 {{"a b" can't name a run-time size; choose letters, digits and _, and not steps}}
module attributes {stencil.params = ["a b"], stencil.steps = affine_map<()[n] -> (4)>} {
}

// -----

// expected-error @+1 {{"steps" can't name a run-time size}}
module attributes {stencil.params = ["steps"], stencil.steps = affine_map<()[n] -> (4)>} {
}

// -----

// expected-error @+1 {{the run-time size "N" stands twice in stencil.params}}
module attributes {stencil.params = ["N", "N"], stencil.steps = affine_map<()[n, m] -> (4)>} {
}

// -----

// expected-error @+1 {{the bounds must be sums of sizes times constants}}
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (n floordiv 0)>} {
}

// -----

// An apply has one set of points for all fields that it updates.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.grid"() {sym_name = "H", lower = affine_map<()[n] -> (0, 0)>, upper = affine_map<()[n] -> (n, n)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @H, type = f32, role = "state"} : () -> ()
  func.func private @f(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> (f32, f32) {
    return %a, %a : f32, f32
  }
  // expected-error @+1 {{the updated fields lie on grids of different ranks, @G and @H; write an apply for each}}
  "stencil.apply"() {updates = [@A, @B], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

// A piece lies in the grids of all updated fields.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n)>} : () -> ()
  "stencil.grid"() {sym_name = "H", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @H, type = f32, role = "state"} : () -> ()
  func.func private @f(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> (f32, f32) {
    return %a, %a : f32, f32
  }
  // expected-error @+1 {{the piece reaches above the grid @H in dimension 0}}
  "stencil.apply"() {updates = [@A, @B], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-error @+1 {{the default of @a must be a number of type f32, but is 1.000000e+00 : f64}}
  "stencil.scalar"() {sym_name = "a", type = f32, default = [1.0 : f64]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-error @+1 {{the bounds need 1 symbols}}
  "stencil.check"() {value = affine_map<()[n] -> (n)>, unless_empty = [affine_map<()[n, m] -> (m)>, affine_map<()[n] -> (n)>], message = "m"} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-error @+1 {{the two bounds of unless_empty need as many results as each other}}
  "stencil.check"() {value = affine_map<()[n] -> (n)>, unless_empty = [affine_map<()[n] -> (1, 1)>, affine_map<()[n] -> (n)>], message = "m"} : () -> ()
}

// -----

// A check that is void where another piece is empty guards nothing here.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.check"() {value = affine_map<()[n] -> (n - 11)>, unless_empty = [affine_map<()[n] -> (0)>, affine_map<()[n] -> (n - 9)>], message = "few"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: 1>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{the piece reaches above the grid @G in dimension 0; make the piece smaller, or guard it by a stencil.check}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (2)>, upper = affine_map<()[n] -> (9)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  // expected-error @+1 {{there is no boundary rule "mirror"; there are "nearest", "periodic", "reflect" and the symbol of a function}}
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state", stencil.boundary = "mirror"} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  // expected-error @+1 {{there is no func.func @edge}}
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state", stencil.boundary = @edge} : () -> ()
}

// -----

// A boundary rule sees no cell but the nearest.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state", stencil.boundary = @edge} : () -> ()
  // expected-error @+1 {{the boundary rule of @A reads no cell but the nearest: use stencil.nearest}}
  func.func private @edge(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %a : f32
  }
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state", stencil.boundary = @edge} : () -> ()
  // expected-error @+1 {{argument 0 of @edge has type f64, and what it stands for has type f32}}
  func.func private @edge(%a: f64 {stencil.nearest}) -> f64 {
    return %a : f64
  }
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state", stencil.boundary = @edge} : () -> ()
  // expected-error @+1 {{@edge returns 2 values, and the boundary rule of @A gives one}}
  func.func private @edge(%a: f32 {stencil.nearest}) -> (f32, f32) {
    return %a, %a : f32, f32
  }
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  // expected-error @+1 {{stencil.nearest is for the functions of boundary rules; use stencil.read}}
  func.func private @f(%a: f32 {stencil.nearest}) -> f32 {
    return %a : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

// A sweep reads no field at computed places that it updates. Absolute reads have a coordinate a
// dimension and the field's type.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.current = @A, stencil.offset = array<i64: -1>}, %i: i64 {stencil.coord = 0 : i64}) -> f32 {
    %a = "stencil.gather"(%i) {field = @A} : (i64) -> f32
    %r = arith.addf %a, %w : f32
    return %r : f32
  }
  // expected-error @+1 {{@A is updated by a sweep that reads it at computed places, where its old value may be gone; copy it to another field by an apply before}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "K", grid = @G, type = f32, role = "const"} : () -> ()
  func.func private @f(%i: i64 {stencil.coord = 0 : i64}) -> f32 {
    // expected-error @+1 {{@K has 1 dimensions, and this read 2 coordinates}}
    %a = "stencil.gather"(%i, %i) {field = @K} : (i64, i64) -> f32
    return %a : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f64, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "K", grid = @G, type = f32, role = "const"} : () -> ()
  func.func private @f(%i: i64 {stencil.coord = 0 : i64}) -> f64 {
    // expected-error @+1 {{a cell of @K has type f32, not f64}}
    %a = "stencil.gather"(%i) {field = @K} : (i64) -> f64
    return %a : f64
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

// expected-error @+1 {{stencil.target: expected a dictionary, found "sm_90"}}
module attributes {stencil.target = "sm_90"} {
}

// -----

// expected-error @+1 {{stencil.target: needs device, a string}}
module attributes {stencil.target = {arch = "sm_90", contract = true, fast_math = false}} {
}

// -----

// expected-error @+1 {{stencil.target: needs contract, true or false}}
module attributes {stencil.target = {arch = "sm_90", device = "NVIDIA H200", contract = 1 : i64, fast_math = false}} {
}

// -----

// expected-error @+1 {{stencil.target: "SM 90" is no architecture; expected one like sm_90}}
module attributes {stencil.target = {arch = "SM 90", device = "NVIDIA H200", contract = true, fast_math = false}} {
}

// -----

// expected-error @+1 {{stencil.target: has entries other than arch, device, contract and fast_math}}
module attributes {stencil.target = {arch = "sm_90", device = "NVIDIA H200", contract = true, fast_math = false, cores = 132 : i64}} {
}

// -----

// expected-error @+1 {{stencil.target: the device H200 is sm_90 and the architecture is sm_75; change one of them}}
module attributes {stencil.target = {arch = "sm_75", device = "H200", contract = true, fast_math = false}} {
}

// -----

// expected-error @+1 {{stencil.target: no device 'Foo' is described; there are H200, }}
module attributes {stencil.target = {arch = "sm_90", device = "Foo", contract = true, fast_math = false}} {
}

// -----

// An architecture that is not described has a device of its own.
module attributes {stencil.target = {arch = "sm_75", device = "a GPU of compute capability 7.x", contract = true, fast_math = false}} {
}

// -----

// Values of a point function have types for which kernels have instructions.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    // expected-error @+1 {{arith.fptosi has a result of type i128; the values of a point function have the types index, i1, i8, i16, i32, i64, f16, bf16, f32, f64}}
    %c = arith.fptosi %a : f32 to i128
    %d = arith.addi %c, %c : i128
    %e = arith.sitofp %d : i128 to f32
    return %e : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    // expected-error @+1 {{arith.constant has a result of type vector<1000000xf32>; the values of a point function have the types}}
    %v = arith.constant dense<1.0> : vector<1000000xf32>
    %w = arith.addf %v, %v : vector<1000000xf32>
    return %a : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

// The types inside an scf.if count too.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    %p = arith.cmpf olt, %a, %a : f32
    %r = scf.if %p -> (f32) {
      // expected-error @+1 {{arith.fptoui has a result of type i1000}}
      %c = arith.fptoui %a : f32 to i1000
      %d = arith.uitofp %c : i1000 to f32
      scf.yield %d : f32
    } else {
      scf.yield %a : f32
    }
    return %r : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

// A function that calls itself.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    // expected-error @+1 {{func.call can't stand in a point function; arith, math, scf.if and stencil.gather can}}
    %c = func.call @f(%a) : (f32) -> f32
    return %c : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-error @+1 {{there are no cells of type memref<4xf32>; a cell is one of f16, bf16, f32, f64, i8, i16, i32, i64, ui8, ui16, ui32, ui64}}
  "stencil.scalar"() {sym_name = "c", type = memref<4xf32>, default = []} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-error @+1 {{the default of @c is no finite number, which no plan holds; leave it out and give the value to the run}}
  "stencil.scalar"() {sym_name = "c", type = f16, default = [0x7C00 : f16]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-error @+1 {{@c has more than one default}}
  "stencil.scalar"() {sym_name = "c", type = f32, default = [1.0 : f32, 2.0 : f32]} : () -> ()
}

// -----

// Declarations and functions share the names of a module.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-note @+1 {{see existing symbol definition here}}
  "stencil.grid"() {sym_name = "A", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  // expected-error @+1 {{redefinition of symbol named 'A'}}
  "stencil.field"() {sym_name = "A", grid = @A, type = f32, role = "state"} : () -> ()
}

// -----

// Sums of bounds leave 64 bits beyond 2^60.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-error @+1 {{constants and factors of bounds lie between -1152921504606846976 and 1152921504606846976}}
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (9223372036854775807)>} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  // expected-error @+1 {{constants and factors of bounds lie between}}
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n * 1152921504606846977)>} : () -> ()
}

// -----

// expected-error @+1 {{stencil.steps: a run has at most 281474976710656 steps}}
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (281474976710657)>} {
}

// -----

// A way of rounding that no device has.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    // expected-error @+1 {{arith.truncf rounds downward, and all operations round to nearest; leave the mode out}}
    %b = arith.truncf %w downward : f32 to bf16
    %r = arith.extf %b : bf16 to f32
    return %r : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

// An operation that no device has.
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    // expected-error @+1 {{math.trunc has no code on a device; of math there are absf, acos,}}
    %r = math.trunc %w : f32
    return %r : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{stencil.repeat needs at most 2 counts from 1, whose product is at most 1024}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}], stencil.repeat = array<i64: 0, 1025>} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}], stencil.repeat = array<i64: 0, 2>} : () -> ()
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
  // expected-error @+1 {{items of one stencil.repeat stand together, with one count}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}], stencil.repeat = array<i64: 0, 2>} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}], stencil.repeat = array<i64: 0, 2>} : () -> ()
  // expected-error @+1 {{items of one stencil.repeat stand together, with one count}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}], stencil.repeat = array<i64: 0, 3>} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{stencil.repeat needs at most 2 counts from 1, whose product is at most 1024}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}], stencil.repeat = array<i64: 0, 100, 1, 11>} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %w : f32
  }
  // expected-error @+1 {{stencil.repeat needs at most 2 counts from 1, whose product is at most 1024}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}], stencil.repeat = array<i64: 0, 2, 1, 2, 2, 2>} : () -> ()
}

// -----

module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %w : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}], stencil.repeat = array<i64: 0, 2, 1, 3>} : () -> ()
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}], stencil.repeat = array<i64: 0, 2>} : () -> ()
  // expected-error @+1 {{items of one stencil.repeat stand together, with one count}}
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>}], stencil.repeat = array<i64: 0, 2, 1, 3>} : () -> ()
}

// -----

module attributes {stencil.params = [], stencil.steps = affine_map<() -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<() -> (0)>, upper = affine_map<() -> (9)>} : () -> ()
  // expected-error @+1 {{the number @F.a of @F has bytes -4 to 0 of cells of 8 bytes}}
  "stencil.field"() {sym_name = "F.a", grid = @G, type = f32, role = "state", stencil.member = {field = "F", offset = -4, size = 8}} : () -> ()
}


// -----

module attributes {stencil.params = [], stencil.steps = affine_map<() -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<() -> (0)>, upper = affine_map<() -> (9)>} : () -> ()
  "stencil.field"() {sym_name = "F.a", grid = @G, type = f32, role = "state", stencil.member = {field = "F", offset = 0, size = 8}} : () -> ()
  // expected-error @+1 {{the numbers @F.a and @F.b of @F lie on the same bytes}}
  "stencil.field"() {sym_name = "F.b", grid = @G, type = f32, role = "state", stencil.member = {field = "F", offset = 2, size = 8}} : () -> ()
}


// -----

module attributes {stencil.params = [], stencil.steps = affine_map<() -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<() -> (0)>, upper = affine_map<() -> (9)>} : () -> ()
  "stencil.field"() {sym_name = "F.a", grid = @G, type = f32, role = "state", stencil.member = {field = "F", offset = 0, size = 8}} : () -> ()
  // expected-error @+1 {{the numbers @F.a and @F.b of @F differ in the size of cells, the grid or the role}}
  "stencil.field"() {sym_name = "F.b", grid = @G, type = f32, role = "const", stencil.member = {field = "F", offset = 4, size = 8}} : () -> ()
}


// -----

module attributes {stencil.params = [], stencil.steps = affine_map<() -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<() -> (0)>, upper = affine_map<() -> (9)>} : () -> ()
  "stencil.grid"() {sym_name = "one", lower = affine_map<() -> (0)>, upper = affine_map<() -> (0)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "r", grid = @one, type = f32, role = "reduction"} : () -> ()
  "stencil.field"() {sym_name = "c", grid = @one, type = i32, role = "condition"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %w : f32
  }
  func.func private @v(%w: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %w : f32
  }
  func.func private @ends() -> i32 {
    %0 = arith.constant 0 : i32
    return %0 : i32
  }
  "stencil.reduce"() {field = @r, function = @v, grid = @G, operation = "max"} : () -> ()
  // expected-error @+1 {{the reduction of the condition @c is the last operation of a step; move it behind all stencil.apply and stencil.reduce}}
  "stencil.reduce"() {field = @c, function = @ends, grid = @one, operation = "max"} : () -> ()
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<() -> (0)>, upper = affine_map<() -> (9)>}]} : () -> ()
  "stencil.until"() {condition = @c, every = 1 : i64, text = "never"} : () -> ()
}


// -----

module attributes {stencil.params = [], stencil.steps = affine_map<() -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<() -> (0)>, upper = affine_map<() -> (9)>} : () -> ()
  "stencil.grid"() {sym_name = "one", lower = affine_map<() -> (0)>, upper = affine_map<() -> (0)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "r", grid = @one, type = f32, role = "reduction"} : () -> ()
  "stencil.field"() {sym_name = "c", grid = @one, type = i32, role = "condition"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %w : f32
  }
  func.func private @v(%w: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %w : f32
  }
  func.func private @ends() -> i32 {
    %0 = arith.constant 0 : i32
    return %0 : i32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<() -> (0)>, upper = affine_map<() -> (9)>}]} : () -> ()
  // expected-error @+1 {{the reduction of the condition @c is the last operation of a step; move it behind all stencil.apply and stencil.reduce}}
  "stencil.reduce"() {field = @c, function = @ends, grid = @one, operation = "max"} : () -> ()
  "stencil.reduce"() {field = @r, function = @v, grid = @G, operation = "max"} : () -> ()
  "stencil.until"() {condition = @c, every = 1 : i64, text = "never"} : () -> ()
}
