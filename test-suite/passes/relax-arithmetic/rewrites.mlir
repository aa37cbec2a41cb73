// RUN: split-file %s %t
// RUN: stencilc %t/mean.stencil --emit=stencil --fast-math | FileCheck %t/mean.stencil
// RUN: stencilc %t/mean.stencil --emit=stencil | FileCheck %t/mean.stencil --check-prefix=EXACT
// RUN: stencilc %t/root.stencil --emit=stencil --fast-math | FileCheck %t/root.stencil
// RUN: stencilc %t/root.stencil --emit=stencil | FileCheck %t/root.stencil --check-prefix=EXACT
// RUN: stencilc %t/kept.stencil --emit=stencil --fast-math | FileCheck %t/kept.stencil
// RUN: stencilc %t/late.stencil --emit=stencil --fast-math | FileCheck %t/late.stencil

//--- mean.stencil
# A weighted mean of a weighted mean takes a fused multiply-add a term.
param N
grid G = [0..N-1]
field A : f64 on G
fn f -> A [1..N-2] = (2 * (4 * A[-1] - A[0] * 8) + 16 * A[1]) / 32
steps 1
# CHECK-DAG: arith.constant 2.500000e-01 : f64
# CHECK-DAG: arith.constant 5.000000e-01 : f64
# CHECK-NOT: arith.constant
# CHECK-COUNT-3: arith.mulf {{.*}} fastmath<nnan,ninf,nsz,arcp,contract,afn>
# CHECK-NOT: arith.mulf
# CHECK-NOT: arith.divf
# CHECK: return
# EXACT: arith.divf {{.*}} fastmath<contract>

//--- root.stencil
# A quotient by a root is a product with its reciprocal; the second root has another use.
param N
grid G = [0..N-1]
field A : f32 on G
fn f -> A [0..N-1] = { let r = sqrt(3 + A[0]); A[0] / sqrt(2 + A[0]) + 1 / sqrt(1 + A[0]) + r / (1 / r) + 1 / r }
steps 1
# CHECK: %[[first:.+]] = math.rsqrt
# CHECK: arith.mulf %{{.*}}, %[[first]]
# CHECK: math.rsqrt
# CHECK-NOT: math.rsqrt
# EXACT-NOT: math.rsqrt

//--- kept.stencil
# A sum with a term of no weight keeps its one product, and a divisor whose reciprocal is no normal
# number stays a divisor.
param N
grid G = [0..N-1]
field A : f32 on G
fn f -> A [1..N-2] = (A[-1] + 2 * A[0]) / 4 + A[1] / 3e38
steps 1
# CHECK: %[[sum:.+]] = arith.addf
# CHECK: arith.mulf %[[sum]], %{{.*}}
# CHECK: arith.divf

//--- late.stencil
# In two dimensions the far cells of the point's own row are added last, and others stay in their order.
param N
grid G = [0..N-1, 0..N-1]
field A : f32 on G
fn f -> A [1..N-2, 2..N-3] = A[-1,0] + 3 * A[0,2] + (A[0,-2] + 5 * A[0,0]) + 7 * A[1,0]
steps 1
# CHECK: func.func private @f(%[[above:.+]]: f32 {{.*}}, %[[east:.+]]: f32 {{.*}}, %[[west:.+]]: f32 {{.*}}, %[[here:.+]]: f32 {{.*}}, %[[below:.+]]: f32 {{.*}}) -> f32
# CHECK-DAG: %[[east3:.+]] = arith.mulf %[[east]],
# CHECK-DAG: %[[here5:.+]] = arith.mulf %[[here]],
# CHECK-DAG: %[[below7:.+]] = arith.mulf %[[below]],
# CHECK: %[[two:.+]] = arith.addf %[[above]], %[[here5]]
# CHECK: %[[three:.+]] = arith.addf %[[two]], %[[below7]]
# CHECK: %[[four:.+]] = arith.addf %[[three]], %[[east3]]
# CHECK: arith.addf %[[four]], %[[west]]
# CHECK-NOT: arith.addf
