// RUN: stencil-opt %s --pass-pipeline='builtin.module(bank-pad)' | FileCheck %s
// RUN: stencil-opt %s --pass-pipeline='builtin.module(bank-pad)' -o %t.once
// RUN: stencil-opt %s --pass-pipeline='builtin.module(bank-pad,bank-pad)' -o %t.twice
// RUN: diff %t.once %t.twice
// Buffers that stay as they are, each with the reason.

module {
  gpu.module @other {
    // The first two see a buffer as a whole, the third is a line, the fourth has a pitch of its own,
    // and no address of the last is known.
    // CHECK-LABEL: gpu.func @whole
    // CHECK-SAME: memref<32x32xf32, #gpu.address_space<workgroup>>, %{{.*}} : memref<32x32xf32, #gpu.address_space<workgroup>>, %{{.*}} : memref<1024xf32, #gpu.address_space<workgroup>>, %{{.*}} : memref<32x32xf32, strided<[40, 1]>, #gpu.address_space<workgroup>>, %{{.*}} : memref<32x32xf32, #gpu.address_space<workgroup>>
    // CHECK-SAME: tiled.bank_pad = ["kept: memref.subview is no plain load or store", "kept: memref.dim is no plain load or store", "kept: it has no rows", "kept: it has a layout of its own", "kept: no address of it is known"]
    gpu.func @whole(%at: memref<32xindex>)
        workgroup(%s : memref<32x32xf32, #gpu.address_space<workgroup>>,
                  %d : memref<32x32xf32, #gpu.address_space<workgroup>>,
                  %l : memref<1024xf32, #gpu.address_space<workgroup>>,
                  %p : memref<32x32xf32, strided<[40, 1]>, #gpu.address_space<workgroup>>,
                  %u : memref<32x32xf32, #gpu.address_space<workgroup>>) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %x = gpu.thread_id x
      %v = arith.constant 1.0 : f32
      %view = memref.subview %s[0, 0] [32, 16] [1, 1] : memref<32x32xf32, #gpu.address_space<workgroup>> to memref<32x16xf32, strided<[32, 1]>, #gpu.address_space<workgroup>>
      memref.store %v, %view[%x, %c0] : memref<32x16xf32, strided<[32, 1]>, #gpu.address_space<workgroup>>
      %row = memref.dim %d, %c1 : memref<32x32xf32, #gpu.address_space<workgroup>>
      memref.store %v, %d[%x, %c0] : memref<32x32xf32, #gpu.address_space<workgroup>>
      memref.store %v, %l[%x] : memref<1024xf32, #gpu.address_space<workgroup>>
      memref.store %v, %p[%x, %c0] : memref<32x32xf32, strided<[40, 1]>, #gpu.address_space<workgroup>>
      %i = memref.load %at[%x] : memref<32xindex>
      memref.store %v, %u[%i, %c0] : memref<32x32xf32, #gpu.address_space<workgroup>>
      gpu.return
    }

    // Numbers beyond any shared memory.
    // CHECK-LABEL: gpu.func @far
    // CHECK-SAME: memref<32x32xf32, #gpu.address_space<workgroup>>, %{{.*}} : memref<4000000000x4000000000xf32, #gpu.address_space<workgroup>>
    // CHECK-SAME: tiled.bank_pad = ["kept: no address of it is known", "kept: no shared memory holds it"]
    gpu.func @far()
        workgroup(%s : memref<32x32xf32, #gpu.address_space<workgroup>>,
                  %t : memref<4000000000x4000000000xf32, #gpu.address_space<workgroup>>) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>} {
      %far = arith.constant 9223372036854775807 : index
      %x = gpu.thread_id x
      %v = arith.constant 1.0 : f32
      memref.store %v, %s[%far, %x] : memref<32x32xf32, #gpu.address_space<workgroup>>
      memref.store %v, %t[%x, %far] : memref<4000000000x4000000000xf32, #gpu.address_space<workgroup>>
      gpu.return
    }

    // 48 KiB may be declared: the first buffer's pad fits, the second's does not.
    // CHECK-LABEL: gpu.func @limit
    // CHECK-SAME: memref<32x33xf32, #gpu.address_space<workgroup>>, %{{.*}} : memref<350x32xf32, #gpu.address_space<workgroup>>
    // CHECK-SAME: tiled.bank_pad = ["no avoidable conflict", "short of shared memory: 97 % of its clocks are avoidable"]
    gpu.func @limit()
        workgroup(%s : memref<32x32xf32, #gpu.address_space<workgroup>>,
                  %t : memref<350x32xf32, #gpu.address_space<workgroup>>) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %x = gpu.thread_id x
      %v = arith.constant 1.0 : f32
      memref.store %v, %s[%x, %c0] : memref<32x32xf32, #gpu.address_space<workgroup>>
      memref.store %v, %t[%x, %c0] : memref<350x32xf32, #gpu.address_space<workgroup>>
      gpu.return
    }
  }
}
