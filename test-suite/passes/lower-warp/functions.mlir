// RUN: split-file %s %t
// RUN: stencilc %t/functions.stencil --emit=stencil -o %t.mlir
// RUN: stencil-opt %t.mlir --pass-pipeline='builtin.module(tile-overlapped{strategy=warp per-thread=2 pyramid-height=6},lower-warp{unroll=1},gpu.module(canonicalize,cse))' | FileCheck %t/functions.stencil

//--- functions.stencil
# Two functions a step; every tile is checked. A loop carries the fields that a step
# updates, and knows the step. The last step computes less of U than the others do.
param N
grid G = [0..N-1]
field U : f64 on G
field V : f32 on G
const field C : f32 on G
fn u -> U { [1..N-3] = U[2] + f64(V[-1]) [0..0] = 1.0 }
fn v -> V [0..N-1] = V[0] + 0.5 * C[0]
steps 6
# CHECK: gpu.func @functions_6(
# CHECK-NOT: vector.load
# CHECK: scf.for {{.*}} iter_args({{.*}}) -> (f64, f64, f32, f32)
# CHECK: gpu.shuffle
# CHECK: arith.cmpi
# CHECK: arith.select
# CHECK: scf.yield
# CHECK: gpu.return
