// RUN: stencil-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(lower-affine-nest)'
// The limits of a nest: numbers beyond them are refused with their place.

func.func @no_step(%a: memref<8xf32>) {
  // expected-error @+1 {{affine.for: a step is 1 to 2^48, and this one is 0}}
  affine.for %i = 0 to 8 step 0 {
    %0 = affine.load %a[%i] : memref<8xf32>
    affine.store %0, %a[%i] : memref<8xf32>
  }
  return
}

// -----

func.func @no_steps(%a: memref<8x8xf32>) {
  // expected-error @+1 {{affine.parallel: a step is 1 to 2^48, and this one is 0}}
  affine.parallel (%i, %j) = (0, 0) to (8, 8) step (1, 0) {
    %0 = affine.load %a[%i, %j] : memref<8x8xf32>
    affine.store %0, %a[%i, %j] : memref<8x8xf32>
  }
  return
}

// -----

func.func @far_step(%a: memref<8xf32>) {
  // expected-error @+1 {{a step is 1 to 2^48, and this one is 281474976710657}}
  affine.for %i = 0 to 8 step 281474976710657 {
    %0 = affine.load %a[%i] : memref<8xf32>
    affine.store %0, %a[%i] : memref<8xf32>
  }
  return
}

// -----

func.func @far_bound(%a: memref<8xf32>) {
  // expected-error @+1 {{constants and factors of bounds lie within 2^48 of 0, and one is 281474976710657}}
  affine.for %i = 0 to 281474976710657 {
    %0 = affine.load %a[3] : memref<8xf32>
    affine.store %0, %a[3] : memref<8xf32>
  }
  return
}

// -----

func.func @far_factor(%a: memref<8xf32>, %n: index) {
  // expected-error @+1 {{constants and factors of bounds lie within 2^48 of 0, and one is -281474976710657}}
  affine.for %i = max affine_map<()[s] -> (0, s * -281474976710657)>()[%n] to 8 {
    %0 = affine.load %a[%i] : memref<8xf32>
    affine.store %0, %a[%i] : memref<8xf32>
  }
  return
}

// -----

// expected-error @+1 {{the array `A` has an extent of 281474976710657, and an extent is at most 2^48}}
func.func @far_extent(%a: memref<281474976710657xf32> {stencil.name = "A"}) {
  affine.for %i = 0 to 8 {
    %0 = affine.load %a[%i] : memref<281474976710657xf32>
    affine.store %0, %a[%i] : memref<281474976710657xf32>
  }
  return
}

// -----

func.func @far_value(%a: memref<8xi64>, %n: index) {
  affine.for %i = 0 to 8 {
    // expected-error @+1 {{the value may leave 64 bits; use smaller factors and bounds}}
    %v = affine.apply affine_map<(d0)[s] -> (s * 1048576 + d0)>(%i)[%n]
    %0 = arith.index_cast %v : index to i64
    affine.store %0, %a[%i] : memref<8xi64>
  }
  return
}
