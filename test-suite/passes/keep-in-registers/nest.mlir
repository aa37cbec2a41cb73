// RUN: stencil-opt %s --pass-pipeline='builtin.module(lower-affine-nest,gpu.module(canonicalize{top-down=false},cse))' | FileCheck %s --check-prefix=BEFORE
// RUN: stencilc %s --emit=gpu | FileCheck %s
// RUN: stencilc %s --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: stencilc run %s --target sim --check --size N=37 --size M=50 --in B=random:1 --in L=random:2 --fp-contract=off
// RUN: stencilc run %s --target sim --check --size N=1 --size M=1 --in B=random:1 --in L=random:2 --fp-contract=off
// RUN: stencilc run %s --passes='builtin.module(lower-affine-nest,gpu.module(canonicalize{top-down=false},cse))' --target sim --report --size N=37 --size M=50 --in B=random:1 --in L=random:2 2>&1 | FileCheck %s --check-prefix=WITHOUT
// RUN: stencilc run %s --passes='builtin.module(lower-affine-nest,gpu.module(canonicalize{top-down=false},cse),keep-in-registers)' --target sim --report --size N=37 --size M=50 --in B=random:1 --in L=random:2 2>&1 | FileCheck %s --check-prefix=WITH
// Each thread adds to its own row of B what later rows have. Alone, LLVM keeps the load and the store: it does not know
// that the rows differ.
// WITHOUT: sectors read (ideal) 19296
// WITHOUT: sectors written (ideal) 8982
// WITH: sectors read (ideal) 10800
// WITH: sectors written (ideal) 486
// BEFORE: scf.for
// BEFORE: scf.for
// BEFORE-COUNT-3: memref.load
// BEFORE: memref.store
// CHECK: scf.for
// CHECK: scf.if
// CHECK-NEXT: memref.load
// CHECK-NEXT: scf.for {{.*}} iter_args
// CHECK-COUNT-2: memref.load
// CHECK-NOT: memref.store
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: memref.store
// PTX: ld.global.nc
// PTX: bra
// PTX-NEXT: st.global
func.func @upward(
    %B: memref<?x?xf64> {stencil.name = "B", stencil.extents = ["N", "M"]},
    %L: memref<?x?xf64> {stencil.name = "L", stencil.extents = ["N", "N"]},
    %n: index {stencil.name = "N"}, %m: index {stencil.name = "M"}) {
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      affine.for %l = affine_map<(d) -> (d + 1)>(%i) to %n {
        %0 = affine.load %B[%i, %j] : memref<?x?xf64>
        %1 = affine.load %L[%l, %i] : memref<?x?xf64>
        %2 = affine.load %B[%l, %j] : memref<?x?xf64>
        %3 = arith.mulf %1, %2 : f64
        %4 = arith.addf %0, %3 : f64
        affine.store %4, %B[%i, %j] : memref<?x?xf64>
      }
    }
  }
  return
}
