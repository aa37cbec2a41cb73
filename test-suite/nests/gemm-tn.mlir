// C = A^T B, where the loop that adds is the outermost one.
func.func @gemm_tn(
    %C: memref<?x?xf32> {stencil.name = "C", stencil.extents = ["N", "M"]},
    %A: memref<?x?xf32> {stencil.name = "A", stencil.extents = ["K", "N"]},
    %B: memref<?x?xf32> {stencil.name = "B", stencil.extents = ["K", "M"]},
    %n: index {stencil.name = "N"}, %m: index {stencil.name = "M"},
    %k: index {stencil.name = "K"}) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      affine.store %zero, %C[%i, %j] : memref<?x?xf32>
    }
  }
  affine.for %l = 0 to %k {
    affine.for %i = 0 to %n {
      affine.for %j = 0 to %m {
        %0 = affine.load %A[%l, %i] : memref<?x?xf32>
        %1 = affine.load %B[%l, %j] : memref<?x?xf32>
        %2 = arith.mulf %0, %1 : f32
        %3 = affine.load %C[%i, %j] : memref<?x?xf32>
        %4 = arith.addf %3, %2 : f32
        affine.store %4, %C[%i, %j] : memref<?x?xf32>
      }
    }
  }
  return
}
