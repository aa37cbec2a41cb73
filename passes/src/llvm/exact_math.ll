; The math functions that the device computes exactly, under the names that the conversion from
; the math dialect gives them. Libdevice's own versions of them depend on compile flags.
define float @__nv_sqrtf(float %x) alwaysinline {
  %r = call float @llvm.sqrt.f32(float %x)
  ret float %r
}
define double @__nv_sqrt(double %x) alwaysinline {
  %r = call double @llvm.sqrt.f64(double %x)
  ret double %r
}
define float @__nv_fabsf(float %x) alwaysinline {
  %r = call float @llvm.fabs.f32(float %x)
  ret float %r
}
define double @__nv_fabs(double %x) alwaysinline {
  %r = call double @llvm.fabs.f64(double %x)
  ret double %r
}
define float @__nv_floorf(float %x) alwaysinline {
  %r = call float @llvm.floor.f32(float %x)
  ret float %r
}
define double @__nv_floor(double %x) alwaysinline {
  %r = call double @llvm.floor.f64(double %x)
  ret double %r
}
define float @__nv_ceilf(float %x) alwaysinline {
  %r = call float @llvm.ceil.f32(float %x)
  ret float %r
}
define double @__nv_ceil(double %x) alwaysinline {
  %r = call double @llvm.ceil.f64(double %x)
  ret double %r
}
define float @__nv_fmaf(float %x, float %y, float %z) alwaysinline {
  %r = call float @llvm.fma.f32(float %x, float %y, float %z)
  ret float %r
}
define double @__nv_fma(double %x, double %y, double %z) alwaysinline {
  %r = call double @llvm.fma.f64(double %x, double %y, double %z)
  ret double %r
}
define float @__nv_fminf(float %x, float %y) alwaysinline {
  %r = call float @llvm.minnum.f32(float %x, float %y)
  ret float %r
}
define double @__nv_fmin(double %x, double %y) alwaysinline {
  %r = call double @llvm.minnum.f64(double %x, double %y)
  ret double %r
}
define float @__nv_fmaxf(float %x, float %y) alwaysinline {
  %r = call float @llvm.maxnum.f32(float %x, float %y)
  ret float %r
}
define double @__nv_fmax(double %x, double %y) alwaysinline {
  %r = call double @llvm.maxnum.f64(double %x, double %y)
  ret double %r
}
declare float @llvm.sqrt.f32(float)
declare double @llvm.sqrt.f64(double)
declare float @llvm.fabs.f32(float)
declare double @llvm.fabs.f64(double)
declare float @llvm.floor.f32(float)
declare double @llvm.floor.f64(double)
declare float @llvm.ceil.f32(float)
declare double @llvm.ceil.f64(double)
declare float @llvm.fma.f32(float, float, float)
declare double @llvm.fma.f64(double, double, double)
declare float @llvm.minnum.f32(float, float)
declare double @llvm.minnum.f64(double, double)
declare float @llvm.maxnum.f32(float, float)
declare double @llvm.maxnum.f64(double, double)
