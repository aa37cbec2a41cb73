// RUN: stencil-opt %s --pass-pipeline='builtin.module(lower-peer)' | FileCheck %s
// RUN: stencilc %S/../../programs/smith-waterman.stencil --passes 'tile-wavefront{strategy=wavefront},grid-sync,tile-overlapped,lower-wavefront' | FileCheck %s --check-prefix=PTX
// An arrival is a fence at device scope and an addition; only the fence orders, in PTX too.

// PTX: fence.acq_rel.gpu
// PTX-NEXT: atom{{.*}}.global.add.u32
// PTX: ld.acquire.gpu.global.b32
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @meet(%flags: memref<?xi32, strided<[1]>>, %count: i32) kernel {
      %zero = arith.constant 0 : index
      // CHECK: llvm.fence syncscope("device") release
      // CHECK: %[[before:.+]] = llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("device") monotonic {alignment = 4 : i64} : !llvm.ptr<1>, i32
      %before = "peer.arrive"(%flags, %zero, %count) : (memref<?xi32, strided<[1]>>, index, i32) -> i32
      // CHECK: arith.addi %[[before]]
      %goal = arith.addi %before, %count : i32
      "peer.wait"(%flags, %zero, %goal) : (memref<?xi32, strided<[1]>>, index, i32) -> ()
      gpu.return
    }
  }
}
