// RUN: stencil-opt %s --pass-pipeline='builtin.module(annotate-loops)' | FileCheck %s
// CHECK: #[[ANNOTATION:.*]] = #llvm.loop_annotation<licm = #{{.*}}>
// CHECK: llvm.br ^bb1 {loop_annotation = #[[ANNOTATION]]}
// CHECK: llvm.br ^bb2{{$}}
gpu.module @kernels {
  llvm.func @f() {
    llvm.br ^bb1 {llvm.loop_annotation = #llvm.loop_annotation<licm = <disable = true>>}
  ^bb1:
    llvm.br ^bb2
  ^bb2:
    llvm.return
  }
}
