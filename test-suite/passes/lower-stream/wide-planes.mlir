// RUN: sed 's/f32/f64/' %programs/wave3d.stencil > %t.wave.stencil
// RUN: sed 's/f32/f64/' %programs/star3d1r.stencil > %t.star.stencil
// RUN: stencilc %t.wave.stencil --emit=stencil -D N=256 -D M=256 -D L=256 --fp-contract=off -o %t.wave
// RUN: stencilc %t.star.stencil --emit=stencil -D N=256 -D M=256 -D L=256 --fp-contract=off -o %t.star
// RUN: stencilc %programs/wave3d.stencil --emit=stencil -D N=256 -D M=256 -D L=256 --fp-contract=off -o %t.narrow
// RUN: stencil-opt %t.wave --pass-pipeline='builtin.module(tile-overlapped{strategy=stream pyramid-height=2 tile=64,28,56 per-thread=1,4,2},split-interior,lower-stream,gpu.module(canonicalize,cse))' | FileCheck %s --check-prefix=ONE
// RUN: stencil-opt %t.star --pass-pipeline='builtin.module(tile-overlapped{strategy=stream pyramid-height=2 tile=64,28,56 per-thread=1,4,2},split-interior,lower-stream,gpu.module(canonicalize,cse))' | FileCheck %s --check-prefix=TWO
// RUN: stencil-opt %t.narrow --pass-pipeline='builtin.module(tile-overlapped{strategy=stream pyramid-height=2 tile=64,28,56 per-thread=1,2,4},split-interior,lower-stream,gpu.module(canonicalize,cse))' | FileCheck %s --check-prefix=NARROW
// Three fields of 64-bit cells: one version of the code, a plane at a time, for all tiles. Launches overlap by rows
// of tiles.
// ONE: gpu.func @{{.*}}_2(
// ONE-SAME: tiled.binding = "row"
// ONE-SAME: tiled.reach = 1 : i64, tiled.rows = #{{.*}}
// ONE: gpu.barrier
// ONE: = scf.for {{.*}} step %c1 iter_args
// ONE-NOT: scf.for
// ONE: gpu.return

// One field of them: planes away from every rim in a body of three, and those at rims one at a time.
// TWO: gpu.func @{{.*}}_2(
// TWO-SAME: tiled.reach = 1 : i64, tiled.rows = #{{.*}}
// TWO: = scf.for {{.*}} step %c3 iter_args
// TWO: = scf.for {{.*}} step %c1 iter_args
// TWO: } else {
// TWO: = scf.for {{.*}} step %c1 iter_args
// TWO-NOT: scf.for
// TWO: gpu.return

// Three fields of 32-bit cells: two versions too.
// NARROW: gpu.func @wave3d_2(
// NARROW: = scf.for {{.*}} step %c6 iter_args
// NARROW: = scf.for {{.*}} step %c1 iter_args
// NARROW: = scf.for {{.*}} step %c1 iter_args
// NARROW-NOT: scf.for
// NARROW: gpu.return
