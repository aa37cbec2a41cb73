// RUN: split-file %s %t
// RUN: stencilc %t/nearest.stencil --emit=gpu --strategy=naive | FileCheck %s --check-prefix=NEAREST
// RUN: stencilc %t/inner.stencil --emit=gpu --strategy=naive | FileCheck %s --check-prefix=INNER
// RUN: stencilc %t/value.stencil --emit=gpu --strategy=naive | FileCheck %s --check-prefix=VALUE
// A rule changes the place that is read, and only on the side that a read can cross.

// NEAREST: %[[A:.+]] = memref.reinterpret_cast %arg0
// NEAREST: %[[at:.+]] = arith.addi %{{.*}}, %c-1
// NEAREST-NOT: arith.minsi
// NEAREST: %[[mapped:.+]] = arith.maxsi %[[at]], %c0
// NEAREST-NOT: arith.minsi
// NEAREST: memref.load %[[A]]

// A piece that keeps away from the rim needs no rule.
// INNER-NOT: arith.maxsi
// INNER: gpu.return

// An expression is evaluated outside alone, and nothing is read there.
// VALUE: %[[A:.+]] = memref.reinterpret_cast %arg0
// VALUE: %[[outside:.+]] = arith.cmpi slt, %{{.*}}, %c0
// VALUE: scf.if %[[outside]] -> (f32) {
// VALUE-NOT: memref.load
// VALUE: arith.sitofp
// VALUE-NOT: memref.load
// VALUE: } else {
// VALUE: memref.load %[[A]]

//--- nearest.stencil
param N
grid G = [0..N-1]
field A : f32 on G
boundary A = nearest
fn f -> A [0..N-1] = A[-1]
steps 1

//--- inner.stencil
param N
grid G = [0..N-1]
field A : f32 on G
boundary A = nearest
fn f -> A [1..N-2] = A[-1] + A[1]
steps 1

//--- value.stencil
param N
grid G = [0..N-1]
field A : f32 on G
boundary A = f32(x0 + t)
fn f -> A [0..N-1] = A[-1]
steps 1
