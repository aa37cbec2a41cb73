// RUN: stencil-opt %s --pass-pipeline='builtin.module(lower-peer)' | FileCheck %s
// RUN: stencil-opt %s --pass-pipeline='builtin.module(lower-peer{index-bitwidth=32})' | FileCheck %s --check-prefix=NARROW
// RUN: stencilc %S/../../programs/smith-waterman.stencil | FileCheck %s --check-prefix=PTX
// A wait is a loop around an acquiring load at device scope, a signal a releasing store. Flags lie 64
// cells apart. A wait in vain makes a record behind them.

// NARROW: unrealized_conversion_cast {{.*}} to !llvm.struct<(ptr, ptr, i32,
// PTX: ld.acquire.gpu.global.b32
// PTX: nanosleep.u32
// PTX: atom.{{.*}}exch.b32
// PTX: st.release.gpu.global.b32
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK: gpu.func @relay(%[[flags:.+]]: memref<?xi32, strided<[1]>>, %[[count:.+]]: i32)
    gpu.func @relay(%flags: memref<?xi32, strided<[1]>>, %count: i32) kernel {
      %block = gpu.block_id x
      // CHECK: %[[memref:.+]] = builtin.unrealized_conversion_cast %[[flags]] {{.*}} to !llvm.struct<(ptr, ptr, i64,
      // CHECK: %[[place:.+]] = arith.muli %{{.*}}, %c64_i64
      // CHECK: %[[base:.+]] = llvm.extractvalue %[[memref]][1]
      // CHECK: %[[element:.+]] = llvm.getelementptr %[[base]][%[[place]]]
      // CHECK: %[[address:.+]] = llvm.addrspacecast %[[element]] : !llvm.ptr to !llvm.ptr<1>
      // CHECK: %[[wait:.+]]:2 = scf.while (%[[looks:.+]] = %c0_i32) : (i32) -> (i1, i32)
      // CHECK: %[[flag:.+]] = llvm.load %[[address]] atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
      // CHECK: %[[lead:.+]] = arith.subi %[[flag]], %[[count]] : i32
      // CHECK: %[[late:.+]] = arith.cmpi slt, %[[lead]], %c0_i32
      // CHECK: %[[patient:.+]] = arith.cmpi slt, %[[looks]], %[[most:c[0-9]+_i32]]
      // CHECK: %[[again:.+]] = arith.andi %[[late]], %[[patient]] : i1
      // CHECK: scf.condition(%[[again]]) %[[late]], %[[looks]]
      // CHECK: llvm.call_intrinsic "llvm.nvvm.nanosleep"
      // Another block may have given up.
      // CHECK: arith.addi
      // CHECK: %[[size:.+]] = llvm.extractvalue %{{.*}}[3, 0]
      // CHECK: llvm.load %{{.*}} atomic syncscope("device") monotonic
      // The record lies behind the flags.
      // CHECK: scf.if %[[wait]]#0
      // CHECK: %[[end:.+]] = llvm.extractvalue %{{.*}}[3, 0]
      // CHECK: arith.muli %[[end]], %c64_i64
      // CHECK: %[[state:.+]] = llvm.atomicrmw xchg %{{.*}}, %c2_i32 syncscope("device") monotonic
      // CHECK: arith.cmpi eq, %[[state]], %c0_i32
      // CHECK: llvm.intr.trap
      // CHECK: llvm.atomicrmw umin
      // CHECK: gpu.block_id x
      // CHECK-COUNT-2: llvm.store %{{.*}} atomic syncscope("device") monotonic
      "peer.wait"(%flags, %block, %count) : (memref<?xi32, strided<[1]>>, index, i32) -> ()
      // CHECK: llvm.store %[[count]], %{{.*}} atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
      "peer.signal"(%flags, %block, %count) : (memref<?xi32, strided<[1]>>, index, i32) -> ()
      gpu.return
    }
  }
}
