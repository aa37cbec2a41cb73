// RUN: stencilc %programs/jacobi2d.stencil --emit=stencil -o %t
// RUN: stencil-opt %t --pass-pipeline='choose-heights{heights=3 strategy=block}' | FileCheck %s --check-prefix=CHOSEN
// RUN: stencil-opt %t --pass-pipeline='choose-heights{heights=3 strategy=block},tile-overlapped' | FileCheck %s --check-prefix=TILED
// RUN: stencil-opt %t --pass-pipeline='choose-heights{heights=2 strategy=naive},choose-heights{heights=3 strategy=block},tile-overlapped' | FileCheck %s --check-prefix=TILED
// RUN: stencil-opt %t --pass-pipeline='choose-heights{heights=2},choose-schedule{strategy=block}' | FileCheck %s --check-prefix=ONE
// RUN: stencil-opt %t --pass-pipeline='choose-heights{heights=3 strategy=block}' -o %t.heights
// RUN: sed 's/tiled.steps = 3/tiled.steps = 2/' %t.heights > %t.twice
// RUN: not stencil-opt %t.twice --pass-pipeline='tile-overlapped' -o %t.out 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not stencil-opt %t --pass-pipeline='choose-heights{heights=2 pyramid-height=2}' -o %t.out 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not stencil-opt %t --pass-pipeline='choose-heights' -o %t.out 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: stencilc %programs/gauss-seidel3d.stencil --emit=stencil -o %t
// RUN: not stencil-opt %t --pass-pipeline='choose-heights{heights=2}' -o %t.out 2>&1 | FileCheck %s --check-prefix=SWEEP

// The steps that 3 leaves over need the heights 2 and 1.
// CHOSEN-DAG: tiled.steps = 1 : i64
// CHOSEN-DAG: tiled.steps = 2 : i64
// CHOSEN-DAG: tiled.steps = 3 : i64

// TILED: func.func @jacobi2d_
// TILED: "tiled.repeat"() {{.*}}tiled.halo = array<i64: 1, 1>, tiled.height =
// BOTH: error: {{.*}}pyramid-height
// NONE: error: a plan has 1 to 24 pyramid heights with the powers of two below them; 0 are asked for
// SWEEP: error: declined [height]: a program that reads values of its own sweep has one pyramid height; leave heights out
// A later choice takes the place of an earlier one.
// ONE-NOT: tiled.heights
// TWICE: error: tiled.heights has two schedules of 2 steps; leave one out
