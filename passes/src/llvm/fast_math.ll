; Reciprocal square roots where approximations are allowed. That of the device for doubles is right to
; 22 bits; one step of third order, y + y e (1/2 + 3/8 e) with e = 1 - x y y, makes it right to the last.
define float @__nv_rsqrtf(float %x) alwaysinline {
  %r = call float @llvm.nvvm.rsqrt.approx.f(float %x)
  ret float %r
}
define double @__nv_rsqrt(double %x) alwaysinline {
  %y = call double @llvm.nvvm.rsqrt.approx.d(double %x)
  %yy = fmul double %y, %y
  %n = fneg double %x
  %e = call double @llvm.fma.f64(double %n, double %yy, double 1.0)
  %c = call double @llvm.fma.f64(double %e, double 0.375, double 0.5)
  %ye = fmul double %y, %e
  %r = call double @llvm.fma.f64(double %c, double %ye, double %y)
  ret double %r
}
declare float @llvm.nvvm.rsqrt.approx.f(float)
declare double @llvm.nvvm.rsqrt.approx.d(double)
