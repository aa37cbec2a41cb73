// RUN: stencil-opt %s --pass-pipeline='builtin.module(unroll-by-registers)' | FileCheck %s
// Loops that get no count, each with the reason.
// CHECK-NOT: loop_unroll

module {
  gpu.module @other {
    // A barrier; an annotation; registers, which the kernel limits.
    // CHECK-LABEL: gpu.func @kept
    // CHECK-SAME: tiled.unroll = ["kept: it has a gpu.barrier", "kept: it has an annotation", "once: {{.*}} registers ({{.*}}) for 2 blocks; 2 would take {{.*}} registers"]
    gpu.func @kept(%a: memref<64xf64>, %n: index) kernel
        attributes {known_block_size = array<i32: 1024, 1, 1>, nvvm.maxnreg = 24 : i64} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %x = gpu.thread_id x
      scf.for %i = %c0 to %n step %c1 {
        %v = memref.load %a[%x] : memref<64xf64>
        gpu.barrier
        memref.store %v, %a[%i] : memref<64xf64>
      }
      scf.for %i = %c0 to %n step %c1 {
        %v = memref.load %a[%i] : memref<64xf64>
        memref.store %v, %a[%x] : memref<64xf64>
      } {llvm.loop_annotation = #llvm.loop_annotation<licm = <disable = true>>}
      scf.for %i = %c0 to %n step %c1 {
        %i1 = arith.addi %i, %c1 : index
        %i2 = arith.addi %i, %c2 : index
        %v0 = memref.load %a[%i] : memref<64xf64>
        %v1 = memref.load %a[%i1] : memref<64xf64>
        %v2 = memref.load %a[%i2] : memref<64xf64>
        %s0 = arith.addf %v0, %v1 : f64
        %s1 = arith.addf %s0, %v2 : f64
        %s2 = arith.mulf %s1, %v0 : f64
        memref.store %s2, %a[%i] : memref<64xf64>
        %p1 = arith.mulf %s1, %v1 : f64
        memref.store %p1, %a[%i1] : memref<64xf64>
      }
      gpu.return
    }

    // The number of threads is not known.
    // CHECK-LABEL: gpu.func @threads
    // CHECK-NOT: tiled.unroll
    gpu.func @threads(%a: memref<64xf64>, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %x = gpu.thread_id x
      scf.for %i = %c0 to %n step %c1 {
        %v = memref.load %a[%i] : memref<64xf64>
        memref.store %v, %a[%x] : memref<64xf64>
      }
      gpu.return
    }
  }
}
