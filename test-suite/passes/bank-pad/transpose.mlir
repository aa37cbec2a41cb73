// RUN: stencil-opt %s --pass-pipeline='builtin.module(bank-pad)' | FileCheck %s
// RUN: stencil-opt %s --pass-pipeline='builtin.module(bank-pad)' -o %t.once
// RUN: stencil-opt %s --pass-pipeline='builtin.module(bank-pad,bank-pad)' -o %t.twice
// RUN: diff %t.once %t.twice
// A transposition through shared memory, as another compiler or a person writes it: rows are
// written and columns are read.

module {
  gpu.module @other {
    // CHECK-LABEL: gpu.func @transpose
    // CHECK-SAME: workgroup(%[[s:.+]] : memref<32x33xf32, #gpu.address_space<workgroup>>)
    // CHECK-SAME: tiled.bank_pad = ["no avoidable conflict"]
    gpu.func @transpose(%a: memref<1024x1024xf32>, %b: memref<1024x1024xf32>)
        workgroup(%s : memref<32x32xf32, #gpu.address_space<workgroup>>) kernel
        attributes {known_block_size = array<i32: 32, 8, 1>} {
      %c0 = arith.constant 0 : index
      %c8 = arith.constant 8 : index
      %c32 = arith.constant 32 : index
      %x = gpu.thread_id x
      %y = gpu.thread_id y
      %bx = gpu.block_id x
      %by = gpu.block_id y
      %row = arith.muli %by, %c32 : index
      %column = arith.muli %bx, %c32 : index
      scf.for %k = %y to %c32 step %c8 {
        %i = arith.addi %row, %k : index
        %j = arith.addi %column, %x : index
        %v = memref.load %a[%i, %j] : memref<1024x1024xf32>
        // CHECK: memref.store %{{.*}}, %[[s]][%{{.*}}, %{{.*}}] : memref<32x33xf32, #gpu.address_space<workgroup>>
        memref.store %v, %s[%k, %x] : memref<32x32xf32, #gpu.address_space<workgroup>>
      }
      gpu.barrier
      scf.for %k = %y to %c32 step %c8 {
        // CHECK: memref.load %[[s]][%{{.*}}, %{{.*}}] : memref<32x33xf32, #gpu.address_space<workgroup>>
        %v = memref.load %s[%x, %k] : memref<32x32xf32, #gpu.address_space<workgroup>>
        %i = arith.addi %column, %k : index
        %j = arith.addi %row, %x : index
        memref.store %v, %b[%i, %j] : memref<1024x1024xf32>
      }
      gpu.return
    }

    // Rows alone need no pad, and neither does a word that all lanes read.
    // CHECK-LABEL: gpu.func @rows
    // CHECK-SAME: memref<32x32xf32, #gpu.address_space<workgroup>>
    // CHECK-SAME: tiled.bank_pad = ["no avoidable conflict"]
    gpu.func @rows(%a: memref<32xf32>)
        workgroup(%s : memref<32x32xf32, #gpu.address_space<workgroup>>) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %x = gpu.thread_id x
      %v = memref.load %a[%x] : memref<32xf32>
      memref.store %v, %s[%c0, %x] : memref<32x32xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %w = memref.load %s[%c0, %c0] : memref<32x32xf32, #gpu.address_space<workgroup>>
      memref.store %w, %a[%x] : memref<32xf32>
      gpu.return
    }

    // Vectors of 16 bytes keep their alignment: a column of them needs rows of an odd number of
    // vectors, and gets 4 words.
    // CHECK-LABEL: gpu.func @vectors
    // CHECK-SAME: memref<32x36xf32, #gpu.address_space<workgroup>>
    gpu.func @vectors(%a: memref<32xf32>)
        workgroup(%s : memref<32x32xf32, #gpu.address_space<workgroup>>) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %x = gpu.thread_id x
      %v = arith.constant dense<1.0> : vector<4xf32>
      vector.store %v, %s[%x, %c0] {alignment = 16 : i64} : memref<32x32xf32, #gpu.address_space<workgroup>>, vector<4xf32>
      gpu.return
    }

    // Doubles have pads of two words, and halves share a word.
    // CHECK-LABEL: gpu.func @doubles
    // CHECK-SAME: memref<32x17xf64, #gpu.address_space<workgroup>>, %{{.*}} : memref<32x66xf16, #gpu.address_space<workgroup>>
    gpu.func @doubles()
        workgroup(%s : memref<32x16xf64, #gpu.address_space<workgroup>>,
                  %h : memref<32x64xf16, #gpu.address_space<workgroup>>) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %x = gpu.thread_id x
      %v = arith.constant 1.0 : f64
      %w = arith.constant 1.0 : f16
      memref.store %v, %s[%x, %c0] : memref<32x16xf64, #gpu.address_space<workgroup>>
      memref.store %w, %h[%x, %c0] : memref<32x64xf16, #gpu.address_space<workgroup>>
      gpu.return
    }

    // A promised alignment holds for a single element too.
    // CHECK-LABEL: gpu.func @aligned
    // CHECK-SAME: memref<32x36xf32, #gpu.address_space<workgroup>>
    gpu.func @aligned()
        workgroup(%s : memref<32x32xf32, #gpu.address_space<workgroup>>) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %x = gpu.thread_id x
      %v = arith.constant 1.0 : f32
      memref.store %v, %s[%x, %c0] {alignment = 16 : i64} : memref<32x32xf32, #gpu.address_space<workgroup>>
      gpu.return
    }
  }
}
