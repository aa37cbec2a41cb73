// RUN: stencil-opt %s --pass-pipeline='builtin.module(vectorize-copies)' | FileCheck %s
// No 16 bytes hold a power of two of elements of 24 bits.

// CHECK-NOT: vector
module { gpu.module @other {
gpu.func @five(%a: memref<512xi24> {llvm.align = 16 : i64}, %b: memref<512xi24>) workgroup(%s : memref<320xi24, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
%x = gpu.thread_id x
%c0 = arith.constant 0 : index
%x0 = arith.addi %x, %c0 : index
%v0 = memref.load %a[%x0] : memref<512xi24>
memref.store %v0, %s[%x0] : memref<320xi24, #gpu.address_space<workgroup>>
%c1 = arith.constant 64 : index
%x1 = arith.addi %x, %c1 : index
%v1 = memref.load %a[%x1] : memref<512xi24>
memref.store %v1, %s[%x1] : memref<320xi24, #gpu.address_space<workgroup>>
%c2 = arith.constant 128 : index
%x2 = arith.addi %x, %c2 : index
%v2 = memref.load %a[%x2] : memref<512xi24>
memref.store %v2, %s[%x2] : memref<320xi24, #gpu.address_space<workgroup>>
%c3 = arith.constant 192 : index
%x3 = arith.addi %x, %c3 : index
%v3 = memref.load %a[%x3] : memref<512xi24>
memref.store %v3, %s[%x3] : memref<320xi24, #gpu.address_space<workgroup>>
%c4 = arith.constant 256 : index
%x4 = arith.addi %x, %c4 : index
%v4 = memref.load %a[%x4] : memref<512xi24>
memref.store %v4, %s[%x4] : memref<320xi24, #gpu.address_space<workgroup>>
gpu.barrier
%r = memref.load %s[%c1] : memref<320xi24, #gpu.address_space<workgroup>>
memref.store %r, %b[%x] : memref<512xi24>
gpu.return
}}}
