// RUN: stencil-opt %s --pass-pipeline='builtin.module(eliminate-barriers)' | FileCheck %s
// Barriers between accesses to the same bytes by different views: a view of a part that begins at
// byte 1024, and a matrix whose rows and columns overlap.

module {
  gpu.module @other {
    // CHECK-LABEL: gpu.func @nested
    gpu.func @nested(%v: f32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c1024 = arith.constant 1024 : index
      %x = gpu.thread_id x
      %d = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %p = memref.view %d[%c1024][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<1024xi8, #gpu.address_space<workgroup>>
      %a = memref.view %p[%c0][] : memref<1024xi8, #gpu.address_space<workgroup>> to memref<32xf32, #gpu.address_space<workgroup>>
      %b = memref.view %d[%c1024][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<32xf32, #gpu.address_space<workgroup>>
      memref.store %v, %a[%x] : memref<32xf32, #gpu.address_space<workgroup>>
      // CHECK: gpu.barrier
      gpu.barrier
      %r = memref.load %b[%c1] : memref<32xf32, #gpu.address_space<workgroup>>
      gpu.return
    }

    // CHECK-LABEL: gpu.func @stride
    gpu.func @stride(%v: f32, %k: index) workgroup(%s : memref<64xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %x = gpu.thread_id x
      %t = memref.reinterpret_cast %s to offset: [0], sizes: [32, 32], strides: [1, 1] : memref<64xf32, #gpu.address_space<workgroup>> to memref<32x32xf32, strided<[1, 1]>, #gpu.address_space<workgroup>>
      memref.store %v, %t[%x, %c0] : memref<32x32xf32, strided<[1, 1]>, #gpu.address_space<workgroup>>
      // CHECK: gpu.barrier
      gpu.barrier
      %r = memref.load %t[%x, %c1] : memref<32x32xf32, strided<[1, 1]>, #gpu.address_space<workgroup>>
      gpu.return
    }
  }
}
