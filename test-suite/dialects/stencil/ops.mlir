// RUN: stencil-opt %s | stencil-opt | FileCheck %s
// Every operation of the stencil dialect, and every meaning that an argument of a point function
// can have, is printed as it was read.

// CHECK-DAG: #[[steps:.+]] = affine_map<()[s0, s1] -> (s0 * 2)>
// CHECK-DAG: #[[first:.+]] = affine_map<()[s0, s1] -> (0, 0)>
// CHECK-DAG: #[[last:.+]] = affine_map<()[s0, s1] -> (s0 - 1, s1 - 1)>
// CHECK-DAG: #[[row:.+]] = affine_map<()[s0, s1] -> (0, s1 - 1)>
// CHECK-DAG: #[[one:.+]] = affine_map<()[s0, s1] -> (1, 1)>
// CHECK-DAG: #[[inner:.+]] = affine_map<()[s0, s1] -> (s0 - 2, s1 - 2)>
// CHECK-DAG: #[[size:.+]] = affine_map<()[s0, s1] -> (s0)>
// CHECK-DAG: #[[few:.+]] = affine_map<()[s0, s1, s2] -> (s0 - s2)>
#steps = affine_map<()[n, m] -> (2 * n)>
#first = affine_map<()[n, m] -> (0, 0)>
#last = affine_map<()[n, m] -> (n - 1, m - 1)>
#row = affine_map<()[n, m] -> (0, m - 1)>
#one = affine_map<()[n, m] -> (1, 1)>
#inner = affine_map<()[n, m] -> (n - 2, m - 2)>
#size = affine_map<()[n, m] -> (n)>
#few = affine_map<()[n, m, steps] -> (n - steps)>

