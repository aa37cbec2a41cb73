// RUN: stencil-opt %s --pass-pipeline='builtin.module(place-constants)' | FileCheck %s
// RUN: stencil-opt %s --pass-pipeline='builtin.module(place-constants)' -o %t.once
// RUN: stencil-opt %s --pass-pipeline='builtin.module(place-constants,place-constants)' -o %t.twice
// RUN: diff %t.once %t.twice
// Kernels by hand: arrays that all lanes read alike, by views and with shapes of their own.

module @hand attributes {gpu.container_module, stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (1)>, stencil.target = {arch = "sm_90", contract = true, device = "NVIDIA H200", fast_math = false}} {
  "stencil.grid"() {lower = affine_map<()[n] -> (0)>, sym_name = "line", upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.grid"() {lower = affine_map<()[n] -> (0, 0)>, sym_name = "mask", upper = affine_map<()[n] -> (2, 2)>} : () -> ()
  "stencil.grid"() {lower = affine_map<()[n] -> (0)>, sym_name = "table", upper = affine_map<()[n] -> (7)>} : () -> ()
  "stencil.field"() {grid = @line, role = "state", sym_name = "O", type = f32} : () -> ()
  "stencil.field"() {grid = @mask, role = "const", sym_name = "W", type = f32} : () -> ()
  "stencil.field"() {grid = @table, role = "const", sym_name = "T", type = f64} : () -> ()
  "stencil.field"() {grid = @table, role = "const", sym_name = "U", type = f32} : () -> ()
  // A name that a variable might have.
  // CHECK: gpu.module @first_constant
  gpu.module @first_constant {
    // CHECK: memref.global @first_constant_2 : memref<9xf32, 4> = uninitialized {alignment = 16 : i64, tiled.constant = "W"}
    // CHECK-NEXT: memref.global @first_constant_3 : memref<8xf64, 4> = uninitialized {alignment = 16 : i64, tiled.constant = "T"}
    // The argument stays, and nobody uses it.
    // CHECK-NEXT: gpu.func @first(%{{.*}}: memref<f32> {{.*}}, %[[w:.*]]: memref<f32> {{{.*}}tiled.name = "W"}, %[[t:.*]]: memref<8xf64> {{{.*}}tiled.name = "T"}
    // CHECK-SAME: tiled.not_constant = ["O: the kernel stores to it"]
    // CHECK-NOT: %[[w]]
    // CHECK-NOT: %[[t]]
    // CHECK-DAG: %[[table:.*]] = memref.get_global @first_constant_3 : memref<8xf64, 4>
    // CHECK-DAG: %[[all:.*]] = memref.get_global @first_constant_2 : memref<9xf32, 4>
    // CHECK: %[[view:.*]] = memref.reinterpret_cast %[[all]] to offset: [0], sizes: [3, 3], strides: [3, 1] : memref<9xf32, 4> to memref<3x3xf32, strided<[3, 1]>, 4>
    // CHECK: memref.load %[[view]][%{{.*}}, %{{.*}}] : memref<3x3xf32, strided<[3, 1]>, 4>
    // CHECK: vector.load %[[table]][%{{.*}}] : memref<8xf64, 4>, vector<2xf64>
    gpu.func @first(%o: memref<f32> {tiled.binding = "read_write", tiled.name = "O"}, %w: memref<f32> {tiled.binding = "read", tiled.name = "W"}, %t: memref<8xf64> {tiled.binding = "read", tiled.name = "T"}, %n: index {tiled.binding = "param", tiled.name = "N"}, %step: i64 {tiled.binding = "step"}) kernel attributes {known_block_size = array<i32: 64, 1, 1>, tiled.grid = affine_map<()[n] -> (n ceildiv 64)>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64, tiled.strategy = "affine", tiled.tile = array<i64: 64>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %zero = arith.constant 0.0 : f32
      %all = memref.reinterpret_cast %o to offset: [0], sizes: [%n], strides: [1] : memref<f32> to memref<?xf32, strided<[1]>>
      %mask = memref.reinterpret_cast %w to offset: [0], sizes: [3, 3], strides: [3, 1] : memref<f32> to memref<3x3xf32, strided<[3, 1]>>
      %x = gpu.thread_id x
      %block = gpu.block_id x
      %row = arith.remui %block, %c3 : index
      %sum = scf.for %k = %c0 to %c3 step %c1 iter_args(%before = %zero) -> f32 {
        %a = memref.load %mask[%row, %k] : memref<3x3xf32, strided<[3, 1]>>
        %next = arith.addf %before, %a : f32
        scf.yield %next : f32
      }
      %pair = vector.load %t[%c3] : memref<8xf64>, vector<2xf64>
      %b = vector.extract %pair[0] : f64 from vector<2xf64>
      %c = arith.truncf %b : f64 to f32
      %value = arith.addf %sum, %c : f32
      memref.store %value, %all[%x] : memref<?xf32, strided<[1]>>
      gpu.return
    }

    // Two kernels share a variable; one whose lanes differ reads global memory.
    // CHECK-LABEL: gpu.func @second
    // CHECK-SAME: tiled.not_constant = ["O: the kernel stores to it", "U: lanes of a warp load different elements"]
    // CHECK: memref.get_global @first_constant_3 : memref<8xf64, 4>
    gpu.func @second(%o: memref<f32> {tiled.binding = "read_write", tiled.name = "O"}, %t: memref<8xf64> {tiled.binding = "read", tiled.name = "T"}, %u: memref<8xf32> {tiled.binding = "read", tiled.name = "U"}, %n: index {tiled.binding = "param", tiled.name = "N"}, %step: i64 {tiled.binding = "step"}) kernel attributes {known_block_size = array<i32: 8, 1, 1>, tiled.grid = affine_map<()[n] -> (n ceildiv 8)>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64, tiled.strategy = "affine", tiled.tile = array<i64: 8>} {
      %c0 = arith.constant 0 : index
      %all = memref.reinterpret_cast %o to offset: [0], sizes: [%n], strides: [1] : memref<f32> to memref<?xf32, strided<[1]>>
      %x = gpu.thread_id x
      %a = memref.load %t[%c0] : memref<8xf64>
      %b = arith.truncf %a : f64 to f32
      %c = memref.load %u[%x] : memref<8xf32>
      %d = arith.addf %b, %c : f32
      memref.store %d, %all[%x] : memref<?xf32, strided<[1]>>
      gpu.return
    }
  }
  "tiled.repeat"() {count = affine_map<()[n, steps] -> (1)>, kernels = [@first, @second]} : () -> ()
}
