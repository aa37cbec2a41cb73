// RUN: stencil-opt %s --pass-pipeline='builtin.module(hoist-guards)' | FileCheck %s
// RUN: stencil-opt %s --pass-pipeline='builtin.module(hoist-guards)' -o %t.once
// RUN: stencil-opt %s --pass-pipeline='builtin.module(hoist-guards,hoist-guards)' -o %t.twice
// RUN: diff %t.once %t.twice
// Kernels by hand.

module {
  gpu.module @other {
    // Two conditions leave two loops.
    // CHECK-LABEL: gpu.func @leaves
    // CHECK: scf.if %arg1 {
    // CHECK-NEXT: scf.if %arg2 {
    // CHECK-NEXT: scf.for
    // CHECK-NEXT: arith.addi
    // CHECK-NEXT: scf.for
    // CHECK-NEXT: memref.load
    // CHECK-NEXT: memref.store
    gpu.func @leaves(%a: memref<64xf32>, %one: i1, %other: i1, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      scf.for %t = %c0 to %n step %c1 {
        %next = arith.addi %t, %c1 : index
        scf.for %s = %c0 to %next step %c1 {
          scf.if %one {
            scf.if %other {
              %0 = memref.load %a[%c0] : memref<64xf32>
              memref.store %0, %a[%s] : memref<64xf32>
            }
          }
        }
      }
      gpu.return
    }

    // A condition of the loop, one with an else, a loop that carries a value, and one that stores
    // whatever the condition is.
    // CHECK-LABEL: gpu.func @stays
    // CHECK: scf.for
    // CHECK-NEXT: arith.cmpi
    // CHECK-NEXT: scf.if
    // CHECK: scf.for
    // CHECK-NEXT: scf.if
    // CHECK: } else {
    // CHECK: scf.for
    // CHECK-NEXT: scf.if
    // CHECK: scf.for
    // CHECK-NEXT: memref.store
    // CHECK-NEXT: scf.if
    gpu.func @stays(%a: memref<64xf32>, %one: i1, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %v = arith.constant 1.0 : f32
      scf.for %t = %c0 to %n step %c1 {
        %even = arith.cmpi slt, %t, %c1 : index
        scf.if %even {
          memref.store %v, %a[%t] : memref<64xf32>
        }
      }
      scf.for %t = %c0 to %n step %c1 {
        scf.if %one {
          memref.store %v, %a[%t] : memref<64xf32>
        } else {
          memref.store %v, %a[%c0] : memref<64xf32>
        }
      }
      %last = scf.for %t = %c0 to %n step %c1 iter_args(%before = %v) -> f32 {
        scf.if %one {
          memref.store %before, %a[%t] : memref<64xf32>
        }
        %more = arith.addf %before, %v : f32
        scf.yield %more : f32
      }
      memref.store %last, %a[%c0] : memref<64xf32>
      scf.for %t = %c0 to %n step %c1 {
        memref.store %v, %a[%t] : memref<64xf32>
        scf.if %one {
          memref.store %v, %a[%c0] : memref<64xf32>
        }
      }
      gpu.return
    }
  }
}
