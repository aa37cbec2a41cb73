// RUN: stencil-opt %s --split-input-file --pass-pipeline='builtin.module(tile-affine-nest)' | FileCheck %s
// Launches that are left alone, each with its reason, and one that is not.

// CHECK-LABEL: func.func @still
// CHECK: {tiled.not_tiled = "it has no loop in time"}
func.func @still(%a: memref<?xf32> {stencil.extents = ["N"]}, %n: index {stencil.name = "N"}) {
  affine.for %i = 0 to %n {
    %0 = affine.load %a[%i] : memref<?xf32>
    %1 = arith.addf %0, %0 : f32
    affine.store %1, %a[%i] : memref<?xf32>
  }
  return
}

// -----

// The loop in time ends where its row meets the diagonal.
// CHECK-LABEL: func.func @triangle
// CHECK: {tiled.not_tiled = "the bounds of its loop in time differ between threads, which would not all reach its barriers"}
func.func @triangle(%x: memref<8xf32>, %a: memref<8x8xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to affine_map<(i) -> (i)>(%i) {
      %0 = affine.load %x[%i] : memref<8xf32>
      %1 = affine.load %a[%i, %j] : memref<8x8xf32>
      %2 = arith.addf %0, %1 : f32
      affine.store %2, %x[%i] : memref<8xf32>
    }
  }
  return
}

// -----

// All accesses are coalesced, and nothing is read twice but the sum.
// CHECK-LABEL: func.func @coalesced
// CHECK: {tiled.not_tiled = "no reference of its loop in time is worth a copy"}
func.func @coalesced(%x: memref<8x8xf32>, %a: memref<8x8x8xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 8 {
      affine.for %k = 0 to 8 {
        %0 = affine.load %x[%i, %j] : memref<8x8xf32>
        %1 = affine.load %a[%k, %i, %j] : memref<8x8x8xf32>
        %2 = arith.addf %0, %1 : f32
        affine.store %2, %x[%i, %j] : memref<8x8xf32>
      }
    }
  }
  return
}

// -----

// With one axis of threads, more threads load than compute.
// CHECK-LABEL: func.func @streamed
// CHECK: {tiled.nest_tile = {copiers = 8 : i64, per_thread = array<i64: 1>, threads = array<i64: 32>, time = 8 : i64}}
func.func @streamed(%x: memref<8xf32>, %a: memref<8x8xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 8 {
      %0 = affine.load %x[%i] : memref<8xf32>
      %1 = affine.load %a[%j, %i] : memref<8x8xf32>
      %2 = arith.addf %0, %1 : f32
      affine.store %2, %x[%i] : memref<8xf32>
    }
  }
  return
}

// -----

// The launch stores to the array that it reads, so a copy could hold cells that other threads change.
// CHECK-LABEL: func.func @stored
// CHECK: {tiled.not_tiled = "no reference of its loop in time is worth a copy"}
func.func @stored(%a: memref<16x8xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 8 {
      %0 = affine.load %a[%i + 8, %j] : memref<16x8xf32>
      %1 = affine.load %a[%i, 0] : memref<16x8xf32>
      %2 = arith.addf %0, %1 : f32
      affine.store %2, %a[%i, 0] : memref<16x8xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func.func @imperfect
// CHECK: {tiled.not_tiled = "its loops in space are no perfect nest"}
func.func @imperfect(%c: memref<8x8xf32>, %x: memref<8xf32>, %a: memref<8x8xf32>, %b: memref<8x8xf32>) {
  affine.for %i = 0 to 8 {
    %0 = affine.load %x[%i] : memref<8xf32>
    affine.for %j = 0 to 8 {
      affine.for %l = 0 to 8 {
        %1 = affine.load %a[%i, %l] : memref<8x8xf32>
        %2 = affine.load %b[%l, %j] : memref<8x8xf32>
        %3 = arith.mulf %1, %2 : f32
        %4 = affine.load %c[%i, %j] : memref<8x8xf32>
        %5 = arith.addf %3, %4 : f32
        %6 = arith.addf %5, %0 : f32
        affine.store %6, %c[%i, %j] : memref<8x8xf32>
      }
    }
  }
  return
}

// -----

// CHECK-LABEL: func.func @stepped
// CHECK: {tiled.not_tiled = "its loop in time has a step"}
func.func @stepped(%x: memref<8xf32>, %a: memref<8x8xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 8 step 2 {
      %0 = affine.load %x[%i] : memref<8xf32>
      %1 = affine.load %a[%i, %j] : memref<8x8xf32>
      %2 = arith.addf %0, %1 : f32
      affine.store %2, %x[%i] : memref<8xf32>
    }
  }
  return
}
