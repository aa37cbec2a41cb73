// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-overlapped{strategy=naive},lower-naive,gpu.module(canonicalize,cse))' | FileCheck %s
// An absolute read is a load from global memory, at the coordinates less the grid's first point, in every
// place of the function's body; its field is bound as a buffer to read though no tile of it is loaded.

// CHECK: gpu.func @gather_0(%[[a:[a-z0-9]+]]: memref<f32> {{{.*}}tiled.binding = "read_write", tiled.name = "A"}, %[[k:[a-z0-9]+]]: memref<f64> {llvm.noalias, llvm.readonly, tiled.binding = "read", tiled.name = "K"}
// CHECK: %[[first:.+]] = arith.constant -5 : index
// CHECK: %[[K:.+]] = memref.reinterpret_cast %[[k]]
// CHECK: %[[row:.+]] = arith.addi %{{.*}}, %thread_id_y : index
// CHECK: scf.if
// CHECK: scf.if
// CHECK: %[[cell:.+]] = arith.subi %[[row]], %[[first]] : index
// CHECK: memref.load %[[K]][%[[cell]]] : memref<?xf64
// CHECK-NOT: stencil.gather
module @gather attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0, 0)>, upper = affine_map<()[n] -> (n - 1, n - 1)>} : () -> ()
  "stencil.grid"() {sym_name = "T", lower = affine_map<()[n] -> (-5)>, upper = affine_map<()[n] -> (n)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "K", grid = @T, type = f64, role = "const"} : () -> ()
  func.func private @f(%a: f32 {stencil.read = @A, stencil.offset = array<i64: 0, 0>}, %i: i64 {stencil.coord = 0 : i64}) -> f32 {
    %zero = arith.constant 0.0 : f32
    %some = arith.cmpf ogt, %a, %zero : f32
    %r = scf.if %some -> (f32) {
      %k = "stencil.gather"(%i) {field = @K} : (i64) -> f64
      %s = arith.truncf %k : f64 to f32
      scf.yield %s : f32
    } else {
      scf.yield %a : f32
    }
    return %r : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (0, 0)>, upper = affine_map<()[n] -> (n - 1, n - 1)>}]} : () -> ()
}
