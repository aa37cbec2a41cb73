// RUN: stencil-opt %s --pass-pipeline='builtin.module(exact-division)' | FileCheck %s
// RUN: stencil-opt %s --pass-pipeline='builtin.module(exact-division)' -o %t.once
// RUN: stencil-opt %s --pass-pipeline='builtin.module(exact-division,exact-division)' -o %t.twice
// RUN: diff %t.once %t.twice

module {
  gpu.module @kernels {
    // CHECK-LABEL: gpu.func @odd
    // CHECK: %[[X:.*]] = memref.load
    // CHECK: %[[LESS:.*]] = arith.negf %[[X]] : f32
    // CHECK: %[[Z:.*]] = arith.constant 2.000000e-01 : f32
    // CHECK: %[[D:.*]] = arith.mulf %[[X]], %[[Z]] : f32
    // CHECK: %[[C:.*]] = arith.constant 5.000000e+00 : f32
    // CHECK: %[[W:.*]] = math.fma %[[D]], %[[C]], %[[LESS]] : f32
    // CHECK: %[[MINUS:.*]] = arith.constant -2.000000e-01 : f32
    // CHECK: %[[N:.*]] = math.fma %[[W]], %[[MINUS]], %[[D]] : f32
    // CHECK: %[[SIZE:.*]] = math.absf %[[X]] : f32
    // CHECK: %[[INFINITY:.*]] = arith.constant 0x7F800000 : f32
    // CHECK: %[[FINITE:.*]] = arith.cmpf une, %[[SIZE]], %[[INFINITY]] : f32
    // CHECK: %[[Q:.*]] = arith.select %[[FINITE]], %[[N]], %[[X]] : f32
    // CHECK: memref.store %[[Q]]
    // CHECK-NOT: arith.divf
    gpu.func @odd(%a: memref<64xf32>, %i: index) kernel {
      %c = arith.constant 5.0 : f32
      %x = memref.load %a[%i] : memref<64xf32>
      %q = arith.divf %x, %c fastmath<contract> : f32
      memref.store %q, %a[%i] : memref<64xf32>
      gpu.return
    }

    // The nearest f64 to 1 / 6 is below it. The shift is 1.5 * 2^-1021.
    // CHECK-LABEL: gpu.func @even
    // CHECK: %[[X:.*]] = memref.load
    // CHECK: %[[LESS:.*]] = arith.negf %[[X]] : f64
    // CHECK: %[[Z:.*]] = arith.constant 0.16666666666666666 : f64
    // CHECK: %[[M:.*]] = arith.constant 6.6752215755216041E-308 : f64
    // CHECK: %[[S:.*]] = math.fma %[[X]], %[[Z]], %[[M]] : f64
    // CHECK: %[[MINUS_D:.*]] = arith.subf %[[M]], %[[S]] : f64
    // CHECK: %[[C:.*]] = arith.constant -6.000000e+00 : f64
    // CHECK: %[[W:.*]] = math.fma %[[MINUS_D]], %[[C]], %[[LESS]] : f64
    // CHECK: %[[D:.*]] = arith.negf %[[MINUS_D]] : f64
    // CHECK: %[[N:.*]] = math.fma %[[W]], %{{.*}}, %[[D]] : f64
    // CHECK: arith.select %{{.*}}, %[[N]], %[[X]] : f64
    gpu.func @even(%a: memref<64xf64>, %i: index) kernel {
      %c = arith.constant 6.0 : f64
      %x = memref.load %a[%i] : memref<64xf64>
      %q = arith.divf %x, %c : f64
      memref.store %q, %a[%i] : memref<64xf64>
      gpu.return
    }

    // The dividend of a negative divisor is negated. The nearest f32 to 1 / 118 is above it, so the
    // reciprocal is the number before that.
    // CHECK-LABEL: gpu.func @negative
    // CHECK: %[[X:.*]] = memref.load
    // CHECK: %[[NEGATIVE:.*]] = arith.negf %[[X]] : f32
    // CHECK: %[[Z:.*]] = arith.constant 0.00847457535 : f32
    // CHECK: math.fma %[[NEGATIVE]], %[[Z]], %{{.*}} : f32
    // CHECK: %[[C:.*]] = arith.constant -1.180000e+02 : f32
    // CHECK: math.fma %{{.*}}, %[[C]], %[[X]] : f32
    // CHECK: arith.select %{{.*}}, %{{.*}}, %[[NEGATIVE]] : f32
    gpu.func @negative(%a: memref<64xf32>, %i: index) kernel {
      %c = arith.constant -118.0 : f32
      %x = memref.load %a[%i] : memref<64xf32>
      %q = arith.divf %x, %c : f32
      memref.store %q, %a[%i] : memref<64xf32>
      gpu.return
    }

    // CHECK-LABEL: gpu.func @short
    // CHECK: %[[X:.*]] = memref.load
    // CHECK: %[[WIDE:.*]] = arith.extf %[[X]] : f16 to f32
    // CHECK: arith.mulf %[[WIDE]], %{{.*}} : f32
    // CHECK: %[[Q:.*]] = arith.truncf %{{.*}} : f32 to f16
    // CHECK: memref.store %[[Q]]
    gpu.func @short(%a: memref<64xf16>, %i: index) kernel {
      %c = arith.constant 5.0 : f16
      %x = memref.load %a[%i] : memref<64xf16>
      %q = arith.divf %x, %c : f16
      memref.store %q, %a[%i] : memref<64xf16>
      gpu.return
    }

    // Powers of two, which LLVM multiplies by; other numbers; what may be a product; what is no
    // constant; vectors.
    // CHECK-LABEL: gpu.func @left
    // CHECK-COUNT-7: arith.divf
    // CHECK-NOT: math.fma
    gpu.func @left(%a: memref<64xf32>, %b: memref<64xvector<2xf32>>, %i: index, %v: f32) kernel {
      %two = arith.constant 2.0 : f32
      %half = arith.constant 2.5 : f32
      %none = arith.constant 0.0 : f32
      %large = arith.constant 262145.0 : f32
      %five = arith.constant 5.0 : f32
      %fives = arith.constant dense<5.0> : vector<2xf32>
      %x = memref.load %a[%i] : memref<64xf32>
      %0 = arith.divf %x, %two : f32
      %1 = arith.divf %0, %half : f32
      %2 = arith.divf %1, %none : f32
      %3 = arith.divf %2, %large : f32
      %4 = arith.divf %3, %five fastmath<arcp> : f32
      %5 = arith.divf %4, %v : f32
      memref.store %5, %a[%i] : memref<64xf32>
      %y = memref.load %b[%i] : memref<64xvector<2xf32>>
      %6 = arith.divf %y, %fives : vector<2xf32>
      memref.store %6, %b[%i] : memref<64xvector<2xf32>>
      gpu.return
    }
  }

  // Only kernels are changed.
  // CHECK-LABEL: func.func private @other
  // CHECK: arith.divf
  func.func private @other(%x: f32) -> f32 {
    %c = arith.constant 5.0 : f32
    %q = arith.divf %x, %c : f32
    return %q : f32
  }
}
