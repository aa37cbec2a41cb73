// RUN: stencil-opt %s --pass-pipeline='builtin.module(vectorize-copies)' | FileCheck %s
// The shared buffer behind a view is aligned.

// CHECK: workgroup(%{{.*}} {llvm.align = 16 : i64})
// CHECK: vector.store
!s = memref<256xf32, #gpu.address_space<workgroup>>
!q = memref<16x16xf32, strided<[16, 1]>, #gpu.address_space<workgroup>>
module {
  gpu.module @other {
    gpu.func @cast(%a: memref<512xf32> {llvm.align = 16 : i64}, %b: memref<512xf32>)
        workgroup(%s : !s) kernel attributes {known_block_size = array<i32: 16, 4, 1>} {
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c12 = arith.constant 12 : index
      %c16 = arith.constant 16 : index
      %x = gpu.thread_id x
      %y = gpu.thread_id y
      %y1 = arith.addi %y, %c4 : index
      %y2 = arith.addi %y, %c8 : index
      %y3 = arith.addi %y, %c12 : index
      %q = memref.reinterpret_cast %s to offset: [0], sizes: [16, 16], strides: [16, 1] : !s to !q
      %A = memref.reinterpret_cast %a to offset: [0], sizes: [16, 16], strides: [16, 1] : memref<512xf32> to memref<16x16xf32, strided<[16, 1]>>
      %v0 = memref.load %A[%y, %x] : memref<16x16xf32, strided<[16, 1]>>
      memref.store %v0, %q[%y, %x] : !q
      %v1 = memref.load %A[%y1, %x] : memref<16x16xf32, strided<[16, 1]>>
      memref.store %v1, %q[%y1, %x] : !q
      %v2 = memref.load %A[%y2, %x] : memref<16x16xf32, strided<[16, 1]>>
      memref.store %v2, %q[%y2, %x] : !q
      %v3 = memref.load %A[%y3, %x] : memref<16x16xf32, strided<[16, 1]>>
      memref.store %v3, %q[%y3, %x] : !q
      gpu.barrier
      %r = memref.load %q[%x, %y] : !q
      memref.store %r, %b[%x] : memref<512xf32>
      gpu.return
    }
  }
}
