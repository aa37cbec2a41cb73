// RUN: stencil-opt %s --split-input-file --verify-diagnostics

func.func @rank(%flags: memref<4x4xi32>, %i: index, %count: i32) {
  // expected-error @+1 {{peer.signal: flags must be a memref of one dimension of i32}}
  "peer.signal"(%flags, %i, %count) : (memref<4x4xi32>, index, i32) -> ()
  return
}

// -----

func.func @element(%flags: memref<?xi64>, %i: index, %count: i32) {
  // expected-error @+1 {{peer.wait: flags must be a memref of one dimension of i32}}
  "peer.wait"(%flags, %i, %count) : (memref<?xi64>, index, i32) -> ()
  return
}

// -----

// Every wrong operation is told of: the second as a note of the first.
func.func @both(%flags: memref<?xf32>, %i: index, %count: i32) {
  // expected-error @+1 {{peer.signal: flags}}
  "peer.signal"(%flags, %i, %count) : (memref<?xf32>, index, i32) -> ()
  // expected-note @+1 {{peer.wait: flags}}
  "peer.wait"(%flags, %i, %count) : (memref<?xf32>, index, i32) -> ()
  return
}

// -----

func.func @no_memref(%flags: i64, %i: index, %count: i32) {
  // expected-error @+1 {{expected base type 'builtin.memref' but got 'builtin.integer'}}
  "peer.signal"(%flags, %i, %count) : (i64, index, i32) -> ()
  return
}

// -----

func.func @index(%flags: memref<?xi32>, %i: i32, %count: i32) {
  // expected-error @+1 {{expected 'index' but got 'i32'}}
  "peer.wait"(%flags, %i, %count) : (memref<?xi32>, i32, i32) -> ()
  return
}

// -----

func.func @count(%flags: memref<?xi32>, %i: index, %count: i64) {
  // expected-error @+1 {{expected 'i32' but got 'i64'}}
  "peer.wait"(%flags, %i, %count) : (memref<?xi32>, index, i64) -> ()
  return
}

// -----

func.func @count(%flags: memref<?xi32>, %i: index) {
  // expected-error @+1 {{op expects exactly 3 operands, but got 2}}
  "peer.signal"(%flags, %i) : (memref<?xi32>, index) -> ()
  return
}

// -----

func.func @arrive(%flags: memref<?xi64>, %i: index, %count: i32) {
  // expected-error @+1 {{peer.arrive: flags must be a memref of one dimension of i32}}
  %before = "peer.arrive"(%flags, %i, %count) : (memref<?xi64>, index, i32) -> i32
  return
}
