// RUN: stencil-opt %s --pass-pipeline='builtin.module(place-constants)' -o %t.once
// RUN: FileCheck %s --input-file %t.once
// RUN: stencil-opt %t.once --pass-pipeline='builtin.module(place-constants)' | diff %t.once -
// A kernel as upstream's `gpu-kernel-outlining` leaves it. Nothing tells which arrays are constant, and what
// fills a variable: the kernel stays as it is, with a note of what it needs.

module attributes {gpu.container_module} {
  func.func @window(%o: memref<1024xf32>, %a: memref<1026xf32>, %w: memref<3xf32>) {
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c128 = arith.constant 128 : index
    gpu.launch_func @window_kernel::@window_kernel blocks in (%c8, %c1, %c1)
        threads in (%c128, %c1, %c1) args(%o : memref<1024xf32>, %a : memref<1026xf32>, %w : memref<3xf32>)
    return
  }
  // CHECK-NOT: memref.global
  // CHECK: gpu.func @window_kernel(%{{.*}}: memref<1024xf32>, %{{.*}}: memref<1026xf32>, %[[w:.*]]: memref<3xf32>)
  // CHECK-SAME: tiled.not_constant = ["all arrays: the kernel needs `tiled.grid`, and the module `stencil.params`"]
  // CHECK: memref.load %[[w]]
  // CHECK: gpu.func @helper
  // CHECK-NOT: tiled.
  gpu.module @window_kernel {
    gpu.func @window_kernel(%o: memref<1024xf32>, %a: memref<1026xf32>, %w: memref<3xf32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 8, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %c128 = arith.constant 128 : index
      %zero = arith.constant 0.0 : f32
      %block = gpu.block_id x
      %thread = gpu.thread_id x
      %first = arith.muli %block, %c128 : index
      %i = arith.addi %first, %thread : index
      %sum = scf.for %k = %c0 to %c3 step %c1 iter_args(%before = %zero) -> f32 {
        %j = arith.addi %i, %k : index
        %x = memref.load %a[%j] : memref<1026xf32>
        %y = memref.load %w[%k] : memref<3xf32>
        %p = arith.mulf %x, %y : f32
        %s = arith.addf %before, %p : f32
        scf.yield %s : f32
      }
      memref.store %sum, %o[%i] : memref<1024xf32>
      gpu.return
    }
    gpu.func @helper(%x: f32) -> f32 {
      gpu.return %x : f32
    }
  }
}
