// RUN: stencilc %programs/star2d1r.stencil --emit=stencil -D N=1024 -D M=2046 -o %t.pitch
// RUN: stencil-opt %t.pitch --pass-pipeline='builtin.module(tile-overlapped{strategy=stream pyramid-height=2},split-interior,lower-stream)' | FileCheck %s --check-prefix=SINGLE
// RUN: stencilc %programs/star2d1r.stencil --emit=stencil -o %t.run-time
// RUN: stencil-opt %t.run-time --pass-pipeline='builtin.module(tile-overlapped{strategy=stream pyramid-height=2},split-interior,lower-stream)' | FileCheck %s --check-prefix=SINGLE
// RUN: stencilc %programs/jacobi2d_f64.stencil --emit=stencil -D N=1024 -D M=2046 -o %t.f64
// RUN: stencil-opt %t.f64 --pass-pipeline='builtin.module(tile-overlapped{strategy=stream pyramid-height=2},split-interior,lower-stream)' | FileCheck %s --check-prefix=PAIRS
// Wide accesses only where every row of the grid begins at a multiple of 16 bytes.

// SINGLE-NOT: vector.load
// SINGLE-NOT: vector.store

// 2046 cells of 8 bytes are such a multiple. A cell goes to another lane as two words.
// PAIRS: vector.load {{.*}}vector<2xf64>
// PAIRS: gpu.shuffle up {{.*}} : i32
// PAIRS: vector.store {{.*}}vector<2xf64>
