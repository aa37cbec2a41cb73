// RUN: stencil-opt %s --pass-pipeline='builtin.module(lower-peer)' | FileCheck %s
// RUN: stencil-opt %s --pass-pipeline='builtin.module(lower-peer{index-bitwidth=32})' | FileCheck %s --check-prefix=NARROW
// RUN: stencilc %S/../../programs/smith-waterman.stencil | FileCheck %s --check-prefix=PTX
// A wait is a loop around an acquiring load at device scope, a signal a releasing store.

// NARROW: unrealized_conversion_cast {{.*}} to !llvm.struct<(ptr, ptr, i32,
// PTX: ld.acquire.gpu.global.b32
// PTX: nanosleep.u32
// PTX: st.release.gpu.global.b32
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK: gpu.func @relay(%[[flags:.+]]: memref<?xi32, strided<[1]>>, %[[count:.+]]: i32)
    gpu.func @relay(%flags: memref<?xi32, strided<[1]>>, %count: i32) kernel {
      %block = gpu.block_id x
      // CHECK: %[[memref:.+]] = builtin.unrealized_conversion_cast %[[flags]] {{.*}} to !llvm.struct<(ptr, ptr, i64,
      // CHECK: %[[base:.+]] = llvm.extractvalue %[[memref]][1]
      // CHECK: %[[element:.+]] = llvm.getelementptr %[[base]]
      // CHECK: %[[address:.+]] = llvm.addrspacecast %[[element]] : !llvm.ptr to !llvm.ptr<1>
      // CHECK: scf.while
      // CHECK: %[[flag:.+]] = llvm.load %[[address]] atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
      // CHECK: %[[lead:.+]] = arith.subi %[[flag]], %[[count]] : i32
      // CHECK: %[[late:.+]] = arith.cmpi slt, %[[lead]], %c0_i32
      // CHECK: scf.condition(%[[late]])
      // CHECK: llvm.call_intrinsic "llvm.nvvm.nanosleep"
      "peer.wait"(%flags, %block, %count) : (memref<?xi32, strided<[1]>>, index, i32) -> ()
      // CHECK: llvm.store %[[count]], %{{.*}} atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
      "peer.signal"(%flags, %block, %count) : (memref<?xi32, strided<[1]>>, index, i32) -> ()
      gpu.return
    }
  }
}
