// RUN: stencil-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(lower-affine-nest)'
// Programs of Ryoo et al., table 2, that are no affine nests, at the places that make them so.

// TPACF counts pairs of points by their angle: the place of a count is computed.
func.func @tpacf(%counts: memref<?xi32>, %x: memref<?xf32>, %n: index, %scale: f32) {
  %one = arith.constant 1 : i32
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %n {
      %0 = affine.load %x[%i] : memref<?xf32>
      %1 = affine.load %x[%j] : memref<?xf32>
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.mulf %2, %scale : f32
      %4 = arith.fptosi %3 : f32 to i32
      %bin = arith.index_cast %4 : i32 to index
      // expected-error @+1 {{memref.load: a nest has affine loops, loads and stores alone}}
      %5 = memref.load %counts[%bin] : memref<?xi32>
      %6 = arith.addi %5, %one : i32
      memref.store %6, %counts[%bin] : memref<?xi32>
    }
  }
  return
}

// -----

// PNS follows a Petri net: which transition fires depends on the marks of the step before.
func.func @pns(%marks: memref<?x?xi32>, %from: memref<?xi32>, %random: memref<?x?xi32>,
               %n: index, %steps: index) {
  %one = arith.constant 1 : i32
  affine.for %i = 0 to %n {
    affine.for %t = 0 to %steps {
      %0 = affine.load %random[%t, %i] : memref<?x?xi32>
      %transition = arith.index_cast %0 : i32 to index
      // expected-error @+1 {{memref.load: a nest has affine loops, loads and stores alone}}
      %1 = memref.load %from[%transition] : memref<?xi32>
      %place = arith.index_cast %1 : i32 to index
      %2 = memref.load %marks[%place, %i] : memref<?x?xi32>
      %3 = arith.subi %2, %one : i32
      memref.store %3, %marks[%place, %i] : memref<?x?xi32>
    }
  }
  return
}

// -----

// FEM multiplies by a sparse matrix: a row's length and its columns are data.
func.func @fem(%y: memref<?xf32>, %x: memref<?xf32>, %a: memref<?xf32>, %columns: memref<?xi32>,
               %rows: memref<?xi32>, %n: index) {
  affine.for %i = 0 to %n {
    %0 = affine.load %rows[%i] : memref<?xi32>
    %1 = affine.load %rows[%i + 1] : memref<?xi32>
    %first = arith.index_cast %0 : i32 to index
    %end = arith.index_cast %1 : i32 to index
    %one = arith.constant 1 : index
    // expected-error @+1 {{scf.for: a nest has affine loops, loads and stores alone}}
    scf.for %k = %first to %end step %one {
      %2 = memref.load %columns[%k] : memref<?xi32>
      %column = arith.index_cast %2 : i32 to index
      %3 = memref.load %x[%column] : memref<?xf32>
      %4 = memref.load %a[%k] : memref<?xf32>
      %5 = arith.mulf %3, %4 : f32
      %6 = affine.load %y[%i] : memref<?xf32>
      %7 = arith.addf %6, %5 : f32
      affine.store %7, %y[%i] : memref<?xf32>
    }
  }
  return
}
