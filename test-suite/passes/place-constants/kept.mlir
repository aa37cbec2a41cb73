// RUN: stencil-opt %s --pass-pipeline='builtin.module(place-constants)' | FileCheck %s
// RUN: stencil-opt %s --pass-pipeline='builtin.module(place-constants)' -o %t.once
// RUN: stencil-opt %s --pass-pipeline='builtin.module(place-constants,place-constants)' -o %t.twice
// RUN: diff %t.once %t.twice
// Arrays that stay in global memory, each with the reason.

// CHECK-NOT: memref.global
module @hand attributes {gpu.container_module, stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (2)>, stencil.target = {arch = "sm_90", contract = true, device = "NVIDIA H200", fast_math = false}} {
  "stencil.grid"() {lower = affine_map<()[n] -> (0)>, sym_name = "line", upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.grid"() {lower = affine_map<()[n] -> (0)>, sym_name = "table", upper = affine_map<()[n] -> (7)>} : () -> ()
  "stencil.grid"() {lower = affine_map<()[n] -> (0)>, sym_name = "long", upper = affine_map<()[n] -> (14336)>} : () -> ()
  "stencil.field"() {grid = @table, role = "state", sym_name = "stored", type = f32} : () -> ()
  "stencil.field"() {grid = @table, role = "state", sym_name = "state", type = f32} : () -> ()
  "stencil.field"() {grid = @table, role = "state", sym_name = "elsewhere", type = f32} : () -> ()
  "stencil.field"() {grid = @line, role = "const", sym_name = "open", type = f32} : () -> ()
  "stencil.field"() {grid = @long, role = "const", sym_name = "large", type = f32} : () -> ()
  "stencil.field"() {grid = @table, role = "const", sym_name = "lanes", type = f32} : () -> ()
  "stencil.field"() {grid = @table, role = "const", sym_name = "loaded", type = f32} : () -> ()
  "stencil.field"() {grid = @table, role = "const", sym_name = "whole", type = f32} : () -> ()
  "stencil.field"() {grid = @table, role = "const", sym_name = "beyond", type = f32} : () -> ()
  "stencil.field"() {grid = @table, role = "const", sym_name = "indices", type = i32} : () -> ()
  gpu.module @kernels {
    // CHECK: gpu.func @kept
    // CHECK-SAME: tiled.not_constant = ["stored: the kernel stores to it", "state: it is no const field", "elsewhere: @other stores to it", "open: its size is not fixed", "whole: memref.subview is no plain load or store", "beyond: a view reaches cell 8 of 8", "large: it has 57348 bytes, and 2048 of constant memory are left", "lanes: lanes of a warp load different elements", "loaded: an address of it can't be told", "indices: lanes of a warp load different elements"]
    gpu.func @kept(%stored: memref<8xf32> {tiled.binding = "read_write", tiled.name = "stored"}, %state: memref<8xf32> {tiled.binding = "read", tiled.name = "state"}, %elsewhere: memref<8xf32> {tiled.binding = "read", tiled.name = "elsewhere"}, %open: memref<f32> {tiled.binding = "read", tiled.name = "open"}, %large: memref<14337xf32> {tiled.binding = "read", tiled.name = "large"}, %lanes: memref<8xf32> {tiled.binding = "read", tiled.name = "lanes"}, %loaded: memref<8xf32> {tiled.binding = "read", tiled.name = "loaded"}, %whole: memref<8xf32> {tiled.binding = "read", tiled.name = "whole"}, %beyond: memref<f32> {tiled.binding = "read", tiled.name = "beyond"}, %indices: memref<8xi32> {tiled.binding = "read", tiled.name = "indices"}, %n: index {tiled.binding = "param", tiled.name = "N"}, %step: i64 {tiled.binding = "step"}) kernel attributes {known_block_size = array<i32: 8, 1, 1>, tiled.grid = affine_map<()[n] -> (n ceildiv 8)>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64, tiled.strategy = "affine", tiled.tile = array<i64: 8>} {
      %c0 = arith.constant 0 : index
      %x = gpu.thread_id x
      %line = memref.reinterpret_cast %open to offset: [0], sizes: [%n], strides: [1] : memref<f32> to memref<?xf32, strided<[1]>>
      %far = memref.reinterpret_cast %beyond to offset: [1], sizes: [8], strides: [1] : memref<f32> to memref<8xf32, strided<[1], offset: 1>>
      %half = memref.subview %whole[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
      %0 = memref.load %state[%c0] : memref<8xf32>
      %1 = memref.load %elsewhere[%c0] : memref<8xf32>
      %2 = memref.load %line[%c0] : memref<?xf32, strided<[1]>>
      %3 = memref.load %large[%c0] : memref<14337xf32>
      %4 = memref.load %lanes[%x] : memref<8xf32>
      %5 = memref.load %indices[%x] : memref<8xi32>
      %6 = arith.index_cast %5 : i32 to index
      %7 = memref.load %loaded[%6] : memref<8xf32>
      %8 = memref.load %half[%c0] : memref<4xf32, strided<[1]>>
      %9 = memref.load %far[%c0] : memref<8xf32, strided<[1], offset: 1>>
      %10 = arith.addf %0, %1 : f32
      %11 = arith.addf %10, %2 : f32
      %12 = arith.addf %11, %3 : f32
      %13 = arith.addf %12, %4 : f32
      %14 = arith.addf %13, %7 : f32
      %15 = arith.addf %14, %8 : f32
      %16 = arith.addf %15, %9 : f32
      memref.store %16, %stored[%x] : memref<8xf32>
      gpu.return
    }
    gpu.func @other(%elsewhere: memref<8xf32> {tiled.binding = "read_write", tiled.name = "elsewhere"}, %step: i64 {tiled.binding = "step"}) kernel attributes {known_block_size = array<i32: 8, 1, 1>, tiled.grid = affine_map<()[n] -> (1)>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64, tiled.strategy = "affine", tiled.tile = array<i64: 8>} {
      %x = gpu.thread_id x
      %one = arith.constant 1.0 : f32
      memref.store %one, %elsewhere[%x] : memref<8xf32>
      gpu.return
    }
    // No launch states what fills a variable of a kernel without bindings.
    // CHECK: gpu.func @foreign(%{{.*}}: memref<8xf32>, %{{.*}}: memref<8xf32>) kernel
    // CHECK-SAME: tiled.not_constant = ["all arrays: the kernel needs `tiled.grid`, and the module `stencil.params`"]
    gpu.func @foreign(%o: memref<8xf32>, %w: memref<8xf32>) kernel {
      %c0 = arith.constant 0 : index
      %0 = memref.load %w[%c0] : memref<8xf32>
      memref.store %0, %o[%c0] : memref<8xf32>
      gpu.return
    }
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (1)>, kernels = [@kept, @other]} : () -> ()
}
