// The Coulombic potential of atoms (x, y, charge) at the points of a plane.
func.func @cp(
    %v: memref<?x?xf32> {stencil.name = "V", stencil.extents = ["N", "M"]},
    %x: memref<?xf32> {stencil.name = "x", stencil.extents = ["K"]},
    %y: memref<?xf32> {stencil.name = "y", stencil.extents = ["K"]},
    %z2: memref<?xf32> {stencil.name = "z2", stencil.extents = ["K"]},
    %q: memref<?xf32> {stencil.name = "q", stencil.extents = ["K"]},
    %spacing: f32 {stencil.name = "spacing"},
    %n: index {stencil.name = "N"}, %m: index {stencil.name = "M"},
    %k: index {stencil.name = "K"}) {
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      %0 = arith.index_cast %i : index to i32
      %1 = arith.sitofp %0 : i32 to f32
      %2 = arith.mulf %spacing, %1 : f32
      %3 = arith.index_cast %j : index to i32
      %4 = arith.sitofp %3 : i32 to f32
      %5 = arith.mulf %spacing, %4 : f32
      affine.for %l = 0 to %k {
        %6 = affine.load %x[%l] : memref<?xf32>
        %7 = affine.load %y[%l] : memref<?xf32>
        %8 = affine.load %z2[%l] : memref<?xf32>
        %9 = affine.load %q[%l] : memref<?xf32>
        %10 = arith.subf %5, %6 : f32
        %11 = arith.subf %2, %7 : f32
        %12 = arith.mulf %10, %10 : f32
        %13 = arith.mulf %11, %11 : f32
        %14 = arith.addf %12, %13 : f32
        %15 = arith.addf %14, %8 : f32
        %16 = math.sqrt %15 : f32
        %17 = arith.divf %9, %16 : f32
        %18 = affine.load %v[%i, %j] : memref<?x?xf32>
        %19 = arith.addf %18, %17 : f32
        affine.store %19, %v[%i, %j] : memref<?x?xf32>
      }
    }
  }
  return
}
