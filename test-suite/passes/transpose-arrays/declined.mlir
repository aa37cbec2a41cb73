// RUN: stencil-opt %s --split-input-file --pass-pipeline='builtin.module(transpose-arrays)' -o %t.mlir
// RUN: FileCheck %s <%t.mlir
// RUN: stencil-opt %t.mlir --split-input-file --pass-pipeline='builtin.module(transpose-arrays)' -o %t2.mlir
// RUN: diff %t.mlir %t2.mlir
// RUN: stencil-opt %s --split-input-file --pass-pipeline='builtin.module(transpose-arrays{always=on})' | FileCheck %s --check-prefix=ALWAYS
// Arrays that keep their order, each with its reason.

// One sweep saves less than the transform moves.
// CHECK-LABEL: func.func @once
// CHECK-SAME: tiled.layout_note = "kernels use it as it is: the order 1, 0 saves 27.1 bytes a cell, its transform moves 72"
// CHECK-NOT: memref.alloc
// ALWAYS-LABEL: func.func @once
// ALWAYS-SAME: tiled.layout_note = "transposed, as it was asked for: the order 1, 0 saves 27.1 bytes a cell, its transform moves 72"
// ALWAYS: memref.alloc() {tiled.transposed = "arg0"} : memref<32x64xf32>
func.func @once(%a: memref<64x32xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 1 to 32 {
      %0 = affine.load %a[%i, %j - 1] : memref<64x32xf32>
      affine.store %0, %a[%i, %j] : memref<64x32xf32>
    }
  }
  return
}

// -----

// What one nest stores by rows, another stores by columns.
// CHECK-LABEL: func.func @both
// CHECK-SAME: tiled.layout_note = "kernels use it as it is: no other order moves fewer bytes past the level 1 caches"
// CHECK-NOT: memref.alloc
func.func @both(%a: memref<64x64xf32>) {
  affine.for %t = 0 to 100 {
    affine.for %i = 0 to 64 {
      affine.for %j = 1 to 64 {
        %0 = affine.load %a[%i, %j - 1] : memref<64x64xf32>
        affine.store %0, %a[%i, %j] : memref<64x64xf32>
      }
    }
    affine.for %i = 0 to 64 {
      affine.for %j = 1 to 64 {
        %0 = affine.load %a[%j - 1, %i] : memref<64x64xf32>
        affine.store %0, %a[%j, %i] : memref<64x64xf32>
      }
    }
  }
  return
}

// -----

// Loads along a row keep their sector in a cache.
// CHECK-LABEL: func.func @loads
// CHECK-SAME: tiled.layout_note = "kernels use it as it is: no other order moves fewer bytes past the level 1 caches"
// CHECK-NOT: memref.alloc
func.func @loads(%x: memref<64xf32>, %a: memref<64x64xf32>) {
  affine.for %t = 0 to 100 {
    affine.for %i = 0 to 64 {
      affine.for %j = 0 to 64 {
        %0 = affine.load %a[%i, %j] : memref<64x64xf32>
        %1 = affine.load %x[%i] : memref<64xf32>
        %2 = arith.addf %0, %1 : f32
        affine.store %2, %x[%i] : memref<64xf32>
      }
    }
  }
  return
}

// -----

// The value is loaded once for two launches; a nest that fills a transpose would store to its array.
// CHECK-LABEL: func.func @shared
// CHECK-SAME: tiled.layout_note = "kernels use it as it is: a value of it is loaded for several launches"
// CHECK-NOT: memref.alloc
// ALWAYS-LABEL: func.func @shared
// ALWAYS-NOT: tiled.transposed = "arg0"
// ALWAYS: return
func.func @shared(%b: memref<32x64xf32>, %x: memref<32xf32>) {
  %first = affine.load %b[0, 0] : memref<32x64xf32>
  affine.for %t = 0 to 20 {
    affine.for %i = 0 to 32 {
      affine.for %k = 0 to 8 {
        %0 = affine.load %b[%i, %k * 8] : memref<32x64xf32>
        %1 = affine.load %x[%i] : memref<32xf32>
        %2 = arith.addf %0, %1 : f32
        %3 = arith.addf %2, %first : f32
        affine.store %3, %x[%i] : memref<32xf32>
      }
    }
  }
  return
}

// -----

// The copies of a tile that a loop states may not fit another order.
// CHECK-LABEL: func.func @tiled
// CHECK-SAME: tiled.layout_note = "kernels use it as it is: a loop that uses it states its tile"
// CHECK-NOT: memref.alloc
func.func @tiled(%b: memref<32x64xf32>, %x: memref<32xf32>) {
  affine.for %i = 0 to 32 {
    affine.for %t = 0 to 20 {
      affine.for %k = 0 to 8 {
        %0 = affine.load %b[%i, %k * 8] : memref<32x64xf32>
        %1 = affine.load %x[%i] : memref<32xf32>
        %2 = arith.addf %0, %1 : f32
        affine.store %2, %x[%i] : memref<32xf32>
      }
    }
  } {tiled.nest_tile = {per_thread = array<i64: 1>, threads = array<i64: 32>, time = 4 : i64}}
  return
}

// -----

// CHECK-LABEL: func.func @asked
// CHECK: memref.alloc() {tiled.layout_note = "kernels use it as it is: its extent along a dimension that is no constant is asked for"}
// CHECK: return
func.func @asked(%d: index) {
  %a = memref.alloc() : memref<64x32xf32>
  %extent = memref.dim %a, %d : memref<64x32xf32>
  affine.for %i = 0 to 64 {
    affine.for %j = 1 to 32 {
      %0 = affine.load %a[%i, %j - 1] : memref<64x32xf32>
      affine.store %0, %a[%i, %j] : memref<64x32xf32>
    }
  }
  return
}
