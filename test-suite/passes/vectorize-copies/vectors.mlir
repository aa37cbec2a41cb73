// RUN: stencil-opt %s --pass-pipeline='builtin.module(vectorize-copies,gpu.module(canonicalize,cse))' | FileCheck %s
// RUN: stencil-opt %s --pass-pipeline='builtin.module(vectorize-copies)' -o %t.once
// RUN: stencil-opt %s --pass-pipeline='builtin.module(vectorize-copies,vectorize-copies)' -o %t.twice
// RUN: diff %t.once %t.twice
// Copies that become copies of vectors.

!s = memref<64x32xf32, #gpu.address_space<workgroup>>
!t = memref<32x64xf32, #gpu.address_space<workgroup>>
!d = memref<128xf64, #gpu.address_space<workgroup>>

module {
  gpu.module @other {
    // The array's alignment is stated, its rows are: no condition.
    // CHECK-LABEL: gpu.func @stated
    // CHECK-SAME: workgroup(%[[S:.*]] : memref<64x32xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
    // CHECK-NOT: scf.if
    // CHECK: %[[X:.*]] = gpu.thread_id x
    // CHECK: arith.muli %[[X]], %c4
    // CHECK: %[[V:.*]] = vector.load %arg0[%[[ROW:.*]], %[[COLUMN:.*]]] {alignment = 16 : i64} : memref<64x32xf32>, vector<4xf32>
    // CHECK-NOT: memref.store
    // CHECK: vector.store %[[V]], %[[S]][%[[ROW]], %[[COLUMN]]] {alignment = 16 : i64}
    // CHECK-NEXT: gpu.barrier
    // CHECK: memref.load %[[S]]
    gpu.func @stated(%a: memref<64x32xf32> {llvm.align = 16 : i64}, %b: memref<64x32xf32>)
        workgroup(%s : !s) kernel attributes {known_block_size = array<i32: 32, 16, 1>} {
      %c16 = arith.constant 16 : index
      %c32 = arith.constant 32 : index
      %c48 = arith.constant 48 : index
      %x = gpu.thread_id x
      %y = gpu.thread_id y
      %y1 = arith.addi %y, %c16 : index
      %y2 = arith.addi %y, %c32 : index
      %y3 = arith.addi %y, %c48 : index
      %v0 = memref.load %a[%y, %x] : memref<64x32xf32>
      memref.store %v0, %s[%y, %x] : !s
      %v1 = memref.load %a[%y1, %x] : memref<64x32xf32>
      memref.store %v1, %s[%y1, %x] : !s
      %v2 = memref.load %a[%y2, %x] : memref<64x32xf32>
      memref.store %v2, %s[%y2, %x] : !s
      %v3 = memref.load %a[%y3, %x] : memref<64x32xf32>
      memref.store %v3, %s[%y3, %x] : !s
      gpu.barrier
      %r = memref.load %s[%x, %y] : !s
      memref.store %r, %b[%x, %y] : memref<64x32xf32>
      gpu.return
    }

    // A row's length and the array's address are known at run time: the other side has the old copy.
    // CHECK-LABEL: gpu.func @guarded
    // CHECK-SAME: %[[A:.*]]: memref<f64>, %[[N:.*]]: index
    // CHECK: %[[ADDRESS:.*]] = memref.extract_aligned_pointer_as_index %[[A]]
    // CHECK: arith.remui %[[ADDRESS]], %c16
    // CHECK: %[[ALIGNED:.*]] = arith.andi
    // CHECK: scf.if %[[ALIGNED]] {
    // CHECK: %[[V:.*]] = scf.if %{{.*}} -> (vector<2xf64>)
    // CHECK-NEXT: vector.load {{.*}} {alignment = 16 : i64} {{.*}}, vector<2xf64>
    // CHECK: vector.store %[[V]], {{.*}}, vector<2xf64>
    // CHECK-NEXT: else
    // CHECK-COUNT-2: memref.load
    // CHECK-COUNT-2: memref.store
    // CHECK: gpu.barrier
    gpu.func @guarded(%a: memref<f64>, %n: index, %b: memref<128xf64>)
        workgroup(%s : !d) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c64 = arith.constant 64 : index
      %zero = arith.constant 0.0 : f64
      %all = memref.reinterpret_cast %a to offset: [0], sizes: [%n, %n], strides: [%n, 1] : memref<f64> to memref<?x?xf64, strided<[?, 1]>>
      %x = gpu.thread_id x
      %row = gpu.block_id x
      %x1 = arith.addi %x, %c64 : index
      %in0 = arith.cmpi ult, %x, %n : index
      %v0 = scf.if %in0 -> f64 {
        %v = memref.load %all[%row, %x] : memref<?x?xf64, strided<[?, 1]>>
        scf.yield %v : f64
      } else {
        scf.yield %zero : f64
      }
      %in1 = arith.cmpi ult, %x1, %n : index
      %v1 = scf.if %in1 -> f64 {
        %v = memref.load %all[%row, %x1] : memref<?x?xf64, strided<[?, 1]>>
        scf.yield %v : f64
      } else {
        scf.yield %zero : f64
      }
      memref.store %v0, %s[%x] : !d
      memref.store %v1, %s[%x1] : !d
      gpu.barrier
      %r = memref.load %s[%row] : !d
      memref.store %r, %b[%x] : memref<128xf64>
      gpu.return
    }

    // Neighbours go to a column: loads alone.
    // CHECK-LABEL: gpu.func @column
    // CHECK: %[[V:.*]] = vector.load %{{.*}} : memref<64x32xf32>, vector<4xf32>
    // CHECK-NOT: vector.store
    // CHECK-COUNT-4: memref.store {{.*}} : memref<32x64xf32
    // CHECK-NEXT: gpu.barrier
    gpu.func @column(%a: memref<64x32xf32> {llvm.align = 16 : i64}, %b: memref<64x32xf32>)
        workgroup(%s : !t) kernel attributes {known_block_size = array<i32: 32, 16, 1>} {
      %c16 = arith.constant 16 : index
      %c32 = arith.constant 32 : index
      %c48 = arith.constant 48 : index
      %x = gpu.thread_id x
      %y = gpu.thread_id y
      %y1 = arith.addi %y, %c16 : index
      %y2 = arith.addi %y, %c32 : index
      %y3 = arith.addi %y, %c48 : index
      %v0 = memref.load %a[%y, %x] : memref<64x32xf32>
      %v1 = memref.load %a[%y1, %x] : memref<64x32xf32>
      %v2 = memref.load %a[%y2, %x] : memref<64x32xf32>
      %v3 = memref.load %a[%y3, %x] : memref<64x32xf32>
      memref.store %v0, %s[%x, %y] : !t
      memref.store %v1, %s[%x, %y1] : !t
      memref.store %v2, %s[%x, %y2] : !t
      memref.store %v3, %s[%x, %y3] : !t
      gpu.barrier
      %r = memref.load %s[%x, %y] : !t
      memref.store %r, %b[%y, %x] : memref<64x32xf32>
      gpu.return
    }

    // A loop carries the next tile.
    // CHECK-LABEL: gpu.func @ahead
    // CHECK: vector.load
    // CHECK: scf.for
    // CHECK: gpu.barrier
    // CHECK-NEXT: vector.from_elements
    // CHECK-NEXT: vector.store
    // CHECK-NEXT: gpu.barrier
    // CHECK: vector.load
    // CHECK: gpu.barrier
    // CHECK-NEXT: vector.from_elements
    // CHECK-NEXT: vector.store
    // CHECK-NEXT: gpu.barrier
    gpu.func @ahead(%a: memref<64x128xf64> {llvm.noalias, llvm.readonly, llvm.align = 16 : i64}, %b: memref<128xf64>)
        workgroup(%s : !d) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c63 = arith.constant 63 : index
      %c64 = arith.constant 64 : index
      %x = gpu.thread_id x
      %x1 = arith.addi %x, %c64 : index
      %i0 = memref.load %a[%c0, %x] : memref<64x128xf64>
      %i1 = memref.load %a[%c0, %x1] : memref<64x128xf64>
      %l0, %l1 = scf.for %i = %c0 to %c63 step %c1 iter_args(%p0 = %i0, %p1 = %i1) -> (f64, f64) {
        gpu.barrier
        memref.store %p0, %s[%x] : !d
        memref.store %p1, %s[%x1] : !d
        gpu.barrier
        %next = arith.addi %i, %c1 : index
        %v0 = memref.load %a[%next, %x] : memref<64x128xf64>
        %v1 = memref.load %a[%next, %x1] : memref<64x128xf64>
        %r = memref.load %s[%i] : !d
        memref.store %r, %b[%x] : memref<128xf64>
        scf.yield %v0, %v1 : f64, f64
      }
      gpu.barrier
      memref.store %l0, %s[%x] : !d
      memref.store %l1, %s[%x1] : !d
      gpu.barrier
      %r = memref.load %s[%c63] : !d
      memref.store %r, %b[%x] : memref<128xf64>
      gpu.return
    }
  }
}
