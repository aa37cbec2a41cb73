// Electron repulsion between pairs of contracted s functions, as RPES has it for one root: pair i
// has K products of Gauss functions with the exponents p, the factors cp and the places px, py, pz;
// pair j likewise with q. The integral of two products is
//   cp cq (p q sqrt(p + q))^-1 F(t),  t = p q (p + q)^-1 |P - Q|^2,
// and F, the first Boys function, is sqrt(pi / t) erf(sqrt(t)) / 2.
func.func @rpes(
    %v: memref<?x?xf32> {stencil.name = "V", stencil.extents = ["N", "M"]},
    %p: memref<?x?xf32> {stencil.name = "p", stencil.extents = ["N", "K"]},
    %cp: memref<?x?xf32> {stencil.name = "cp", stencil.extents = ["N", "K"]},
    %px: memref<?x?xf32> {stencil.name = "px", stencil.extents = ["N", "K"]},
    %py: memref<?x?xf32> {stencil.name = "py", stencil.extents = ["N", "K"]},
    %pz: memref<?x?xf32> {stencil.name = "pz", stencil.extents = ["N", "K"]},
    %q: memref<?x?xf32> {stencil.name = "q", stencil.extents = ["M", "K"]},
    %cq: memref<?x?xf32> {stencil.name = "cq", stencil.extents = ["M", "K"]},
    %qx: memref<?x?xf32> {stencil.name = "qx", stencil.extents = ["M", "K"]},
    %qy: memref<?x?xf32> {stencil.name = "qy", stencil.extents = ["M", "K"]},
    %qz: memref<?x?xf32> {stencil.name = "qz", stencil.extents = ["M", "K"]},
    %n: index {stencil.name = "N"}, %m: index {stencil.name = "M"},
    %k: index {stencil.name = "K"}) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %tiny = arith.constant 1.0e-12 : f32
  %half_root_of_pi = arith.constant 0.88622693 : f32
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      affine.store %zero, %v[%i, %j] : memref<?x?xf32>
      affine.for %a = 0 to %k {
        affine.for %b = 0 to %k {
          %0 = affine.load %p[%i, %a] : memref<?x?xf32>
          %1 = affine.load %q[%j, %b] : memref<?x?xf32>
          %x0 = affine.load %px[%i, %a] : memref<?x?xf32>
          %x1 = affine.load %qx[%j, %b] : memref<?x?xf32>
          %y0 = affine.load %py[%i, %a] : memref<?x?xf32>
          %y1 = affine.load %qy[%j, %b] : memref<?x?xf32>
          %z0 = affine.load %pz[%i, %a] : memref<?x?xf32>
          %z1 = affine.load %qz[%j, %b] : memref<?x?xf32>
          %x = arith.subf %x0, %x1 : f32
          %y = arith.subf %y0, %y1 : f32
          %z = arith.subf %z0, %z1 : f32
          %xx = arith.mulf %x, %x : f32
          %yy = arith.mulf %y, %y : f32
          %zz = arith.mulf %z, %z : f32
          %xy = arith.addf %xx, %yy : f32
          %square = arith.addf %xy, %zz : f32
          %product = arith.mulf %0, %1 : f32
          %sum = arith.addf %0, %1 : f32
          %reduced = arith.divf %product, %sum : f32
          %t = arith.mulf %reduced, %square : f32
          // F(0) is 1.
          %far = arith.cmpf ogt, %t, %tiny : f32
          %safe = arith.select %far, %t, %one : f32
          %root = math.sqrt %safe : f32
          %erf = math.erf %root : f32
          %2 = arith.mulf %half_root_of_pi, %erf : f32
          %3 = arith.divf %2, %root : f32
          %boys = arith.select %far, %3, %one : f32
          %4 = math.sqrt %sum : f32
          %5 = arith.mulf %product, %4 : f32
          %6 = arith.divf %boys, %5 : f32
          %c0 = affine.load %cp[%i, %a] : memref<?x?xf32>
          %c1 = affine.load %cq[%j, %b] : memref<?x?xf32>
          %c = arith.mulf %c0, %c1 : f32
          %term = arith.mulf %c, %6 : f32
          %7 = affine.load %v[%i, %j] : memref<?x?xf32>
          %8 = arith.addf %7, %term : f32
          affine.store %8, %v[%i, %j] : memref<?x?xf32>
        }
      }
    }
  }
  return
}
