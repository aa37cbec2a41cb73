// RUN: stencil-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(lower-affine-nest)'
// What lower-affine-nest declines, and where.

func.func @crosses(%a: memref<8xf32>, %s: memref<1xf32>) {
  // expected-error @+1 {{the value of this load is used in another launch, and its array is stored to; load the value where it is used}}
  %0 = affine.load %s[0] : memref<1xf32>
  affine.for %i = 0 to 8 {
    affine.store %0, %a[%i] : memref<8xf32>
  }
  affine.store %0, %s[0] : memref<1xf32>
  return
}

// -----

func.func @outside(%a: memref<8xf32>) {
  affine.for %i = 0 to 8 {
    // expected-error @+1 {{`arg0` is accessed outside of its dimension 0; change the index or the bounds}}
    %0 = affine.load %a[%i + 1] : memref<8xf32>
    affine.store %0, %a[%i] : memref<8xf32>
  }
  return
}

// -----

func.func @computed(%a: memref<?xf32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  %m = arith.muli %n, %n : index
  // expected-error @+1 {{which is neither an index argument nor an extent; write it as an affine map of these}}
  affine.for %i = 0 to %m {
    affine.store %zero, %a[%i] : memref<?xf32>
  }
  return
}

// -----

// expected-error @+1 {{the array `A` has 4 dimensions, and an array has 1 to 3; join some of them}}
func.func @rank(%a: memref<2x2x2x2xf32> {stencil.name = "A"}) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 2 {
    affine.store %zero, %a[%i, 0, 0, 0] : memref<2x2x2x2xf32>
  }
  return
}

// -----

func.func @carried(%a: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  // expected-error @+1 {{affine.for: a value is carried by the loop; make the loop an affine.for that keeps the value in an array}}
  %sum = affine.for %i = 0 to 8 iter_args(%s = %zero) -> f32 {
    %0 = affine.load %a[%i] : memref<8xf32>
    %1 = arith.addf %s, %0 : f32
    affine.yield %1 : f32
  }
  affine.store %sum, %a[0] : memref<8xf32>
  return
}

// -----

module {
  func.func @one(%a: memref<8xf32>) {
    %zero = arith.constant 0.0 : f32
    affine.for %i = 0 to 8 {
      affine.store %zero, %a[%i] : memref<8xf32>
    }
    return
  }
  // expected-error @+1 {{a module of affine loops has one function; move the others to their own modules}}
  func.func @two() {
    return
  }
}

// -----

// expected-error @+1 {{the name `A` of argument 1 is another argument's too; give each argument a stencil.name of its own}}
func.func @names(%a: memref<8xf32> {stencil.name = "A"}, %b: memref<8xf32> {stencil.name = "A"}) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.store %zero, %a[%i] : memref<8xf32>
  }
  return
}

// -----

// expected-error @+1 {{the function has results; let it store them to an array}}
func.func @result(%a: memref<8xf32>) -> f32 {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.store %zero, %a[%i] : memref<8xf32>
  }
  return %zero : f32
}

// -----

// expected-error @+1 {{`p q` can't name a size; choose letters, digits and _}}
func.func @extent(%a: memref<?xf32> {stencil.extents = ["p q"]}) {
  affine.for %i = 0 to 8 {
    %0 = affine.load %a[%i] : memref<?xf32>
    affine.store %0, %a[%i] : memref<?xf32>
  }
  return
}

// -----

func.func @wide(%a: memref<8xf32>) {
  affine.for %i = 0 to 8 {
    %0 = affine.load %a[%i] : memref<8xf32>
    // expected-error @+1 {{arith.fptosi has a result of type i128; the values of affine loops have the types index, i1, i8}}
    %1 = arith.fptosi %0 : f32 to i128
    %2 = arith.sitofp %1 : i128 to f32
    affine.store %2, %a[%i] : memref<8xf32>
  }
  return
}

// -----

func.func @downward(%a: memref<8xf32>) {
  affine.for %i = 0 to 8 {
    %0 = affine.load %a[%i] : memref<8xf32>
    // expected-error @+1 {{arith.truncf rounds downward, and all operations round to nearest; leave the mode out}}
    %1 = arith.truncf %0 downward : f32 to bf16
    %2 = arith.extf %1 : bf16 to f32
    affine.store %2, %a[%i] : memref<8xf32>
  }
  return
}

// -----

func.func @infinite(%a: memref<8xf32>, %b: memref<8xi32>) {
  affine.for %i = 0 to 8 {
    %0 = affine.load %a[%i] : memref<8xf32>
    // expected-error @+1 {{math.isinf has no code on a device; of math there are absf, acos,}}
    %1 = math.isinf %0 : f32
    %2 = arith.extui %1 : i1 to i32
    affine.store %2, %b[%i] : memref<8xi32>
  }
  return
}
