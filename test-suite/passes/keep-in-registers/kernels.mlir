// RUN: stencil-opt %s --pass-pipeline='builtin.module(keep-in-registers)' | FileCheck %s
// RUN: stencil-opt %s --pass-pipeline='builtin.module(keep-in-registers)' -o %t.once
// RUN: stencil-opt %s --pass-pipeline='builtin.module(keep-in-registers,keep-in-registers)' -o %t.twice
// RUN: diff %t.once %t.twice
// Kernels by hand.

module {
  gpu.module @other {
    // A sum leaves two loops, and what the inner loop's bounds need leaves with it. An element that is stored before it is
    // loaded starts with nothing.
    // CHECK-LABEL: gpu.func @sums(
    // CHECK: %[[INNER:.*]] = arith.cmpi slt, %c0, %arg3
    // CHECK-NEXT: scf.if %[[INNER]] {
    // CHECK-NEXT: %[[OUTER:.*]] = arith.cmpi slt, %c0, %arg2
    // CHECK-NEXT: scf.if %[[OUTER]] {
    // CHECK-NEXT: %[[FIRST:.*]] = memref.load %arg0[%arg4]
    // CHECK-NEXT: %[[LAST:.*]] = scf.for {{.*}} iter_args(%[[SUM:.*]] = %[[FIRST]]) -> (f32) {
    // CHECK-NEXT: %[[NEXT:.*]] = scf.for {{.*}} iter_args(%[[OWN:.*]] = %[[SUM]]) -> (f32) {
    // CHECK-NEXT: memref.load %arg1
    // CHECK-NEXT: arith.addf %[[OWN]]
    // CHECK-NEXT: scf.yield
    // CHECK: scf.yield %[[NEXT]]
    // CHECK: memref.store %[[LAST]], %arg0[%arg4]
    // CHECK-NOT: memref.store
    // CHECK: %[[NONE:.*]] = arith.constant 0.000000e+00
    // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[NONE]])
    // CHECK-NOT: memref.store
    // CHECK: scf.yield
    // CHECK-NEXT: }
    // CHECK-NEXT: memref.store
    gpu.func @sums(%c: memref<64xf32> {llvm.noalias}, %a: memref<64x64xf32>, %n: index, %m: index, %i: index) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      scf.for %k = %c0 to %n step %c1 {
        scf.for %l = %c0 to %m step %c1 {
          %0 = memref.load %c[%i] : memref<64xf32>
          %1 = memref.load %a[%k, %l] : memref<64x64xf32>
          %2 = arith.addf %0, %1 : f32
          memref.store %2, %c[%i] : memref<64xf32>
        }
      }
      scf.for %k = %c0 to %c8 step %c1 {
        %0 = memref.load %a[%k, %i] : memref<64x64xf32>
        memref.store %0, %c[%i] : memref<64xf32>
      }
      gpu.return
    }

    // The other access of the array is of a later row, in a view whose rows lie one behind the other. The loop carries a
    // value already, and its annotation stays.
    // CHECK-LABEL: gpu.func @rows(
    // CHECK: %[[RUNS:.*]] = arith.cmpi slt, %[[FROM:.*]], %arg2
    // CHECK-NEXT: %[[SUMS:.*]] = scf.if %[[RUNS]] -> (i32) {
    // CHECK-NEXT: %[[FIRST:.*]] = memref.load %{{.*}}[%arg4, %arg3]
    // CHECK-NEXT: %[[LAST:.*]]:2 = scf.for %[[L:.*]] = %[[FROM]] to %arg2 {{.*}} iter_args(%{{.*}} = %c7_i32, %[[SUM:.*]] = %[[FIRST]]) -> (i32, f32) {
    // CHECK-NEXT: memref.load %{{.*}}[%[[L]], %arg3]
    // CHECK: } {by_hand}
    // CHECK-NEXT: memref.store %[[LAST]]#1, %{{.*}}[%arg4, %arg3]
    // CHECK-NEXT: scf.yield %[[LAST]]#0
    // CHECK: scf.yield %c7_i32
    // CHECK: memref.store %[[SUMS]], %arg1
    gpu.func @rows(%b: memref<f32>, %out: memref<1xi32> {llvm.noalias}, %n: index, %j: index, %i: index) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %seven = arith.constant 7 : i32
      %all = memref.reinterpret_cast %b to offset: [0], sizes: [%n, %n], strides: [%n, 1] : memref<f32> to memref<?x?xf32, strided<[?, 1]>>
      %from = affine.apply affine_map<(d) -> (d + 1)>(%i)
      %last = scf.for %l = %from to %n step %c1 iter_args(%count = %seven) -> i32 {
        %0 = memref.load %all[%i, %j] : memref<?x?xf32, strided<[?, 1]>>
        %1 = memref.load %all[%l, %j] : memref<?x?xf32, strided<[?, 1]>>
        %2 = arith.addf %0, %1 : f32
        memref.store %2, %all[%i, %j] : memref<?x?xf32, strided<[?, 1]>>
        %3 = arith.addi %count, %seven : i32
        scf.yield %3 : i32
      } {by_hand}
      memref.store %last, %out[%c0] : memref<1xi32>
      gpu.return
    }

    // A barrier, an access of the same row, an array that may be the other one, a condition, a place that moves, and
    // rows that may overlap.
    // CHECK-LABEL: gpu.func @stays(
    // CHECK-NOT: iter_args
    // CHECK: gpu.return
    gpu.func @stays(%a: memref<64xf32>, %b: memref<64xf32>, %v: memref<?x?xf32, strided<[?, 1]>>, %n: index, %i: index, %is: i1) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c9 = arith.constant 9 : index
      scf.for %k = %c0 to %n step %c1 {
        %0 = memref.load %a[%i] : memref<64xf32>
        gpu.barrier
        memref.store %0, %a[%i] : memref<64xf32>
      }
      scf.for %k = %i to %n step %c1 {
        %0 = memref.load %a[%i] : memref<64xf32>
        %1 = memref.load %a[%k] : memref<64xf32>
        %2 = arith.addf %0, %1 : f32
        memref.store %2, %a[%i] : memref<64xf32>
      }
      scf.for %k = %c0 to %n step %c1 {
        %0 = memref.load %b[%k] : memref<64xf32>
        memref.store %0, %a[%i] : memref<64xf32>
      }
      scf.for %k = %c0 to %n step %c1 {
        scf.if %is {
          %0 = memref.load %a[%i] : memref<64xf32>
          %1 = arith.addf %0, %0 : f32
          memref.store %1, %a[%i] : memref<64xf32>
        }
      }
      scf.for %k = %c0 to %n step %c1 {
        %0 = memref.load %a[%k] : memref<64xf32>
        %1 = arith.addf %0, %0 : f32
        memref.store %1, %a[%k] : memref<64xf32>
      }
      scf.for %k = %c1 to %c9 step %c1 {
        %0 = memref.load %v[%c0, %i] : memref<?x?xf32, strided<[?, 1]>>
        %1 = memref.load %v[%k, %i] : memref<?x?xf32, strided<[?, 1]>>
        %2 = arith.addf %0, %1 : f32
        memref.store %2, %v[%c0, %i] : memref<?x?xf32, strided<[?, 1]>>
      }
      gpu.return
    }
  }
}
