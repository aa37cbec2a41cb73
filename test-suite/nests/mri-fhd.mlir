// MRI reconstruction: the vector F^H d at points x from samples k with complex data (dr, di).
func.func @mri_fhd(
    %qr: memref<?xf32> {stencil.name = "Fr", stencil.extents = ["N"]},
    %qi: memref<?xf32> {stencil.name = "Fi", stencil.extents = ["N"]},
    %dr: memref<?xf32> {stencil.name = "dr", stencil.extents = ["K"]},
    %di: memref<?xf32> {stencil.name = "di", stencil.extents = ["K"]},
    %x: memref<?xf32> {stencil.name = "x", stencil.extents = ["N"]},
    %y: memref<?xf32> {stencil.name = "y", stencil.extents = ["N"]},
    %z: memref<?xf32> {stencil.name = "z", stencil.extents = ["N"]},
    %kx: memref<?xf32> {stencil.name = "kx", stencil.extents = ["K"]},
    %ky: memref<?xf32> {stencil.name = "ky", stencil.extents = ["K"]},
    %kz: memref<?xf32> {stencil.name = "kz", stencil.extents = ["K"]},
    %n: index {stencil.name = "N"}, %k: index {stencil.name = "K"}) {
  %turn = arith.constant 6.2831855 : f32
  affine.for %i = 0 to %n {
    affine.for %l = 0 to %k {
      %0 = affine.load %kx[%l] : memref<?xf32>
      %1 = affine.load %ky[%l] : memref<?xf32>
      %2 = affine.load %kz[%l] : memref<?xf32>
      %3 = affine.load %x[%i] : memref<?xf32>
      %4 = affine.load %y[%i] : memref<?xf32>
      %5 = affine.load %z[%i] : memref<?xf32>
      %6 = arith.mulf %0, %3 : f32
      %7 = arith.mulf %1, %4 : f32
      %8 = arith.mulf %2, %5 : f32
      %9 = arith.addf %6, %7 : f32
      %10 = arith.addf %9, %8 : f32
      %11 = arith.mulf %turn, %10 : f32
      %12 = math.cos %11 : f32
      %13 = math.sin %11 : f32
      %14 = affine.load %dr[%l] : memref<?xf32>
      %20 = affine.load %di[%l] : memref<?xf32>
      %21 = arith.mulf %14, %12 : f32
      %22 = arith.mulf %20, %13 : f32
      %15 = arith.addf %21, %22 : f32
      %23 = arith.mulf %20, %12 : f32
      %24 = arith.mulf %14, %13 : f32
      %16 = arith.subf %23, %24 : f32
      %17 = affine.load %qr[%i] : memref<?xf32>
      %18 = arith.addf %17, %15 : f32
      affine.store %18, %qr[%i] : memref<?xf32>
      %25 = affine.load %qi[%i] : memref<?xf32>
      %26 = arith.addf %25, %16 : f32
      affine.store %26, %qi[%i] : memref<?xf32>
    }
  }
  return
}
