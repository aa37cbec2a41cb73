// RUN: stencil-opt %s --pass-pipeline='builtin.module(load-constants)' | FileCheck %s
// Thirteen 64-bit factors come from constant memory, where the kernel begins; twelve stay, and so do those whose lower
// half is zero, and those of 32 bits. A summand stays too.
// CHECK: llvm.mlir.global external @many_factors(dense<[0x41F0000000100000, 1.010000e+01, 1.030000e+01, 1.100000e+00, {{.*}}]> : tensor<26xf64>) {addr_space = 4 : i32, alignment = 16 : i64}
// CHECK-LABEL: llvm.func @many
// CHECK-NEXT: %[[TABLE:.*]] = llvm.mlir.addressof @many_factors : !llvm.ptr<4>
// CHECK-NEXT: %[[AT0:.*]] = llvm.getelementptr %[[TABLE]][0, 1]
// CHECK-NEXT: %[[TEN:.*]] = llvm.load %[[AT0]] : !llvm.ptr<4> -> f64
// CHECK-NEXT: %[[AT1:.*]] = llvm.getelementptr %[[TABLE]][0, 3]
// CHECK-NEXT: %[[ONE:.*]] = llvm.load %[[AT1]] : !llvm.ptr<4> -> f64
// CHECK-COUNT-11: llvm.load
// CHECK-NOT: llvm.load
// CHECK: llvm.fmul %arg0, %[[ONE]] : f64
// CHECK: llvm.intr.fma(%{{.*}}, %[[TEN]], %arg0)
// CHECK-LABEL: llvm.func @more
// CHECK: %[[HEX:.*]] = llvm.load
// CHECK: %[[THREE:.*]] = llvm.mlir.constant(1.300000e+00 : f64)
// CHECK: %[[SUM:.*]] = llvm.fadd %{{.*}}, %[[THREE]] : f64
// CHECK: llvm.fmul %[[SUM]], %[[HEX]] : f64
// CHECK-LABEL: llvm.func @few
// CHECK-NOT: llvm.load
// CHECK-LABEL: llvm.func @halves
// CHECK-NOT: llvm.load
// CHECK-LABEL: llvm.func @single
// CHECK-NOT: llvm.load
gpu.module @kernels {
  llvm.func @many(%x: f64) -> f64 {
    %c0 = llvm.mlir.constant(1.1 : f64) : f64
    %c1 = llvm.mlir.constant(2.1 : f64) : f64
    %c2 = llvm.mlir.constant(3.1 : f64) : f64
    %c3 = llvm.mlir.constant(4.1 : f64) : f64
    %c4 = llvm.mlir.constant(5.1 : f64) : f64
    %c5 = llvm.mlir.constant(6.1 : f64) : f64
    %c6 = llvm.mlir.constant(7.1 : f64) : f64
    %c7 = llvm.mlir.constant(8.1 : f64) : f64
    %c8 = llvm.mlir.constant(9.1 : f64) : f64
    %c9 = llvm.mlir.constant(10.1 : f64) : f64
    %c10 = llvm.mlir.constant(11.1 : f64) : f64
    %c11 = llvm.mlir.constant(12.1 : f64) : f64
    %c12 = llvm.mlir.constant(13.1 : f64) : f64
    %v0 = llvm.fmul %x, %c0 : f64
    %v1 = llvm.intr.fma(%v0, %c1, %x) : (f64, f64, f64) -> f64
    %v2 = llvm.fmul %v1, %c2 : f64
    %v3 = llvm.intr.fma(%v2, %c3, %x) : (f64, f64, f64) -> f64
    %v4 = llvm.fmul %v3, %c4 : f64
    %v5 = llvm.intr.fma(%v4, %c5, %x) : (f64, f64, f64) -> f64
    %v6 = llvm.fmul %v5, %c6 : f64
    %v7 = llvm.intr.fma(%v6, %c7, %x) : (f64, f64, f64) -> f64
    %v8 = llvm.fmul %v7, %c8 : f64
    %v9 = llvm.intr.fma(%v8, %c9, %x) : (f64, f64, f64) -> f64
    %v10 = llvm.fmul %v9, %c10 : f64
    %v11 = llvm.intr.fma(%v10, %c11, %x) : (f64, f64, f64) -> f64
    %v12 = llvm.fmul %v11, %c12 : f64
    llvm.return %v12 : f64
  }
  llvm.func @more(%x: f64) -> f64 {
    %c0 = llvm.mlir.constant(1.3 : f64) : f64
    %c1 = llvm.mlir.constant(2.3 : f64) : f64
    %c2 = llvm.mlir.constant(3.3 : f64) : f64
    %c3 = llvm.mlir.constant(4.3 : f64) : f64
    %c4 = llvm.mlir.constant(5.3 : f64) : f64
    %c5 = llvm.mlir.constant(6.3 : f64) : f64
    %c6 = llvm.mlir.constant(7.3 : f64) : f64
    %c7 = llvm.mlir.constant(8.3 : f64) : f64
    %c8 = llvm.mlir.constant(9.3 : f64) : f64
    %c9 = llvm.mlir.constant(10.3 : f64) : f64
    %c10 = llvm.mlir.constant(11.3 : f64) : f64
    %c11 = llvm.mlir.constant(12.3 : f64) : f64
    %big = llvm.mlir.constant(4294967297.0 : f64) : f64
    %v0 = llvm.fmul %x, %c0 : f64
    %v1 = llvm.fmul %v0, %c1 : f64
    %v2 = llvm.fmul %v1, %c2 : f64
    %v3 = llvm.fmul %v2, %c3 : f64
    %v4 = llvm.fmul %v3, %c4 : f64
    %v5 = llvm.fmul %v4, %c5 : f64
    %v6 = llvm.fmul %v5, %c6 : f64
    %v7 = llvm.fmul %v6, %c7 : f64
    %v8 = llvm.fmul %v7, %c8 : f64
    %v9 = llvm.fmul %v8, %c9 : f64
    %v10 = llvm.fmul %v9, %c10 : f64
    %v11 = llvm.fmul %v10, %c11 : f64
    %sum = llvm.fadd %v11, %c0 : f64
    %last = llvm.fmul %sum, %big : f64
    llvm.return %last : f64
  }
  llvm.func @few(%x: f64) -> f64 {
    %c0 = llvm.mlir.constant(1.1 : f64) : f64
    %c1 = llvm.mlir.constant(2.1 : f64) : f64
    %c2 = llvm.mlir.constant(3.1 : f64) : f64
    %c3 = llvm.mlir.constant(4.1 : f64) : f64
    %c4 = llvm.mlir.constant(5.1 : f64) : f64
    %c5 = llvm.mlir.constant(6.1 : f64) : f64
    %c6 = llvm.mlir.constant(7.1 : f64) : f64
    %c7 = llvm.mlir.constant(8.1 : f64) : f64
    %c8 = llvm.mlir.constant(9.1 : f64) : f64
    %c9 = llvm.mlir.constant(10.1 : f64) : f64
    %c10 = llvm.mlir.constant(11.1 : f64) : f64
    %c11 = llvm.mlir.constant(12.1 : f64) : f64
    %v0 = llvm.fmul %x, %c0 : f64
    %v1 = llvm.intr.fma(%v0, %c1, %x) : (f64, f64, f64) -> f64
    %v2 = llvm.fmul %v1, %c2 : f64
    %v3 = llvm.intr.fma(%v2, %c3, %x) : (f64, f64, f64) -> f64
    %v4 = llvm.fmul %v3, %c4 : f64
    %v5 = llvm.intr.fma(%v4, %c5, %x) : (f64, f64, f64) -> f64
    %v6 = llvm.fmul %v5, %c6 : f64
    %v7 = llvm.intr.fma(%v6, %c7, %x) : (f64, f64, f64) -> f64
    %v8 = llvm.fmul %v7, %c8 : f64
    %v9 = llvm.intr.fma(%v8, %c9, %x) : (f64, f64, f64) -> f64
    %v10 = llvm.fmul %v9, %c10 : f64
    %v11 = llvm.intr.fma(%v10, %c11, %x) : (f64, f64, f64) -> f64
    llvm.return %v11 : f64
  }
  llvm.func @halves(%x: f64) -> f64 {
    %c0 = llvm.mlir.constant(1.5 : f64) : f64
    %c1 = llvm.mlir.constant(2.5 : f64) : f64
    %c2 = llvm.mlir.constant(3.5 : f64) : f64
    %c3 = llvm.mlir.constant(4.5 : f64) : f64
    %c4 = llvm.mlir.constant(5.5 : f64) : f64
    %c5 = llvm.mlir.constant(6.5 : f64) : f64
    %c6 = llvm.mlir.constant(7.5 : f64) : f64
    %c7 = llvm.mlir.constant(8.5 : f64) : f64
    %c8 = llvm.mlir.constant(9.5 : f64) : f64
    %c9 = llvm.mlir.constant(10.5 : f64) : f64
    %c10 = llvm.mlir.constant(11.5 : f64) : f64
    %c11 = llvm.mlir.constant(12.5 : f64) : f64
    %c12 = llvm.mlir.constant(13.5 : f64) : f64
    %v0 = llvm.fmul %x, %c0 : f64
    %v1 = llvm.intr.fma(%v0, %c1, %x) : (f64, f64, f64) -> f64
    %v2 = llvm.fmul %v1, %c2 : f64
    %v3 = llvm.intr.fma(%v2, %c3, %x) : (f64, f64, f64) -> f64
    %v4 = llvm.fmul %v3, %c4 : f64
    %v5 = llvm.intr.fma(%v4, %c5, %x) : (f64, f64, f64) -> f64
    %v6 = llvm.fmul %v5, %c6 : f64
    %v7 = llvm.intr.fma(%v6, %c7, %x) : (f64, f64, f64) -> f64
    %v8 = llvm.fmul %v7, %c8 : f64
    %v9 = llvm.intr.fma(%v8, %c9, %x) : (f64, f64, f64) -> f64
    %v10 = llvm.fmul %v9, %c10 : f64
    %v11 = llvm.intr.fma(%v10, %c11, %x) : (f64, f64, f64) -> f64
    %v12 = llvm.fmul %v11, %c12 : f64
    llvm.return %v12 : f64
  }
  llvm.func @single(%x: f32) -> f32 {
    %c0 = llvm.mlir.constant(1.1 : f32) : f32
    %c1 = llvm.mlir.constant(2.1 : f32) : f32
    %c2 = llvm.mlir.constant(3.1 : f32) : f32
    %c3 = llvm.mlir.constant(4.1 : f32) : f32
    %c4 = llvm.mlir.constant(5.1 : f32) : f32
    %c5 = llvm.mlir.constant(6.1 : f32) : f32
    %c6 = llvm.mlir.constant(7.1 : f32) : f32
    %c7 = llvm.mlir.constant(8.1 : f32) : f32
    %c8 = llvm.mlir.constant(9.1 : f32) : f32
    %c9 = llvm.mlir.constant(10.1 : f32) : f32
    %c10 = llvm.mlir.constant(11.1 : f32) : f32
    %c11 = llvm.mlir.constant(12.1 : f32) : f32
    %c12 = llvm.mlir.constant(13.1 : f32) : f32
    %v0 = llvm.fmul %x, %c0 : f32
    %v1 = llvm.intr.fma(%v0, %c1, %x) : (f32, f32, f32) -> f32
    %v2 = llvm.fmul %v1, %c2 : f32
    %v3 = llvm.intr.fma(%v2, %c3, %x) : (f32, f32, f32) -> f32
    %v4 = llvm.fmul %v3, %c4 : f32
    %v5 = llvm.intr.fma(%v4, %c5, %x) : (f32, f32, f32) -> f32
    %v6 = llvm.fmul %v5, %c6 : f32
    %v7 = llvm.intr.fma(%v6, %c7, %x) : (f32, f32, f32) -> f32
    %v8 = llvm.fmul %v7, %c8 : f32
    %v9 = llvm.intr.fma(%v8, %c9, %x) : (f32, f32, f32) -> f32
    %v10 = llvm.fmul %v9, %c10 : f32
    %v11 = llvm.intr.fma(%v10, %c11, %x) : (f32, f32, f32) -> f32
    %v12 = llvm.fmul %v11, %c12 : f32
    llvm.return %v12 : f32
  }
}
