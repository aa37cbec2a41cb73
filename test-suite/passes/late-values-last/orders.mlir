// RUN: split-file %s %t
// RUN: stencilc %t/gaps.stencil --emit=stencil | FileCheck %t/gaps.stencil
// RUN: stencilc %t/gaps.stencil --arch=x86-64-v3 --emit=stencil \
// RUN:     | FileCheck %t/gaps.stencil --check-prefix=ROWS
// RUN: stencilc %t/skewed.stencil --emit=stencil | FileCheck %t/skewed.stencil
// RUN: stencilc %t/kept.stencil --emit=stencil | FileCheck %t/kept.stencil
// RUN: stencilc %t/cube.stencil --emit=stencil | FileCheck %t/cube.stencil

//--- gaps.stencil
# The row above comes last, whatever the order of the text.
param N
grid G = [0..N-1, 0..N-1]
field H : i32 on G
fn f -> H [1..N-1, 1..N-1] = max(H'[-1,0] - 1, max(H'[0,-1] - 2, max(H'[-1,-1], 3)))
steps 1
# CHECK: func.func private @f(%[[UP:.*]]: i32 {{.*}}-1, 0>}, %[[LEFT:.*]]: i32 {{.*}}0, -1>},
# CHECK-SAME: %[[BOTH:.*]]: i32 {{.*}}-1, -1>})
# CHECK-DAG: %[[A:.*]] = arith.{{subi|addi}} %[[UP]],
# CHECK-DAG: %[[B:.*]] = arith.{{subi|addi}} %[[LEFT]],
# CHECK: %[[FIRST:.*]] = arith.maxsi %[[BOTH]], %c3
# CHECK: %[[SECOND:.*]] = arith.maxsi %[[FIRST]], %[[B]]
# CHECK: %[[LAST:.*]] = arith.maxsi %[[SECOND]], %[[A]]
# CHECK: return %[[LAST]]
# A processor computes row by row: there the cell before in the row is the newest.
# ROWS: func.func private @f(%[[UP:.*]]: i32 {{.*}}-1, 0>}, %[[LEFT:.*]]: i32 {{.*}}0, -1>},
# ROWS-SAME: %[[BOTH:.*]]: i32 {{.*}}-1, -1>})
# ROWS-DAG: %[[A:.*]] = arith.{{subi|addi}} %[[UP]],
# ROWS-DAG: %[[B:.*]] = arith.{{subi|addi}} %[[LEFT]],
# ROWS: %[[FIRST:.*]] = arith.maxsi %[[BOTH]], %c3
# ROWS: %[[SECOND:.*]] = arith.maxsi %[[FIRST]], %[[A]]
# ROWS: %[[LAST:.*]] = arith.maxsi %[[SECOND]], %[[B]]
# ROWS: return %[[LAST]]

//--- skewed.stencil
# With a read to the right, rows are two times behind each other, and [-1, 2] is the newest value.
param N
grid G = [0..N-1, 0..N-1]
field D : f32 on G
fn f -> D [1..N-1, 1..N-3] = min(D'[-1,2], min(D'[0,-1], D'[-1,0]))
steps 1
# CHECK: func.func private @f(%[[RIGHT:.*]]: f32 {{.*}}-1, 2>}, %[[LEFT:.*]]: f32 {{.*}}0, -1>},
# CHECK-SAME: %[[UP:.*]]: f32 {{.*}}-1, 0>})
# CHECK: %[[FIRST:.*]] = arith.minnumf %[[UP]], %[[LEFT]]
# CHECK: %[[LAST:.*]] = arith.minnumf %[[FIRST]], %[[RIGHT]]
# CHECK: return %[[LAST]]

//--- kept.stencil
# A floating-point sum has the order of the text. What two chains use stands in neither.
param N
grid G = [0..N-1, 0..N-1]
field A : f32 on G
field B : i32 on G
fn sum -> A [1..N-1, 1..N-1] = A'[-1,0] + A'[0,-1] + A'[-1,-1]
fn two -> B [1..N-1, 1..N-1] = { let m = min(B'[-1,0], B'[0,-1]); min(m, B'[-1,-1]) * m }
steps 1
# CHECK: func.func private @sum(%[[A:.*]]: f32 {{.*}}, %[[B:.*]]: f32 {{.*}}, %[[C:.*]]: f32
# CHECK: %[[S:.*]] = arith.addf %[[A]], %[[B]]
# CHECK: arith.addf %[[S]], %[[C]]
# CHECK: func.func private @two(%[[A:.*]]: i32 {{.*}}, %[[B:.*]]: i32 {{.*}}, %[[C:.*]]: i32
# CHECK: %[[M:.*]] = arith.minsi %[[A]], %[[B]]
# CHECK: arith.minsi %[[M]], %[[C]]

//--- cube.stencil
# In three dimensions no lane waits for a row.
param N
grid G = [0..N-1, 0..N-1, 0..N-1]
field A : i32 on G
fn f -> A [1..N-1, 1..N-1, 1..N-1] = max(A'[-1,0,0], max(A'[0,0,-1], A'[-1,-1,0]))
steps 1
# CHECK: func.func private @f(%[[A:.*]]: i32 {{.*}}, %[[B:.*]]: i32 {{.*}}, %[[C:.*]]: i32
# CHECK: %[[M:.*]] = arith.maxsi %[[B]], %[[C]]
# CHECK: arith.maxsi %[[A]], %[[M]]
