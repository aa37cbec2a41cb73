// RUN: stencil-opt %s --pass-pipeline='builtin.module(eliminate-barriers)' -o %t.after
// RUN: stencil-opt %s -o %t.before
// RUN: diff %t.before %t.after
// Barriers that order something, or may do so: the pass changes nothing.

!s = memref<32xf32, #gpu.address_space<workgroup>>

module {
  gpu.module @other {
    // The elements of others; in the next iteration too.
    gpu.func @others(%v: f32, %n: index) workgroup(%s : !s) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %x = gpu.thread_id x
      scf.for %i = %c0 to %n step %c1 {
        memref.store %v, %s[%x] : !s
        gpu.barrier
        %a = memref.load %s[%i] : !s
        gpu.barrier
      }
      gpu.return
    }

    // Around a branch: its part behind the barrier runs before that of the next iteration.
    gpu.func @around(%v: f32, %n: index, %is: i1) workgroup(%s : !s) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %x = gpu.thread_id x
      scf.for %i = %c0 to %n step %c1 {
        scf.if %is {
          gpu.barrier
          %a = memref.load %s[%i] : !s
          memref.store %v, %s[%x] : !s
        }
      }
      gpu.return
    }

    // Two arguments in global memory may be one.
    gpu.func @arguments(%a: memref<?xf32>, %b: memref<?xf32>) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>} {
      %x = gpu.thread_id x
      %v = memref.load %a[%x] : memref<?xf32>
      gpu.barrier
      memref.store %v, %b[%x] : memref<?xf32>
      gpu.return
    }

    // The same number in another view of a buffer is another element.
    gpu.func @views(%v: f32) workgroup(%s : !s) kernel
        attributes {known_block_size = array<i32: 16, 1, 1>} {
      %x = gpu.thread_id x
      %t = memref.subview %s[1] [16] [1] : !s to memref<16xf32, strided<[1], offset: 1>, #gpu.address_space<workgroup>>
      memref.store %v, %s[%x] : !s
      gpu.barrier
      %a = memref.load %t[%x] : memref<16xf32, strided<[1], offset: 1>, #gpu.address_space<workgroup>>
      gpu.return
    }

    // A block with threads along an axis that no index names; a size that is not known.
    gpu.func @axes(%v: f32) workgroup(%s : !s) kernel {
      %x = gpu.thread_id x
      memref.store %v, %s[%x] : !s
      gpu.barrier
      %a = memref.load %s[%x] : !s
      gpu.return
    }

    // Vectors reach into the elements of others.
    gpu.func @vectors(%v: vector<2xf32>) workgroup(%s : !s) kernel
        attributes {known_block_size = array<i32: 16, 1, 1>} {
      %x = gpu.thread_id x
      vector.store %v, %s[%x] : !s, vector<2xf32>
      gpu.barrier
      %a = vector.load %s[%x] : !s, vector<2xf32>
      gpu.return
    }

    // Operations that may do anything.
    gpu.func @unknown(%v: f32) workgroup(%s : !s) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>} {
      %x = gpu.thread_id x
      memref.store %v, %s[%x] : !s
      gpu.barrier
      %b = memref.atomic_rmw addf %v, %s[%x] : (f32, !s) -> f32
      gpu.return
    }
  }
}
