// RUN: stencil-opt %s | FileCheck %s
// Reductions and the condition of a run.

// CHECK-DAG: #[[zero:.+]] = affine_map<()[s0] -> (0)>
// CHECK-DAG: #[[last:.+]] = affine_map<()[s0] -> (s0 - 1)>
#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.grid"() {sym_name = "cell", lower = #zero, upper = #zero} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()

  // CHECK: "stencil.field"() {grid = @cell, role = "reduction", stencil.initial = 1.000000e+00 : f32, sym_name = "worst", type = f32} : () -> ()
  // CHECK: "stencil.field"() {grid = @cell, role = "condition", sym_name = "met", type = i32} : () -> ()
  "stencil.field"() {sym_name = "worst", grid = @cell, type = f32, role = "reduction", stencil.initial = 1.0 : f32} : () -> ()
  "stencil.field"() {sym_name = "met", grid = @cell, type = i32, role = "condition"} : () -> ()
  func.func private @f(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    %c0 = arith.constant 0 : i64
    // CHECK: "stencil.gather"(%{{.*}}) {field = @worst} : (i64) -> f32
    %w = "stencil.gather"(%c0) {field = @worst} : (i64) -> f32
    %v = arith.mulf %a, %w : f32
    return %v : f32
  }
  func.func private @value(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %a : f32
  }
  func.func private @small() -> i32 {
    %c0 = arith.constant 0 : i64
    %limit = arith.constant 1.0 : f32
    %w = "stencil.gather"(%c0) {field = @worst} : (i64) -> f32
    %small = arith.cmpf olt, %w, %limit : f32
    %v = arith.extui %small : i1 to i32
    return %v : i32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #zero, upper = #last}]} : () -> ()
  // CHECK: "stencil.reduce"() {field = @worst, function = @value, grid = @G, operation = "max"} : () -> ()
  // CHECK: "stencil.reduce"() {field = @met, function = @small, grid = @cell, operation = "max"} : () -> ()
  // CHECK: "stencil.until"() {condition = @met, every = 10 : i64, text = "worst < 1"} : () -> ()
  "stencil.reduce"() {field = @worst, grid = @G, function = @value, operation = "max"} : () -> ()
  "stencil.reduce"() {field = @met, grid = @cell, function = @small, operation = "max"} : () -> ()
  "stencil.until"() {condition = @met, every = 10 : i64, text = "worst < 1"} : () -> ()
}
