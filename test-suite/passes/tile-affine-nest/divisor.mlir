// RUN: stencilc run %s --target sim --size M=0 --size N=0 --size K=4 --in x=zeros --in A=zeros
// RUN: stencilc run %s --target reference --size M=0 --size N=0 --size K=4 --in x=zeros --in A=zeros
// A quotient by a size stays in the loop that it stands in: no iteration divides by 0.

func.func @dz(%x: memref<?xf32> {stencil.name = "x", stencil.extents = ["M"]}, %a: memref<?x?xf32> {stencil.name = "A", stencil.extents = ["M","K"]}, %m: index {stencil.name = "M"}, %k: index {stencil.name = "K"}, %n: index {stencil.name = "N"}) {
  affine.for %i = 0 to %m {
    %q = affine.apply affine_map<(d0)[s0] -> (d0 floordiv s0)>(%i)[%n]
    %c = arith.index_cast %q : index to i64
    %f = arith.sitofp %c : i64 to f32
    affine.for %j = 0 to %k {
      %0 = affine.load %x[%i] : memref<?xf32>
      %1 = affine.load %a[%i, %j] : memref<?x?xf32>
      %2 = arith.mulf %1, %f : f32
      %4 = arith.addf %0, %2 : f32
      affine.store %4, %x[%i] : memref<?xf32>
    }
  }
  return
}
