// RUN: split-file %s %t
// RUN: stencil-opt %t/own.mlir --pass-pipeline='builtin.module(lower-affine-nest)' | FileCheck %s
// RUN: stencilc run %t/own.mlir --target sim --check --size N=9 --set temp1=1 --in A=random:1
// RUN: not stencilc run %t/own.mlir --target sim --size N=0 --set temp1=1 --in A=zeros 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not stencil-opt %t/inside.mlir --pass-pipeline='builtin.module(lower-affine-nest)' 2>&1 | FileCheck %s --check-prefix=INSIDE
// RUN: not stencil-opt %t/extent.mlir --pass-pipeline='builtin.module(lower-affine-nest)' 2>&1 | FileCheck %s --check-prefix=EXTENT
// RUN: not stencil-opt %t/layout.mlir --pass-pipeline='builtin.module(lower-affine-nest)' 2>&1 | FileCheck %s --check-prefix=LAYOUT
// Arrays that the function allocates are temp fields, which start with zeros. Their extents are affine in the sizes, and
// a run refuses negative ones.
// CHECK: "stencil.grid"() {lower = #[[ZERO:.*]], sym_name = "cells of temp0", upper = #[[LAST:.*]]} :
// CHECK: "stencil.field"() {grid = @"cells of temp0", role = "temp", sym_name = "temp0", type = f32}
// CHECK: "stencil.field"() {grid = @"cells of temp1_", role = "temp", sym_name = "temp1_", type = i32}
// CHECK: gpu.func @own_0({{.*}}tiled.binding = "read_write", tiled.name = "temp0"
// NEGATIVE: field `temp0` would have -1 cells in dimension 0
// INSIDE: declined [nest]: memref.alloc: move the array out of all loops, or make it an argument
// INSIDE-NEXT: inside.mlir:3:10
// EXTENT: an extent of this array is not affine in the sizes; write it as an affine map of index arguments and extents
// EXTENT-NEXT: extent.mlir:3:8
// LAYOUT: `temp0` is a memref<8xf32, 3>
// LAYOUT-NEXT: layout.mlir:2:8

//--- own.mlir
// The name `temp1` is taken.
func.func @own(%a: memref<?xf32> {stencil.name = "A", stencil.extents = ["N"]},
               %n: index {stencil.name = "N"}, %s: f32 {stencil.name = "temp1"}) {
  %less = affine.apply affine_map<(n) -> (2 * n - 1)>(%n)
  %0 = memref.alloc(%less) : memref<?xf32>
  %1 = memref.alloca() : memref<4xi32>
  affine.for %i = 0 to affine_map<(n) -> (2 * n - 1)>(%n) {
    %2 = affine.load %0[%i] : memref<?xf32>
    affine.store %2, %0[2 * symbol(%n) - %i - 2] : memref<?xf32>
  }
  affine.for %i = 0 to %n {
    %2 = affine.load %0[%i] : memref<?xf32>
    %3 = affine.load %1[3] : memref<4xi32>
    %4 = arith.sitofp %3 : i32 to f32
    %5 = arith.addf %2, %4 : f32
    %6 = affine.load %a[%i] : memref<?xf32>
    %7 = arith.addf %5, %6 : f32
    affine.store %7, %a[%i] : memref<?xf32>
  }
  memref.dealloc %0 : memref<?xf32>
  return
}

//--- inside.mlir
func.func @inside() {
  affine.for %i = 0 to 8 {
    %0 = memref.alloc() : memref<8xf32>
    %1 = affine.load %0[%i] : memref<8xf32>
    affine.store %1, %0[%i] : memref<8xf32>
  }
  return
}

//--- extent.mlir
func.func @extent(%n: index) {
  %square = arith.muli %n, %n : index
  %0 = memref.alloc(%square) : memref<?xf32>
  affine.for %i = 0 to 8 {
    %1 = affine.load %0[%i] : memref<?xf32>
    affine.store %1, %0[%i] : memref<?xf32>
  }
  return
}

//--- layout.mlir
func.func @layout() {
  %0 = memref.alloc() : memref<8xf32, 3>
  affine.for %i = 0 to 8 {
    %1 = affine.load %0[%i] : memref<8xf32, 3>
    affine.store %1, %0[%i] : memref<8xf32, 3>
  }
  return
}
