// RUN: stencilc %programs/heat2d.stencil --emit=stencil -o %t
// RUN: stencil-opt %t --pass-pipeline='builtin.module(tile-overlapped{strategy=naive tile=4,32},lower-naive,gpu.module(canonicalize,cse))' | FileCheck %s
// Neighbours of the updated field are read, so the kernel writes the other buffer, and copies the
// points that no piece covers. Sizes are arguments; blocks are counted along x alone.

// CHECK: #[[blocks:.+]] = affine_map<()[s0, s1] -> ((s0 ceildiv 4) * (s1 ceildiv 32))>
// CHECK: gpu.func @heat2d_0(%[[a:.+]]: memref<f32> {llvm.noalias, llvm.readonly, tiled.binding = "read", tiled.name = "A"}, %[[k:.+]]: memref<f32> {llvm.noalias, llvm.readonly, tiled.binding = "read", tiled.name = "K"}, %[[next:.+]]: memref<f32> {llvm.noalias, tiled.binding = "write", tiled.name = "A"},
// CHECK-SAME: %[[n:.+]]: index {tiled.binding = "param", tiled.name = "N"}, %[[m:.+]]: index {tiled.binding = "param", tiled.name = "M"}, %[[alpha:.+]]: f32 {tiled.binding = "scalar", tiled.name = "alpha"}, %{{.*}}: i64 {tiled.binding = "step"})
// CHECK-SAME: known_block_size = array<i32: 32, 4, 1>,{{.*}} tiled.grid = #[[blocks]]
// CHECK: %[[A:.+]] = memref.reinterpret_cast %[[a]] to offset: [0], sizes: [%[[n]], %[[m]]], strides: [%[[m]], 1]
// CHECK: %[[K:.+]] = memref.reinterpret_cast %[[k]]
// CHECK: %[[Next:.+]] = memref.reinterpret_cast %[[next]]
// CHECK: scf.if %[[in_grid:.+]] {
// CHECK:   %[[value:.+]] = scf.if %[[in_piece:.+]] -> (f32) {
// CHECK-COUNT-6: memref.load %{{.+}}[
// CHECK-NOT: memref.load
// CHECK:     scf.yield
// CHECK:   } else {
// CHECK:     %[[kept:.+]] = memref.load %[[A]]
// CHECK:     scf.yield %[[kept]]
// CHECK:   }
// CHECK:   memref.store %[[value]], %[[Next]]
// CHECK-NOT: memref.store
// CHECK: gpu.return
