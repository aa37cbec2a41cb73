// RUN: split-file %s %t
// RUN: stencilc %t/nearest.stencil --emit=tiled --tile=64 --strategy=block --pyramid-height=2 | FileCheck %s --check-prefix=NEAREST
// RUN: stencilc %t/reflect.stencil --emit=tiled --tile=64 --strategy=block --pyramid-height=2 | FileCheck %s --check-prefix=REFLECT
// RUN: stencilc %t/periodic.stencil --emit=tiled --tile=64 --strategy=block --pyramid-height=2 | FileCheck %s --check-prefix=PERIODIC
// A read outside the grid is sent to a cell between the point and the place (nearest), or as far from
// the point on either side (reflect); tiles of periodic fields go on beyond the grid.

// NEAREST: "tiled.load"() {field = @A, lower = array<i64: -4>, upper = array<i64: 0>}
// REFLECT: "tiled.load"() {field = @A, lower = array<i64: -4>, upper = array<i64: 4>}
// PERIODIC: "tiled.load"() {field = @A, lower = array<i64: -4>, upper = array<i64: 0>}
// PERIODIC: "tiled.apply"(%{{.*}}) {lower = array<i64: -2>, {{.*}}, upper = array<i64: 0>}

//--- nearest.stencil
param N
grid G = [0..N-1]
field A : f32 on G
boundary A = nearest
fn f -> A [0..N-1] = A[-2]
steps 2

//--- reflect.stencil
param N
grid G = [0..N-1]
field A : f32 on G
boundary A = reflect
fn f -> A [0..N-1] = A[-2]
steps 2

//--- periodic.stencil
param N
grid G = [0..N-1]
field A : f32 on G
boundary A = periodic
fn f -> A [0..N-1] = A[-2]
steps 2
