// RUN: stencilc %programs/star2d1r.stencil --emit=stencil -D N=4096 -D M=4096 --fp-contract=off -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=stream pyramid-height=10 tile=400,104},split-interior,lower-stream)' | FileCheck %s --check-prefix=TEN
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=stream pyramid-height=10 tile=400,104},split-interior,lower-stream{registers=168})' | FileCheck %s --check-prefix=ROOM
// Ten steps and checks do not keep to 128 registers together: at a rim one row of four cells is loaded ahead and
// not two, beside the 80 cells of ten values. With room for it there are two.

// TEN: gpu.func @star2d1r_10(
// TEN: %{{.*}}:92 = scf.for
// TEN: %{{.*}}:84 = scf.for
// TEN: gpu.return
// ROOM: gpu.func @star2d1r_10(
// ROOM: %{{.*}}:92 = scf.for
// ROOM: %{{.*}}:88 = scf.for
// ROOM: gpu.return
