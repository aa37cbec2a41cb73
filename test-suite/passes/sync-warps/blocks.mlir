// RUN: stencil-opt %s --pass-pipeline='builtin.module(sync-warps)' | FileCheck %s
// A block of one warp synchronises its lanes; a larger one, and one of unknown size, keep their barriers.
// CHECK-LABEL: llvm.func @warp
// CHECK-NEXT: %[[ALL:.*]] = llvm.mlir.constant(-1 : i32) : i32
// CHECK-NEXT: nvvm.bar.warp.sync %[[ALL]] : i32
// CHECK-NEXT: llvm.return
// CHECK-LABEL: llvm.func @warps
// CHECK-NEXT: nvvm.barrier0
// CHECK-LABEL: llvm.func @unknown
// CHECK-NEXT: nvvm.barrier0
gpu.module @kernels {
  llvm.func @warp() attributes {gpu.known_block_size = array<i32: 32, 1, 1>} {
    nvvm.barrier0
    llvm.return
  }
  llvm.func @warps() attributes {gpu.known_block_size = array<i32: 32, 2, 1>} {
    nvvm.barrier0
    llvm.return
  }
  llvm.func @unknown() {
    nvvm.barrier0
    llvm.return
  }
}
