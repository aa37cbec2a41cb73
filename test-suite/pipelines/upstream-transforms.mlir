// RUN: stencil-opt %s --verify-diagnostics --pass-pipeline=transform-interpreter
// RUN: not stencil-opt %s --pass-pipeline=transform-preload-library,transform-interpreter 2>&1 \
// RUN:     | FileCheck %s
// RUN: stencil-opt %s --pass-pipeline=canonicalize -o %t

// MLIR would end the process on some kernels.
// CHECK: the pass transform-preload-library can't be used
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
    %kernels = transform.structured.match ops{["gpu.func"]} in %module
        : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %kernels {
      // expected-error@+1 {{eliminate_barriers can't be used: it ends the process}}
      transform.apply_patterns.gpu.eliminate_barriers
    } : !transform.any_op
    transform.yield
  }
}
