// RUN: stencil-opt %s --pass-pipeline='builtin.module(lower-affine-nest,gpu.module(canonicalize{top-down=false},cse),hoist-guards)' | FileCheck %s
// RUN: stencilc %s --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: stencilc run %s --target sim --check --size N=300 --size T=9 --in x=random:1 --in y=random:2
// RUN: stencilc run %s --target sim --check --size N=300 --size T=0 --in x=random:1 --in y=random:2
// The time loop is the outer one. Each thread loads its elements once and stores one once, outside of all loops.
// CHECK: scf.if
// CHECK-NEXT: scf.for
// CHECK-NEXT: memref.load
// PTX: ld.global
// PTX: ld.global
// PTX-NOT: ld.global
// PTX: st.global
// PTX-NOT: st.global
func.func @powers(
    %y: memref<?xf32> {stencil.name = "y", stencil.extents = ["N"]},
    %x: memref<?xf32> {stencil.name = "x", stencil.extents = ["N"]},
    %n: index {stencil.name = "N"}, %t: index {stencil.name = "T"}) {
  affine.for %k = 0 to %t {
    affine.for %i = 0 to %n {
      %0 = affine.load %y[%i] : memref<?xf32>
      %1 = affine.load %x[%i] : memref<?xf32>
      %2 = arith.mulf %0, %1 : f32
      affine.store %2, %y[%i] : memref<?xf32>
    }
  }
  return
}
