// RUN: stencilc run %s --target cpu --in K=zeros --in B=zeros 2>&1 | FileCheck %s
// RUN: not stencilc run %s --target sim --in K=zeros --in B=zeros 2>&1 | FileCheck %s --check-prefix=SIM
// RUN: stencilc %s --arch native --emit=gpu -o %t.mlir
// RUN: stencil-opt %t.mlir --pass-pipeline='convert-math-to-calls' -o %t.once
// RUN: FileCheck %s --check-prefix=IR <%t.once
// RUN: stencil-opt %t.mlir --pass-pipeline='convert-math-to-calls,convert-math-to-calls' -o %t.twice
// RUN: diff %t.once %t.twice
// Divisions by 0 end no process: a processor computes the language's results, 0 and the dividend.
// The simulator tells that the IR has none. A cell is 0 + 7 + 0 + 7 + 3.

// CHECK: total = 1088
// SIM: error: {{.*}}division.mlir:{{[0-9]+}}:10: integer division by zero in kernel p_1
module @p attributes {stencil.params = [], stencil.steps = affine_map<() -> (1)>} {
  "stencil.grid"() {lower = affine_map<() -> (0)>, sym_name = "G", upper = affine_map<() -> (63)>} : () -> ()
  "stencil.grid"() {lower = affine_map<() -> (0)>, sym_name = "cell", upper = affine_map<() -> (0)>} : () -> ()
  "stencil.field"() {grid = @G, role = "const", sym_name = "K", type = i32} : () -> ()
  "stencil.field"() {grid = @G, role = "state", sym_name = "B", type = i32} : () -> ()
  "stencil.field"() {grid = @cell, role = "reduction", sym_name = "total", type = i32} : () -> ()
  func.func private @f(%k: i32 {stencil.offset = array<i64: 0>, stencil.read = @K}) -> i32 {
    %seven = arith.constant 7 : i32
    %two = arith.constant 2 : i32
    %0 = arith.divsi %seven, %k : i32
    %1 = arith.remsi %seven, %k : i32
    %2 = arith.divui %seven, %k : i32
    %3 = arith.remui %seven, %k : i32
    %4 = arith.addi %k, %seven : i32
    %5 = arith.divsi %4, %two : i32
    %6 = arith.addi %0, %1 : i32
    %7 = arith.addi %2, %3 : i32
    %8 = arith.addi %6, %7 : i32
    %9 = arith.addi %8, %5 : i32
    return %9 : i32
  }
  func.func private @value(%b: i32 {stencil.offset = array<i64: 0>, stencil.read = @B}) -> i32 {
    return %b : i32
  }
  "stencil.apply"() {pieces = [{function = @f, lower = affine_map<() -> (0)>, upper = affine_map<() -> (63)>}], updates = [@B]} : () -> ()
  "stencil.reduce"() {field = @total, function = @value, grid = @G, operation = "sum"} : () -> ()
}
// IR: %[[ZERO:.*]] = arith.cmpi eq, %[[K:.*]], %{{.*}} : i32
// IR: arith.select %[[ZERO]], %{{.*}}, %[[K]] : i32
// IR: arith.divsi
// IR: arith.remui
// A divisor that is a constant needs no guard.
// IR-NOT: arith.cmpi eq
// IR: arith.divsi %{{.*}}, %c2_i32
