// RUN: stencil-opt %s --pass-pipeline='builtin.module(vectorize-copies)' -o %t.after
// RUN: stencil-opt %s -o %t.before
// RUN: diff %t.before %t.after
// Copies of which no vectors can be made, or of which that is not known.

!g = memref<128xf64>
!s = memref<128xf64, #gpu.address_space<workgroup>>
!odd = memref<8x33xf32, #gpu.address_space<workgroup>>

module {
  gpu.module @other {
    // The number of threads is not known.
    gpu.func @threads(%a: !g {llvm.align = 16 : i64}) workgroup(%s : !s) kernel {
      %c64 = arith.constant 64 : index
      %x = gpu.thread_id x
      %x1 = arith.addi %x, %c64 : index
      %v0 = memref.load %a[%x] : !g
      %v1 = memref.load %a[%x1] : !g
      memref.store %v0, %s[%x] : !s
      memref.store %v1, %s[%x1] : !s
      gpu.return
    }

    // A value is used by the thread that loaded it, too.
    gpu.func @used(%a: !g {llvm.align = 16 : i64}, %b: !g {llvm.noalias}) workgroup(%s : !s) kernel
        attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c64 = arith.constant 64 : index
      %x = gpu.thread_id x
      %x1 = arith.addi %x, %c64 : index
      %v0 = memref.load %a[%x] : !g
      %v1 = memref.load %a[%x1] : !g
      memref.store %v0, %s[%x] : !s
      memref.store %v1, %s[%x1] : !s
      gpu.barrier
      memref.store %v0, %b[%x] : !g
      gpu.return
    }

    // A thread reads its own element without a barrier.
    gpu.func @own(%a: !g {llvm.align = 16 : i64}, %b: !g) workgroup(%s : !s) kernel
        attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c64 = arith.constant 64 : index
      %x = gpu.thread_id x
      %x1 = arith.addi %x, %c64 : index
      %v0 = memref.load %a[%x] : !g
      %v1 = memref.load %a[%x1] : !g
      memref.store %v0, %s[%x] : !s
      memref.store %v1, %s[%x1] : !s
      %r = memref.load %s[%x] : !s
      gpu.barrier
      memref.store %r, %b[%x] : !g
      gpu.return
    }

    // A thread stores its element of an array that may be the copied one.
    gpu.func @stored(%v: f64, %a: !g {llvm.align = 16 : i64}, %b: !g) workgroup(%s : !s) kernel
        attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c64 = arith.constant 64 : index
      %x = gpu.thread_id x
      %x1 = arith.addi %x, %c64 : index
      memref.store %v, %b[%x] : !g
      %v0 = memref.load %a[%x] : !g
      %v1 = memref.load %a[%x1] : !g
      memref.store %v0, %s[%x] : !s
      memref.store %v1, %s[%x1] : !s
      gpu.return
    }

    // Some threads only.
    gpu.func @some(%a: !g {llvm.align = 16 : i64}) workgroup(%s : !s) kernel
        attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c32 = arith.constant 32 : index
      %c64 = arith.constant 64 : index
      %x = gpu.thread_id x
      %x1 = arith.addi %x, %c64 : index
      %is = arith.cmpi ult, %x, %c32 : index
      scf.if %is {
        %v0 = memref.load %a[%x] : !g
        %v1 = memref.load %a[%x1] : !g
        memref.store %v0, %s[%x] : !s
        memref.store %v1, %s[%x1] : !s
      }
      gpu.return
    }

    // Every other element; the second half before the first; an odd beginning; one element alone.
    gpu.func @addresses(%a: memref<512xf64> {llvm.align = 16 : i64}, %n: index)
        workgroup(%s : !s, %t : !s, %u : !s, %w : !s) kernel
        attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c64 = arith.constant 64 : index
      %x = gpu.thread_id x
      %x1 = arith.addi %x, %c64 : index
      %e0 = arith.muli %x, %c2 : index
      %e1 = arith.muli %x1, %c2 : index
      %v0 = memref.load %a[%e0] : memref<512xf64>
      %v1 = memref.load %a[%e1] : memref<512xf64>
      memref.store %v0, %s[%x] : !s
      memref.store %v1, %s[%x1] : !s
      %w0 = memref.load %a[%x1] : memref<512xf64>
      %w1 = memref.load %a[%x] : memref<512xf64>
      memref.store %w0, %t[%x] : !s
      memref.store %w1, %t[%x1] : !s
      %o0 = arith.addi %x, %c1 : index
      %o1 = arith.addi %x1, %c1 : index
      %u0 = memref.load %a[%o0] : memref<512xf64>
      %u1 = memref.load %a[%o1] : memref<512xf64>
      memref.store %u0, %u[%x] : !s
      memref.store %u1, %u[%x1] : !s
      %z0 = memref.load %a[%x] : memref<512xf64>
      memref.store %z0, %w[%x] : !s
      gpu.return
    }

    // Both elements of a thread go to one place, where the second one stays.
    gpu.func @twice(%a: !g {llvm.align = 16 : i64}) workgroup(%s : !s) kernel
        attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c64 = arith.constant 64 : index
      %x = gpu.thread_id x
      %x1 = arith.addi %x, %c64 : index
      %y = arith.remui %x, %c64 : index
      %y1 = arith.remui %x1, %c64 : index
      %v0 = memref.load %a[%x] : !g
      %v1 = memref.load %a[%x1] : !g
      memref.store %v0, %s[%y] : !s
      memref.store %v1, %s[%y1] : !s
      gpu.return
    }

    // Rows of 33 words.
    gpu.func @odd(%a: memref<8x32xf32> {llvm.align = 16 : i64}) workgroup(%s : !odd) kernel
        attributes {known_block_size = array<i32: 32, 2, 1>} {
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c6 = arith.constant 6 : index
      %x = gpu.thread_id x
      %y = gpu.thread_id y
      %y1 = arith.addi %y, %c2 : index
      %y2 = arith.addi %y, %c4 : index
      %y3 = arith.addi %y, %c6 : index
      %v0 = memref.load %a[%y, %x] : memref<8x32xf32>
      %v1 = memref.load %a[%y1, %x] : memref<8x32xf32>
      %v2 = memref.load %a[%y2, %x] : memref<8x32xf32>
      %v3 = memref.load %a[%y3, %x] : memref<8x32xf32>
      memref.store %v0, %s[%y, %x] : !odd
      memref.store %v1, %s[%y1, %x] : !odd
      memref.store %v2, %s[%y2, %x] : !odd
      memref.store %v3, %s[%y3, %x] : !odd
      gpu.return
    }
  }
}
