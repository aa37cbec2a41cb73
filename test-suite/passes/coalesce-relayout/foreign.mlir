// RUN: not stencil-opt %s --pass-pipeline='builtin.module(coalesce-relayout)' 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not stencil-opt %s --pass-pipeline='builtin.module(interleave-records)' 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed -e 's/{gpu.container_module}/{gpu.container_module, stencil.params = [], stencil.steps = affine_map<() -> (1)>}/' %s > %t.program
// RUN: stencil-opt %t.program --pass-pipeline='builtin.module(canonicalize)' -o %t.before
// RUN: stencil-opt %t.before --pass-pipeline='builtin.module(coalesce-relayout{always=on},interleave-records)' -o %t.after
// RUN: diff %t.before %t.after
// RUN: sed -e 's,// FIELD ,,' %t.program > %t.field
// RUN: not stencil-opt %t.field --pass-pipeline='builtin.module(coalesce-relayout{always=on})' 2>&1 | FileCheck %s --check-prefix=FIELD
// A kernel as upstream's `gpu-kernel-outlining` leaves it, which reads an array of structs of two numbers. Both
// passes decline a module without `stencil.params`. Without a field that has `stencil.layout` they change
// nothing. A layout without `stencil.member` is refused.

// NONE: error: the module is no stencil program: it lacks stencil.params
// FIELD: error: a field with stencil.layout needs stencil.member

module attributes {gpu.container_module} {
  // FIELD "stencil.grid"() {sym_name = "G", lower = affine_map<() -> (0)>, upper = affine_map<() -> (1023)>} : () -> ()
  // FIELD "stencil.field"() {sym_name = "P", grid = @G, type = f32, role = "const", stencil.layout = "aos"} : () -> ()
  func.func @first(%o: memref<1024xf32>, %p: memref<1024x2xf32>) {
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c128 = arith.constant 128 : index
    gpu.launch_func @kernels::@first blocks in (%c8, %c1, %c1) threads in (%c128, %c1, %c1)
        args(%o : memref<1024xf32>, %p : memref<1024x2xf32>)
    return
  }
  gpu.module @kernels {
    gpu.func @first(%o: memref<1024xf32>, %p: memref<1024x2xf32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 8, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c128 = arith.constant 128 : index
      %block = gpu.block_id x
      %thread = gpu.thread_id x
      %first = arith.muli %block, %c128 : index
      %i = arith.addi %first, %thread : index
      %x = memref.load %p[%i, %c0] : memref<1024x2xf32>
      memref.store %x, %o[%i] : memref<1024xf32>
      gpu.return
    }
  }
}
