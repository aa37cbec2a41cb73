// RUN: stencil-opt %s --pass-pipeline='builtin.module(guard-launches)' | FileCheck %s
// RUN: stencil-opt %s --pass-pipeline='builtin.module(guard-launches,guard-launches)' | FileCheck %s
// A kernel by hand, with memory of its block behind its arguments. A module without a condition
// stays as it is.

// CHECK: gpu.func @k(%[[A:[a-z0-9]+]]: memref<f32> {tiled.binding = "read_write", tiled.name = "A"},
// CHECK-SAME: %{{[a-z0-9]+}}: i64 {tiled.binding = "step"},
// CHECK-SAME: %[[UNLESS:[a-z0-9]+]]: memref<i32> {tiled.binding = "unless", tiled.name = "done"})
// CHECK-SAME: workgroup(%[[S:[a-z0-9]+]] : memref<32xf32, #gpu.address_space<workgroup>>)
// CHECK: memref.load %[[UNLESS]][]
// CHECK: scf.if
// CHECK: memref.store %{{.*}}, %[[S]]
// CHECK: gpu.barrier
// CHECK: memref.store %{{.*}}, %[[A]][]
// CHECK-NOT: scf.if
// CHECK: gpu.return
#zero = affine_map<() -> (0)>
#one = affine_map<() -> (1)>
module attributes {gpu.container_module, stencil.params = [], stencil.steps = affine_map<() -> (4)>, stencil.target = {arch = "sm_90", contract = true, device = "H200", fast_math = false}} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #zero} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.grid"() {sym_name = "cell", lower = #zero, upper = #zero} : () -> ()
  "stencil.field"() {sym_name = "done", grid = @cell, type = i32, role = "condition"} : () -> ()
  func.func private @value() -> i32 { %0 = arith.constant 0 : i32 return %0 : i32 }
  "stencil.reduce"() {field = @done, function = @value, grid = @cell, operation = "max"} : () -> ()
  "stencil.until"() {condition = @done, every = 1 : i64, text = "never"} : () -> ()
  gpu.module @kernels {
    gpu.func @k(%a: memref<f32> {tiled.binding = "read_write", tiled.name = "A"}, %step: i64 {tiled.binding = "step"})
        workgroup(%s: memref<32xf32, #gpu.address_space<workgroup>>)
        kernel attributes {known_block_size = array<i32: 32, 1, 1>, tiled.grid = #one, tiled.steps = 1 : i64, tiled.strategy = "naive", tiled.tile = array<i64: 1>, tiled.per_thread = array<i64: 1>} {
      %x = gpu.thread_id x
      %v = memref.load %a[] : memref<f32>
      memref.store %v, %s[%x] : memref<32xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %c0 = arith.constant 0 : index
      %w = memref.load %s[%c0] : memref<32xf32, #gpu.address_space<workgroup>>
      memref.store %w, %a[] : memref<f32>
      gpu.return
    }
  }
}
