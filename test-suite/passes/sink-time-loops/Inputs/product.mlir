func.func @mm(%c: memref<?x?xf32> {stencil.name = "C", stencil.extents = ["N", "M"]}, %a: memref<?x?xf32> {stencil.name = "A", stencil.extents = ["N", "K"]}, %b: memref<?x?xf32> {stencil.name = "B", stencil.extents = ["K", "M"]}, %n: index {stencil.name = "N"}, %m: index {stencil.name = "M"}, %k: index {stencil.name = "K"}) {
affine.for @1 {
affine.for @2 {
affine.for @3 {
%0 = affine.load %c[%i, %j] : memref<?x?xf32>
%1 = affine.load %a[%i, %l] : memref<?x?xf32>
%2 = affine.load %b[%l, %j] : memref<?x?xf32>
%3 = arith.mulf %1, %2 : f32
%4 = arith.addf %0, %3 : f32
affine.store %4, %c[%i, %j] : memref<?x?xf32>
}}}
return
}
