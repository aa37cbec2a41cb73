// RUN: stencil-opt %s --pass-pipeline='builtin.module(inline,stencil-verify)' | FileCheck %s
// RUN: not stencil-opt %s --pass-pipeline='builtin.module(stencil-verify)' 2>&1 | FileCheck %s --check-prefix=CALL
// A point function may have calls until upstream's pass `inline` has run, if it is the first.

// CHECK: func.func private @f(%[[w:.+]]: f32
// CHECK-NEXT: arith.addf %[[w]], %[[w]]
// CHECK-NOT: call
// CHECK: "stencil.apply"
// CALL: func.call can't stand in a point function
#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#steps = affine_map<()[n] -> (4)>
module attributes {stencil.params = ["N"], stencil.steps = #steps} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @double(%w: f32) -> f32 {
    %two = arith.addf %w, %w : f32
    return %two : f32
  }
  func.func private @f(%w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}) -> f32 {
    %new = func.call @double(%w) : (f32) -> f32
    return %new : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #one, upper = #last}]} : () -> ()
}
