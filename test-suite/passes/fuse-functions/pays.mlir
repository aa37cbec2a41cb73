// RUN: stencil-opt %s --pass-pipeline='builtin.module(fuse-functions{strategy=naive})' | FileCheck %s
// The flux through a face is cheaper to compute twice than to keep: it goes into the function that reads
// it, with its offsets and its coordinate moved by each read. What both copies read is read once.

#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#faces = affine_map<()[n] -> (n - 2)>
#one = affine_map<()[n] -> (1)>
module @burgers attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (6)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.grid"() {sym_name = "X", lower = #zero, upper = #faces} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "F", grid = @X, type = f32, role = "temp"} : () -> ()
  func.func private @flux(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>},
                          %b: f32 {stencil.read = @A, stencil.offset = array<i64: 1>},
                          %i: i64 {stencil.coord = 0 : i64}, %t: i64 {stencil.step}) -> f32 {
    %j = arith.addi %i, %t : i64
    %x = arith.sitofp %j : i64 to f32
    %s = arith.addf %a, %b : f32
    %r = arith.mulf %s, %x : f32
    return %r : f32
  }
  func.func private @move(%c: f32 {stencil.read = @A, stencil.offset = array<i64: 0>},
                          %l: f32 {stencil.read = @F, stencil.offset = array<i64: -1>},
                          %r: f32 {stencil.read = @F, stencil.offset = array<i64: 0>}) -> f32 {
    %d = arith.subf %r, %l : f32
    %n = arith.subf %c, %d : f32
    return %n : f32
  }
  "stencil.apply"() {updates = [@F], pieces = [{function = @flux, lower = #zero, upper = #faces}]} : () -> ()
  "stencil.apply"() {updates = [@A], pieces = [{function = @move, lower = #one, upper = #faces}]} : () -> ()
}

// CHECK-DAG: #[[one:.+]] = affine_map<()[s0] -> (1)>
// CHECK-DAG: #[[faces:.+]] = affine_map<()[s0] -> (s0 - 2)>
// CHECK: "stencil.field"() {{.*}}sym_name = "F"
// CHECK-NOT: @flux(
// CHECK-NOT: @move(
// CHECK: func.func private @move_with_flux(
// CHECK-SAME: %[[a0:[^:]+]]: f32 {stencil.offset = array<i64: 0>, stencil.read = @A}
// CHECK-SAME: %[[am:[^:]+]]: f32 {stencil.offset = array<i64: -1>, stencil.read = @A}
// CHECK-SAME: %[[i:[^:]+]]: i64 {stencil.coord = 0 : i64}
// CHECK-SAME: %[[t:[^:]+]]: i64 {stencil.step}
// CHECK-SAME: %[[a1:[^:]+]]: f32 {stencil.offset = array<i64: 1>, stencil.read = @A}
// CHECK-SAME: ) -> f32
// CHECK: %[[minus:.+]] = arith.constant -1 : i64
// CHECK: %[[face:.+]] = arith.addi %[[i]], %[[minus]] : i64
// CHECK: %[[j:.+]] = arith.addi %[[face]], %[[t]] : i64
// CHECK: %[[x:.+]] = arith.sitofp %[[j]]
// CHECK: %[[s:.+]] = arith.addf %[[am]], %[[a0]] : f32
// CHECK: %[[l:.+]] = arith.mulf %[[s]], %[[x]] : f32
// CHECK: %[[j2:.+]] = arith.addi %[[i]], %[[t]] : i64
// CHECK: %[[x2:.+]] = arith.sitofp %[[j2]]
// CHECK: %[[s2:.+]] = arith.addf %[[a0]], %[[a1]] : f32
// CHECK: %[[r:.+]] = arith.mulf %[[s2]], %[[x2]] : f32
// CHECK: %[[d:.+]] = arith.subf %[[r]], %[[l]] : f32
// CHECK: arith.subf %[[a0]], %[[d]] : f32
// CHECK-NOT: updates = [@F]
// CHECK: "stencil.apply"() {pieces = [{function = @move_with_flux, lower = #[[one]], upper = #[[faces]]}], updates = [@A]}
