// RUN: not stencil-opt %s --pass-pipeline=transform-interpreter -o %t 2>&1 | FileCheck %s
// RUN: not stencil-opt %s --pass-pipeline='builtin.module(gpu.module(scf-for-loop-peeling))' 2>&1 \
// RUN:     | FileCheck %s --check-prefix=NESTED
// RUN: stencil-opt %s --pass-pipeline='builtin.module(func.func(canonicalize,cse),symbol-dce)' -o %t
// Scripts of the transform dialect run any pass, also one that replaces a file.

// CHECK: transform-interpreter is no pass of stencilc, and none of upstream's that can stand here; stencil-opt --help lists both, and mlir-opt runs others between two calls
// NESTED: scf-for-loop-peeling is no pass of stencilc
func.func @f(%n: index) -> index {
  return %n : index
}
