// RUN: stencil-opt %s --pass-pipeline='builtin.module(eliminate-barriers)' | FileCheck %s
// RUN: stencil-opt %s --pass-pipeline='builtin.module(eliminate-barriers)' -o %t.once
// RUN: stencil-opt %s --pass-pipeline='builtin.module(eliminate-barriers,eliminate-barriers)' -o %t.twice
// RUN: diff %t.once %t.twice
// Barriers that order nothing.

!s = memref<32x8xf32, #gpu.address_space<workgroup>>

module {
  gpu.module @other {
    // Two in a row; one before all accesses; one behind them.
    // CHECK-LABEL: gpu.func @in_a_row
    // CHECK-NOT: gpu.barrier
    // CHECK: memref.store
    // CHECK-NEXT: gpu.barrier
    // CHECK-NEXT: memref.load
    // CHECK-NOT: gpu.barrier
    // CHECK: gpu.return
    gpu.func @in_a_row(%v: f32) workgroup(%s : !s) kernel
        attributes {known_block_size = array<i32: 8, 32, 1>} {
      %x = gpu.thread_id x
      %y = gpu.thread_id y
      gpu.barrier
      memref.store %v, %s[%y, %x] : !s
      gpu.barrier
      gpu.barrier
      %a = memref.load %s[%x, %x] : !s
      gpu.barrier
      gpu.return
    }

    // A thread's own elements; another buffer; reads alone; a thread's own memory.
    // CHECK-LABEL: gpu.func @own
    // CHECK-NOT: gpu.barrier
    // CHECK: gpu.return
    gpu.func @own(%v: f32, %g: memref<?xf32>) workgroup(%s : !s, %t : !s) kernel
        attributes {known_block_size = array<i32: 8, 32, 1>} {
      %x = gpu.thread_id x
      %y = gpu.thread_id y
      %own = memref.alloca() : memref<1xf32>
      %c0 = arith.constant 0 : index
      memref.store %v, %s[%y, %x] : !s
      gpu.barrier
      %a = memref.load %s[%y, %x] : !s
      %b = memref.load %t[%x, %x] : !s
      %c = memref.load %g[%x] : memref<?xf32>
      gpu.barrier
      %d = memref.load %t[%y, %c0] : !s
      %e = memref.load %g[%y] : memref<?xf32>
      memref.store %e, %own[%c0] : memref<1xf32>
      gpu.barrier
      %f = memref.load %own[%c0] : memref<1xf32>
      gpu.return
    }

    // Parts of dynamic shared memory that do not meet.
    // CHECK-LABEL: gpu.func @parts
    // CHECK: memref.store
    // CHECK-NEXT: memref.store
    // CHECK-NEXT: gpu.barrier
    // CHECK-NEXT: memref.load
    gpu.func @parts(%v: f32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c128 = arith.constant 128 : index
      %x = gpu.thread_id x
      %all = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %s = memref.view %all[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<32xf32, #gpu.address_space<workgroup>>
      %t = memref.view %all[%c128][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<32xf32, #gpu.address_space<workgroup>>
      memref.store %v, %s[%x] : memref<32xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      memref.store %v, %t[%x] : memref<32xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %a = memref.load %s[%c0] : memref<32xf32, #gpu.address_space<workgroup>>
      gpu.return
    }

    // A loop that needs one barrier of two: each iteration has other elements of a thread's own.
    // CHECK-LABEL: gpu.func @loop
    // CHECK: scf.for
    // CHECK-NEXT: memref.store
    // CHECK-NEXT: memref.load
    // CHECK-NEXT: }
    // CHECK-NEXT: gpu.barrier
    // CHECK-NEXT: memref.load
    gpu.func @loop(%v: f32, %n: index) workgroup(%s : !s) kernel
        attributes {known_block_size = array<i32: 8, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %x = gpu.thread_id x
      scf.for %i = %c0 to %n step %c1 {
        memref.store %v, %s[%i, %x] : !s
        gpu.barrier
        %a = memref.load %s[%c0, %x] : !s
      }
      gpu.barrier
      %b = memref.load %s[%x, %c0] : !s
      gpu.return
    }
  }
}
