// T steps of a mean of five cells. The loop of steps runs on the host, with two launches a step.
func.func @jacobi2d(
    %a: memref<?x?xf32> {stencil.name = "A", stencil.extents = ["N", "M"]},
    %b: memref<?x?xf32> {stencil.name = "B", stencil.extents = ["N", "M"]},
    %t: index {stencil.name = "T"}, %n: index {stencil.name = "N"},
    %m: index {stencil.name = "M"}) {
  %fifth = arith.constant 0.2 : f32
  affine.for %step = 0 to %t {
    affine.for %i = 1 to affine_map<(n) -> (n - 1)>(%n) {
      affine.for %j = 1 to affine_map<(m) -> (m - 1)>(%m) {
        %0 = affine.load %a[%i, %j] : memref<?x?xf32>
        %1 = affine.load %a[%i, %j - 1] : memref<?x?xf32>
        %2 = affine.load %a[%i, %j + 1] : memref<?x?xf32>
        %3 = affine.load %a[%i - 1, %j] : memref<?x?xf32>
        %4 = affine.load %a[%i + 1, %j] : memref<?x?xf32>
        %5 = arith.addf %0, %1 : f32
        %6 = arith.addf %5, %2 : f32
        %7 = arith.addf %6, %3 : f32
        %8 = arith.addf %7, %4 : f32
        %9 = arith.mulf %fifth, %8 : f32
        affine.store %9, %b[%i, %j] : memref<?x?xf32>
      }
    }
    affine.for %i = 1 to affine_map<(n) -> (n - 1)>(%n) {
      affine.for %j = 1 to affine_map<(m) -> (m - 1)>(%m) {
        %0 = affine.load %b[%i, %j] : memref<?x?xf32>
        affine.store %0, %a[%i, %j] : memref<?x?xf32>
      }
    }
  }
  return
}
