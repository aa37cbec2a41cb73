// RUN: stencil-opt %s --pass-pipeline='builtin.module(unroll-by-registers)' | FileCheck %s
// RUN: stencil-opt %s --pass-pipeline='builtin.module(unroll-by-registers)' -o %t.once
// RUN: stencil-opt %s --pass-pipeline='builtin.module(unroll-by-registers,unroll-by-registers)' -o %t.twice
// RUN: diff %t.once %t.twice
// Loops with the counts that are chosen for them.

// CHECK-DAG: #[[FOUR:loop_unroll[0-9]*]] = #llvm.loop_unroll<count = 4 : i32>
// CHECK-DAG: #[[FOUR_LOOP:.*]] = #llvm.loop_annotation<unroll = #[[FOUR]]>
// CHECK-DAG: #[[SIX:loop_unroll[0-9]*]] = #llvm.loop_unroll<count = 6 : i32>
// CHECK-DAG: #[[SIX_LOOP:.*]] = #llvm.loop_annotation<unroll = #[[SIX]]>
// CHECK-DAG: #[[TWO:loop_unroll[0-9]*]] = #llvm.loop_unroll<count = 2 : i32>
// CHECK-DAG: #[[TWO_LOOP:.*]] = #llvm.loop_annotation<unroll = #[[TWO]]>
// CHECK-DAG: #[[MOST:loop_unroll[0-9]*]] = #llvm.loop_unroll<count = 16 : i32>
// CHECK-DAG: #[[MOST_LOOP:.*]] = #llvm.loop_annotation<unroll = #[[MOST]]>

!s = memref<32x32xf32, #gpu.address_space<workgroup>>

module {
  gpu.module @other {
    // 64 threads: 32 blocks have 32 registers for each thread. An unknown number of iterations.
    // CHECK-LABEL: gpu.func @unknown
    // CHECK-SAME: tiled.unroll = ["4 times: 25 registers (17 and 2 an iteration) for 32 blocks; 8 would take 33 registers"]
    // CHECK: llvm.loop_annotation = #[[FOUR_LOOP]]
    gpu.func @unknown(%a: memref<64xf32>, %b: memref<64xf32>, %n: index) kernel
        attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0.0 : f32
      %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> f32 {
        %x = memref.load %a[%i] : memref<64xf32>
        %y = memref.load %b[%i] : memref<64xf32>
        %p = arith.mulf %x, %y : f32
        %t = arith.addf %s, %p : f32
        scf.yield %t : f32
      }
      memref.store %sum, %b[%c0] : memref<64xf32>
      gpu.return
    }

    // All iterations; a number that divides them.
    // CHECK-LABEL: gpu.func @known
    // CHECK-SAME: tiled.unroll = ["6 times: {{.*}}; all iterations", "2 times: {{.*}}; of 34 iterations"]
    // CHECK: llvm.loop_annotation = #[[SIX_LOOP]]
    // CHECK: llvm.loop_annotation = #[[TWO_LOOP]]
    gpu.func @known(%a: memref<64xf32>) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c6 = arith.constant 6 : index
      %c34 = arith.constant 34 : index
      scf.for %i = %c0 to %c6 step %c1 {
        %x = memref.load %a[%i] : memref<64xf32>
        %y = arith.negf %x : f32
        memref.store %y, %a[%i] : memref<64xf32>
      }
      scf.for %i = %c0 to %c34 step %c1 {
        %x = memref.load %a[%i] : memref<64xf32>
        %y = arith.negf %x : f32
        memref.store %y, %a[%i] : memref<64xf32>
      }
      gpu.return
    }

    // Shared memory limits the blocks to what more registers leave.
    // CHECK-LABEL: gpu.func @shared
    // CHECK-SAME: tiled.unroll = ["16 times: 45 registers (13 and 2 an iteration) for 17 blocks; the most"]
    // CHECK: scf.for
    // CHECK: scf.for
    // CHECK: llvm.loop_annotation = #[[MOST_LOOP]]
    // CHECK-NOT: llvm.loop_annotation
    // CHECK: gpu.return
    gpu.func @shared(%a: memref<64xf32>, %n: index)
        workgroup(%s : !s, %t : !s, %u : !s) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %x = gpu.thread_id x
      scf.for %j = %c0 to %n step %c1 {
        scf.for %i = %c0 to %n step %c1 {
          %v = memref.load %s[%i, %x] : !s
          %w = memref.load %t[%i, %x] : !s
          %z = arith.addf %v, %w : f32
          memref.store %z, %u[%i, %x] : !s
        }
      }
      gpu.return
    }
  }
}
