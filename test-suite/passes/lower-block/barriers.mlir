// RUN: stencil-opt %s --pass-pipeline='builtin.module(tile-overlapped{tile=64 pyramid-height=1},lower-block,gpu.module(canonicalize,cse))' | FileCheck %s
// A barrier stands where one thread reads what another wrote, or writes what another read, and
// nowhere else. f and g read the loaded tiles and write buffers of their own (their types differ,
// so that neither can take a buffer of the other's), and h reads what both wrote.

module @three attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "B", grid = @G, type = f64, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "C", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(%w: f32 {stencil.read = @C, stencil.offset = array<i64: -1>}) -> f32 {
    return %w : f32
  }
  func.func private @g(%w: f32 {stencil.read = @C, stencil.offset = array<i64: -1>}) -> f64 {
    %r = arith.extf %w : f32 to f64
    return %r : f64
  }
  func.func private @h(%a: f32 {stencil.read = @A, stencil.offset = array<i64: -1>}, %b: f64 {stencil.read = @B, stencil.offset = array<i64: -1>}) -> f32 {
    %t = arith.truncf %b : f64 to f32
    %r = arith.addf %a, %t : f32
    return %r : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
  "stencil.apply"() {updates = [@B], pieces = [{function = @g, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
  "stencil.apply"() {updates = [@C], pieces = [{function = @h, lower = affine_map<()[n] -> (1)>, upper = affine_map<()[n] -> (n - 1)>}]} : () -> ()
}

// CHECK: gpu.func @three_1(
// CHECK-SAME: workgroup(%[[a:[a-z0-9]+]] : memref<65xf32, {{[^>]*>>}} {llvm.align = 16 : i64}, %[[b:[a-z0-9]+]] : memref<65xf64, {{[^>]*>>}} {llvm.align = 16 : i64}, %[[c:[a-z0-9]+]] : memref<66xf32, {{[^>]*>>}} {llvm.align = 16 : i64}, %[[a1:[a-z0-9]+]] : memref<65xf32, {{[^>]*>>}} {llvm.align = 16 : i64}, %[[b1:[a-z0-9]+]] : memref<65xf64, {{[^>]*>>}} {llvm.align = 16 : i64}) kernel
// CHECK: scf.if
// CHECK-NOT: gpu.barrier
// CHECK: memref.store %{{.*}}, %[[a]]
// CHECK-NOT: gpu.barrier
// CHECK: memref.store %{{.*}}, %[[b]]
// CHECK-NOT: gpu.barrier
// CHECK: memref.store %{{.*}}, %[[c]]
// CHECK: gpu.barrier
// CHECK: memref.store %{{.*}}, %[[a1]]
// CHECK-NOT: gpu.barrier
// CHECK: memref.store %{{.*}}, %[[b1]]
// CHECK: gpu.barrier
// CHECK: memref.load %[[a1]]
// CHECK: memref.load %[[b1]]
// CHECK-NOT: gpu.barrier
// CHECK: } else {
