// RUN: stencil-opt %s --pass-pipeline='builtin.module(number-blocks)' | FileCheck %s
// A kernel by hand: without a cut nobody launches a part of its blocks, so that it stays as it is.

// CHECK: gpu.func @plain(%{{[a-z0-9]+}}: memref<f32> {{{[^}]*}}}, %{{[a-z0-9]+}}: i64 {{{[^}]*}}}) kernel
module @plain attributes {gpu.container_module, stencil.params = [], stencil.steps = affine_map<() -> (4)>, tiled.index_width = 32 : i64} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<() -> (0)>, upper = affine_map<() -> (63)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "tiled.repeat"() {count = affine_map<()[s0] -> (s0)>, kernels = [@plain]} : () -> ()
  gpu.module @kernels {
    gpu.func @plain(%a: memref<f32> {tiled.binding = "read_write", tiled.name = "A"}, %step: i64 {tiled.binding = "step"}) kernel attributes {known_block_size = array<i32: 64, 1, 1>, tiled.grid = affine_map<() -> (1)>, tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64, tiled.strategy = "naive", tiled.tile = array<i64: 64>} {
      %block = gpu.block_id x
      gpu.return
    }
  }
}
