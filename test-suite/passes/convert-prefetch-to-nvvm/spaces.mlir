// RUN: stencil-opt %s --pass-pipeline='builtin.module(convert-prefetch-to-nvvm)' | FileCheck %s
// Generic and global memory have prefetches into the level 2 cache; shared memory has none.
// CHECK: #nvvm
// CHECK-NEXT: llvm.func @f
// CHECK-NEXT: nvvm.prefetch level = L2, %arg0 : !llvm.ptr
// CHECK-NEXT: nvvm.prefetch level = L2, %arg1 : !llvm.ptr<1>
// CHECK-NEXT: llvm.return
gpu.module @kernels [#nvvm.target<chip = "sm_90">] {
  llvm.func @f(%generic: !llvm.ptr, %global: !llvm.ptr<1>, %shared: !llvm.ptr<3>) {
    "llvm.intr.prefetch"(%generic) <{cache = 1 : i32, hint = 2 : i32, rw = 0 : i32}> : (!llvm.ptr) -> ()
    "llvm.intr.prefetch"(%global) <{cache = 1 : i32, hint = 3 : i32, rw = 0 : i32}> : (!llvm.ptr<1>) -> ()
    "llvm.intr.prefetch"(%shared) <{cache = 1 : i32, hint = 2 : i32, rw = 0 : i32}> : (!llvm.ptr<3>) -> ()
    llvm.return
  }
}
