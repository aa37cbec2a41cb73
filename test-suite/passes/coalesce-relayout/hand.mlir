// RUN: stencil-opt %s --pass-pipeline='builtin.module(coalesce-relayout{steps=5 arrays=on})' | FileCheck %s
// RUN: stencil-opt %s --pass-pipeline='builtin.module(coalesce-relayout{steps=5 arrays=on},coalesce-relayout{steps=5})' | FileCheck %s
// RUN: stencil-opt %s --pass-pipeline='builtin.module(coalesce-relayout)' | FileCheck %s --check-prefix=FEW
// RUN: stencil-opt %s --pass-pipeline='builtin.module(coalesce-relayout{always=on arrays=on},interleave-records)' | FileCheck %s
// RUN: stencil-opt %s --pass-pipeline='builtin.module(coalesce-relayout{steps=5 cells=64},interleave-records)' | FileCheck %s --check-prefix=BLOCKS
// RUN: stencil-opt %s --pass-pipeline='builtin.module(coalesce-relayout{steps=5 cells=64},interleave-records,interleave-records)' | FileCheck %s --check-prefix=BLOCKS
// RUN: stencil-opt %s --pass-pipeline='builtin.module(coalesce-relayout{steps=5 cells=512})' | FileCheck %s --check-prefix=LARGE
// RUN: stencil-opt %s --pass-pipeline='builtin.module(coalesce-relayout{steps=5})' -o %t.mlir
// RUN: not stencilc %t.mlir --passes='builtin.module()' --emit=plan 2>&1 | FileCheck %s --check-prefix=APART
// RUN: not stencil-opt %s --pass-pipeline='builtin.module(coalesce-relayout{cells=48})' 2>&1 | FileCheck %s --check-prefix=POWER
// RUN: stencil-opt %s --pass-pipeline='builtin.module(interleave-records)' | FileCheck %s --check-prefix=AOS
// RUN: stencil-opt %s --pass-pipeline='builtin.module(interleave-records,coalesce-relayout{always=on})' | FileCheck %s --check-prefix=AOS
// A kernel by hand, with memory of its block behind its arguments, and a vector. Its own code stays as it is
// where the fields are relaid to an array for each number. With blocks it has a flat view of each number. A
// module without arrays of structs stays as it is.

// CHECK-DAG: stencil.layout = "relaid", {{.*}}sym_name = "W.h"
// CHECK-DAG: stencil.layout = "relaid", {{.*}}sym_name = "W.u"
// CHECK: kernels = [@pack_W]
// CHECK-NEXT: kernels = [@k]
// CHECK: gpu.func @k(%{{[a-z0-9]+}}: memref<f32> {tiled.binding = "read_write", tiled.name = "W.h"},
// CHECK-NOT: kernels
// CHECK: vector.load
// CHECK: gpu.func @pack_W(
// CHECK: gpu.func @unpack_W(
// CHECK: kernels = [@unpack_W]

// BLOCKS-DAG: stencil.kernel_block = 64 : i64, stencil.layout = "relaid", {{.*}}sym_name = "W.h"
// BLOCKS: kernels = [@pack_W]
// BLOCKS-NEXT: kernels = [@k]
// BLOCKS: gpu.func @k(%[[W:[a-z0-9]+]]: memref<f32> {{.*}}tiled.binding = "read_write", tiled.name = "W"},
// BLOCKS-COUNT-2: memref.reinterpret_cast %[[W]] to offset: [0], sizes: [%{{.*}}], strides: [1]
// BLOCKS: arith.andi
// BLOCKS: gpu.func @pack_W(%{{[a-z0-9]+}}: memref<f32> {{.*}}tiled.name = "W"})
// BLOCKS-COUNT-2: gpu.barrier
// BLOCKS: kernels = [@unpack_W]

