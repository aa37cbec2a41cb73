// RUN: stencil-opt %s --pass-pipeline='builtin.module(unroll-by-registers)' | FileCheck %s
// Numbers beyond every device are stated for a kernel.

// CHECK: gpu.func @blocks
// CHECK: gpu.func @registers
module {
  gpu.module @other {
    gpu.func @blocks(%a: memref<512xf32>, %n: index) kernel attributes {known_block_size = array<i32: 1024, 1, 1>, nvvm.minctasm = 2147483647 : i32} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      scf.for %i = %c0 to %n step %c1 {
        %v = memref.load %a[%i] : memref<512xf32>
        memref.store %v, %a[%i] : memref<512xf32>
      }
      gpu.return
    }

    gpu.func @registers(%a: memref<512xf32>, %n: index) kernel attributes {known_block_size = array<i32: 1024, 1, 1>, nvvm.maxnreg = -5 : i64} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      scf.for %i = %c0 to %n step %c1 {
        %v = memref.load %a[%i] : memref<512xf32>
        memref.store %v, %a[%i] : memref<512xf32>
      }
      gpu.return
    }
  }
}
