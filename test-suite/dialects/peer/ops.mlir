// RUN: stencil-opt %s | stencil-opt | FileCheck %s
// The operations of the peer dialect are printed as they were read.

// CHECK: func.func @exchange(%[[flags:.+]]: memref<?xi32>, %[[own:.+]]: index, %[[other:.+]]: index, %[[count:.+]]: i32)
func.func @exchange(%flags: memref<?xi32>, %own: index, %other: index, %count: i32) {
  // CHECK: "peer.signal"(%[[flags]], %[[own]], %[[count]]) : (memref<?xi32>, index, i32) -> ()
  "peer.signal"(%flags, %own, %count) : (memref<?xi32>, index, i32) -> ()
  // CHECK: "peer.wait"(%[[flags]], %[[other]], %[[count]]) : (memref<?xi32>, index, i32) -> ()
  "peer.wait"(%flags, %other, %count) : (memref<?xi32>, index, i32) -> ()
  // CHECK: %{{.*}} = "peer.arrive"(%[[flags]], %[[own]], %[[count]]) : (memref<?xi32>, index, i32) -> i32
  %before = "peer.arrive"(%flags, %own, %count) : (memref<?xi32>, index, i32) -> i32
  return
}