// LARGE: layout_note = {{.*}}; an array for each number, as shared memory has no room for 512 cells
// APART: error: @k has buffers of the numbers of @W, which is an array of blocks in kernels; run interleave-records
// POWER: cells is a power of two, not 48

// FEW: stencil.layout_note = "the transform moves 32 bytes a cell and saves 8.0 a step; it pays in a run of 5 steps or more; the program takes 4"
// FEW-NOT: @pack_W

// AOS: stencil.layout = "aos"
// AOS-NOT: @pack_W
// AOS: gpu.func @k(%[[W:[a-z0-9]+]]: memref<f32> {{.*}}tiled.binding = "read_write", tiled.name = "W"},
// AOS-SAME: %{{[a-z0-9]+}}: i64 {tiled.binding = "step"})
// AOS-SAME: workgroup(%[[S:[a-z0-9]+]] : memref<32xf32, #gpu.address_space<workgroup>>
// AOS-SAME: known_block_size = array<i32: 32, 1, 1>
// AOS: %[[H:.*]] = memref.reinterpret_cast %[[W]] to offset: [0], sizes: [8, 32], strides: [64, 2]
// AOS: %[[U:.*]] = memref.reinterpret_cast %[[W]] to offset: [1], sizes: [8, 32], strides: [64, 2]
// AOS-COUNT-2: memref.load %[[H]]
// AOS: vector.from_elements
// AOS: memref.store %{{.*}}, %[[S]]
// AOS-NOT: vector.store
// AOS: vector.extract %{{.*}}[0]
// AOS-NEXT: memref.store %{{.*}}, %[[U]]
// AOS: vector.extract %{{.*}}[1]
// AOS: memref.store %{{.*}}, %[[U]]
#zero = affine_map<() -> (0, 0)>
#last = affine_map<() -> (7, 31)>
#one = affine_map<() -> (1)>
#all = affine_map<()[s0] -> (s0)>
module attributes {gpu.container_module, stencil.params = [], stencil.steps = affine_map<() -> (4)>, stencil.target = {arch = "sm_90", contract = true, device = "H200", fast_math = false}} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "W.h", grid = @G, type = f32, role = "state", stencil.layout = "aos", stencil.member = {field = "W", offset = 0, size = 8}} : () -> ()
  "stencil.field"() {sym_name = "W.u", grid = @G, type = f32, role = "state", stencil.layout = "aos", stencil.member = {field = "W", offset = 4, size = 8}} : () -> ()
  "tiled.repeat"() {count = #all, kernels = [@k]} : () -> ()
  gpu.module @kernels {
    gpu.func @k(%h: memref<f32> {tiled.binding = "read_write", tiled.name = "W.h"}, %u: memref<f32> {tiled.binding = "read_write", tiled.name = "W.u"}, %step: i64 {tiled.binding = "step"})
        workgroup(%s: memref<32xf32, #gpu.address_space<workgroup>>)
        kernel attributes {known_block_size = array<i32: 32, 1, 1>, tiled.grid = #one, tiled.steps = 1 : i64, tiled.strategy = "naive", tiled.tile = array<i64: 8, 32>, tiled.per_thread = array<i64: 1, 1>} {
      %x = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %H = memref.reinterpret_cast %h to offset: [0], sizes: [8, 32], strides: [32, 1] : memref<f32> to memref<8x32xf32, strided<[32, 1]>>
      %U = memref.reinterpret_cast %u to offset: [0], sizes: [8, 32], strides: [32, 1] : memref<f32> to memref<8x32xf32, strided<[32, 1]>>
      %v = vector.load %H[%c0, %x] : memref<8x32xf32, strided<[32, 1]>>, vector<2xf32>
      %w = vector.extract %v[0] : f32 from vector<2xf32>
      memref.store %w, %s[%x] : memref<32xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      vector.store %v, %U[%c0, %x] : memref<8x32xf32, strided<[32, 1]>>, vector<2xf32>
      gpu.return
    }
  }
}