// CHECK: module @wave attributes {stencil.constants = [{name = "L", value = 7 : i64}], stencil.params = ["N", "M"], stencil.steps = #[[steps]]}
module @wave attributes {stencil.params = ["N", "M"], stencil.constants = [{name = "L", value = 7 : i64}], stencil.steps = #steps} {
  // CHECK: "stencil.grid"() {lower = #[[first]], sym_name = "G", upper = #[[last]]} : () -> ()
  "stencil.grid"() {sym_name = "G", lower = #first, upper = #last} : () -> ()

  // CHECK: "stencil.field"() {grid = @G, role = "state", sym_name = "U", type = f64} : () -> ()
  // CHECK: "stencil.field"() {grid = @G, role = "const", sym_name = "K", type = f32} : () -> ()
  // CHECK: "stencil.field"() {grid = @G, role = "temp", sym_name = "T", type = f32} : () -> ()
  "stencil.field"() {sym_name = "U", grid = @G, type = f64, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "K", grid = @G, type = f32, role = "const"} : () -> ()
  "stencil.field"() {sym_name = "T", grid = @G, type = f32, role = "temp"} : () -> ()

  // CHECK: "stencil.field"() {grid = @G, role = "state", stencil.boundary = "nearest", sym_name = "V", type = f32} : () -> ()
  // CHECK: "stencil.field"() {grid = @G, role = "state", stencil.boundary = "periodic", sym_name = "W", type = f32} : () -> ()
  // CHECK: "stencil.field"() {grid = @G, role = "temp", stencil.boundary = "reflect", sym_name = "X", type = f32} : () -> ()
  // CHECK: "stencil.field"() {grid = @G, role = "const", stencil.boundary = @edge, sym_name = "Y", type = f64} : () -> ()
  "stencil.field"() {sym_name = "V", grid = @G, type = f32, role = "state", stencil.boundary = "nearest"} : () -> ()
  "stencil.field"() {sym_name = "W", grid = @G, type = f32, role = "state", stencil.boundary = "periodic"} : () -> ()
  "stencil.field"() {sym_name = "X", grid = @G, type = f32, role = "temp", stencil.boundary = "reflect"} : () -> ()
  "stencil.field"() {sym_name = "Y", grid = @G, type = f64, role = "const", stencil.boundary = @edge} : () -> ()
  // CHECK: func.func private @edge(%{{.*}}: f64 {stencil.nearest}, %{{.*}}: i64 {stencil.coord = 1 : i64}) -> f64
  func.func private @edge(%inside: f64 {stencil.nearest}, %j: i64 {stencil.coord = 1 : i64}) -> f64 {
    %x = arith.sitofp %j : i64 to f64
    %r = arith.mulf %inside, %x : f64
    return %r : f64
  }

  // CHECK: "stencil.scalar"() {default = [1.000000e-01 : f32], sym_name = "alpha", type = f32} : () -> ()
  // CHECK: "stencil.scalar"() {default = [], sym_name = "beta", type = f64} : () -> ()
  // CHECK: "stencil.scalar"() {default = [18446744073709551615 : ui64], sym_name = "gamma", type = ui64} : () -> ()
  "stencil.scalar"() {sym_name = "alpha", type = f32, default = [0.1 : f32]} : () -> ()
  "stencil.scalar"() {sym_name = "beta", type = f64, default = []} : () -> ()
  "stencil.scalar"() {sym_name = "gamma", type = ui64, default = [18446744073709551615 : ui64]} : () -> ()

  // CHECK: "stencil.check"() {message = "no rows", unless_empty = [], value = #[[size]]} : () -> ()
  // CHECK: "stencil.check"() {message = "few rows", unless_empty = [#[[one]], #[[inner]]], value = #[[size]]} : () -> ()
  // CHECK: "stencil.check"() {message = "too many steps", unless_empty = [], value = #[[few]]} : () -> ()
  "stencil.check"() {value = #size, unless_empty = [], message = "no rows"} : () -> ()
  "stencil.check"() {value = #size, unless_empty = [#one, #inner], message = "few rows"} : () -> ()
  "stencil.check"() {value = #few, unless_empty = [], message = "too many steps"} : () -> ()

  // CHECK: func.func private @both(%{{.*}}: f64 {stencil.offset = array<i64: -1, 0>, stencil.read = @U}, %{{.*}}: f32 {stencil.offset = array<i64: 0, 0>, stencil.read = @K}
  // CHECK-SAME: %{{.*}}: f32 {stencil.scalar = @alpha}, %{{.*}}: i64 {stencil.param = "M"}, %{{.*}}: i64 {stencil.coord = 1 : i64}, %{{.*}}: i64 {stencil.step}) -> (f64, f32)
  func.func private @both(%u: f64 {stencil.read = @U, stencil.offset = array<i64: -1, 0>},
                          %k: f32 {stencil.read = @K, stencil.offset = array<i64: 0, 0>},
                          %alpha: f32 {stencil.scalar = @alpha},
                          %m: i64 {stencil.param = "M"},
                          %j: i64 {stencil.coord = 1 : i64},
                          %t: i64 {stencil.step}) -> (f64, f32) {
    %at = arith.addi %j, %t : i64
    %odd = arith.cmpi slt, %at, %m : i64
    %v = scf.if %odd -> (f32) {
      %r = math.sqrt %k : f32
      scf.yield %r : f32
    } else {
      scf.yield %alpha : f32
    }
    return %u, %v : f64, f32
  }
  func.func private @rim(%t: f32 {stencil.read = @T, stencil.offset = array<i64: 0, 0>}) -> f32 {
    return %t : f32
  }

  // CHECK: "stencil.apply"() {pieces = [{function = @both, lower = #[[one]], upper = #[[inner]]}], updates = [@U, @T]} : () -> ()
  // CHECK: "stencil.apply"() {pieces = [{function = @rim, lower = #[[first]], upper = #[[row]]}], updates = [@T]} : () -> ()
  "stencil.apply"() {updates = [@U, @T], pieces = [{function = @both, lower = #one, upper = #inner}]} : () -> ()
  "stencil.check"() {value = affine_map<()[n, m] -> (n - 1)>, unless_empty = [], message = "a row"} : () -> ()
  "stencil.apply"() {updates = [@T], pieces = [{function = @rim, lower = #first, upper = #row}]} : () -> ()
}
