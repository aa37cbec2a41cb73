// A = L U in place without pivots: triangles whose bounds depend on the step that the host counts.
func.func @lu(%a: memref<?x?xf64> {stencil.name = "A", stencil.extents = ["N", "N"]}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?x?xf64>
  affine.for %k = 0 to %n {
    affine.for %i = affine_map<(k) -> (k + 1)>(%k) to %n {
      %0 = affine.load %a[%i, %k] : memref<?x?xf64>
      %1 = affine.load %a[%k, %k] : memref<?x?xf64>
      %2 = arith.divf %0, %1 : f64
      affine.store %2, %a[%i, %k] : memref<?x?xf64>
    }
    affine.for %i = affine_map<(k) -> (k + 1)>(%k) to %n {
      affine.for %j = affine_map<(k) -> (k + 1)>(%k) to %n {
        %0 = affine.load %a[%i, %j] : memref<?x?xf64>
        %1 = affine.load %a[%i, %k] : memref<?x?xf64>
        %2 = affine.load %a[%k, %j] : memref<?x?xf64>
        %3 = arith.mulf %1, %2 : f64
        %4 = arith.subf %0, %3 : f64
        affine.store %4, %a[%i, %j] : memref<?x?xf64>
      }
    }
  }
  return
}
