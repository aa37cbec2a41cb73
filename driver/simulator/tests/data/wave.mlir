// Row by row: block b makes row b + 1 of A from row b, 32 cells at a time, as soon as block b - 1
// has signalled them. Flags F[b, chunk] count up from 0.
module @wave attributes {gpu.container_module, tiled.index_width = 64 : i64} {
  gpu.module @kernels {
    gpu.func @wave(%A: memref<f32> {tiled.binding = "read_write", tiled.name = "A"},
                   %F: memref<i32> {tiled.binding = "read_write", tiled.name = "F"},
                   %N: index {tiled.binding = "param", tiled.name = "N"},
                   %M: index {tiled.binding = "param", tiled.name = "M"}) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>, tiled.grid = affine_map<()[n, m] -> (n - 1)>,
                    tiled.per_thread = array<i64: 1, 1>, tiled.steps = 1 : i64, tiled.strategy = "wave",
                    tiled.tile = array<i64: 1, 32>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c32 = arith.constant 32 : index
      %epoch = arith.constant 1 : i32
      %half = arith.constant 5.0e-01 : f32
      %one = arith.constant 1.0 : f32
      %rows = memref.reinterpret_cast %A to offset: [0], sizes: [%N, %M], strides: [%M, 1] : memref<f32> to memref<?x?xf32, strided<[?, 1]>>
      %chunks = affine.apply affine_map<()[m] -> (m ceildiv 32)>()[%M]
      %count = affine.apply affine_map<()[n, m] -> (n * (m ceildiv 32))>()[%N, %M]
      %flags = memref.reinterpret_cast %F to offset: [0], sizes: [%count], strides: [1] : memref<i32> to memref<?xi32, strided<[1]>>
      %b = gpu.block_id x
      %t = gpu.thread_id x
      %next = arith.addi %b, %c1 : index
      %first = arith.cmpi eq, %t, %c0 : index
      %later = arith.cmpi sgt, %b, %c0 : index
      %waits = arith.andi %first, %later : i1
      scf.for %c = %c0 to %chunks step %c1 {
        %mine = affine.apply affine_map<(b, c)[m] -> (b * (m ceildiv 32) + c)>(%b, %c)[%M]
        %theirs = affine.apply affine_map<(b, c)[m] -> ((b - 1) * (m ceildiv 32) + c)>(%b, %c)[%M]
        scf.if %waits {
          "peer.wait"(%flags, %theirs, %epoch) : (memref<?xi32, strided<[1]>>, index, i32) -> ()
        }
        gpu.barrier
        %start = arith.muli %c, %c32 : index
        %j = arith.addi %start, %t : index
        %inside = arith.cmpi slt, %j, %M : index
        scf.if %inside {
          %old = memref.load %rows[%b, %j] : memref<?x?xf32, strided<[?, 1]>>
          %scaled = arith.mulf %old, %half : f32
          %new = arith.addf %scaled, %one : f32
          memref.store %new, %rows[%next, %j] : memref<?x?xf32, strided<[?, 1]>>
        }
        gpu.barrier
        scf.if %first {
          "peer.signal"(%flags, %mine, %epoch) : (memref<?xi32, strided<[1]>>, index, i32) -> ()
        }
      }
      gpu.return
    }
  }
}
