// RUN: stencilc run %s --target sim --check --size N=70 --size T=9 --in Y=random:1 --in F=random:2 --in X=random:3 --fp-contract=off
// RUN: stencilc run %s --target sim --check --size N=70 --size T=0 --in Y=random:1 --in F=random:2 --in X=random:3 --fp-contract=off
// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-affine-nest{threads=32 per-thread=1 time=2},lower-affine-nest,gpu.module(canonicalize{top-down=false},cse))' | FileCheck %s
// The loop over t changes the copy of X, and not that of F: F is copied once, before the loop. The loop over u changes
// neither F nor Z, and has no barrier.
// CHECK: workgroup(%[[F:.*]] : memref<32x5xf32, #gpu.address_space<workgroup>>{{.*}}, %[[X:.*]] : memref<2x5xf32, #gpu.address_space<workgroup>>{{.*}}, %[[OTHER:.*]] : memref<32x5xf32
// CHECK: gpu.barrier
// CHECK: memref.store {{.*}}, %[[F]][
// CHECK: gpu.barrier
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %{{.*}} step %c2
// CHECK-NEXT: gpu.barrier
// CHECK-NOT: memref.store {{.*}}, %[[F]][
// CHECK: memref.store {{.*}}, %[[X]][
// CHECK: gpu.barrier
// CHECK: memref.load %[[F]][
// CHECK: gpu.barrier
// CHECK: gpu.barrier
// CHECK: gpu.barrier
// CHECK: memref.store {{.*}}, %[[OTHER]][
// CHECK: gpu.barrier
// CHECK-NOT: gpu.barrier
func.func @still(
    %y: memref<?xf32> {stencil.name = "Y", stencil.extents = ["N"]},
    %f: memref<?x5xf32> {stencil.name = "F", stencil.extents = ["N"]},
    %x: memref<?x5xf32> {stencil.name = "X", stencil.extents = ["T"]},
    %n: index {stencil.name = "N"}, %t: index {stencil.name = "T"}) {
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %t {
      affine.for %l = 0 to 5 {
        %0 = affine.load %f[%i, %l] : memref<?x5xf32>
        %1 = affine.load %x[%j, %l] : memref<?x5xf32>
        %2 = arith.mulf %0, %1 : f32
        %3 = affine.load %y[%i] : memref<?xf32>
        %4 = arith.addf %3, %2 : f32
        affine.store %4, %y[%i] : memref<?xf32>
      }
    }
    affine.for %u = 0 to 3 {
      affine.for %l = 0 to 5 {
        %0 = affine.load %f[%i, %l] : memref<?x5xf32>
        %1 = affine.load %y[%i] : memref<?xf32>
        %2 = arith.subf %1, %0 : f32
        affine.store %2, %y[%i] : memref<?xf32>
      }
    }
  }
  return
}
