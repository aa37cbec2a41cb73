// Kernels for plans by hand: see tests/plans.rs.
module @plans attributes {gpu.container_module, tiled.index_width = 64 : i64} {
  gpu.module @kernels {
    gpu.func @smooth(%a: memref<f32> {tiled.binding = "read", tiled.name = "A"},
                     %b: memref<f32> {tiled.binding = "write", tiled.name = "B"},
                     %N: index {tiled.binding = "param", tiled.name = "N"}) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>, tiled.grid = affine_map<() -> (1)>,
                    tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64,
                    tiled.strategy = "hand", tiled.tile = array<i64: 32>} {
      %from = memref.reinterpret_cast %a to offset: [0], sizes: [%N], strides: [1]
        : memref<f32> to memref<?xf32, strided<[1]>>
      %to = memref.reinterpret_cast %b to offset: [0], sizes: [%N], strides: [1]
        : memref<f32> to memref<?xf32, strided<[1]>>
      %t = gpu.thread_id x
      %block = gpu.block_id x
      %i = affine.apply affine_map<(b, t) -> (32 * b + t)>(%block, %t)
      %inside = arith.cmpi slt, %i, %N : index
      %half = arith.constant 0.5 : f32
      %c0 = arith.constant 0 : index
      %last = affine.apply affine_map<()[n] -> (n - 1)>()[%N]
      scf.if %inside {
        %first = arith.cmpi eq, %i, %c0 : index
        %final = arith.cmpi eq, %i, %last : index
        %end = arith.ori %first, %final : i1
        %new = scf.if %end -> f32 {
          %old = memref.load %from[%i] : memref<?xf32, strided<[1]>>
          scf.yield %old : f32
        } else {
          %before = affine.apply affine_map<(i) -> (i - 1)>(%i)
          %after = affine.apply affine_map<(i) -> (i + 1)>(%i)
          %x = memref.load %from[%before] : memref<?xf32, strided<[1]>>
          %y = memref.load %from[%after] : memref<?xf32, strided<[1]>>
          %sum = arith.addf %x, %y : f32
          %mean = arith.mulf %sum, %half : f32
          scf.yield %mean : f32
        }
        memref.store %new, %to[%i] : memref<?xf32, strided<[1]>>
      }
      gpu.return
    }
    gpu.func @leap(%p: memref<f32> {tiled.binding = "read", tiled.name = "P"},
                   %u: memref<f32> {tiled.binding = "read", tiled.name = "U"},
                   %v: memref<f32> {tiled.binding = "write", tiled.name = "V"},
                   %N: index {tiled.binding = "param", tiled.name = "N"}) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>, tiled.grid = affine_map<() -> (1)>,
                    tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64,
                    tiled.strategy = "hand", tiled.tile = array<i64: 32>} {
      %before = memref.reinterpret_cast %p to offset: [0], sizes: [%N], strides: [1]
        : memref<f32> to memref<?xf32, strided<[1]>>
      %now = memref.reinterpret_cast %u to offset: [0], sizes: [%N], strides: [1]
        : memref<f32> to memref<?xf32, strided<[1]>>
      %next = memref.reinterpret_cast %v to offset: [0], sizes: [%N], strides: [1]
        : memref<f32> to memref<?xf32, strided<[1]>>
      %t = gpu.thread_id x
      %block = gpu.block_id x
      %i = affine.apply affine_map<(b, t) -> (32 * b + t)>(%block, %t)
      %inside = arith.cmpi slt, %i, %N : index
      %two = arith.constant 2.0 : f32
      scf.if %inside {
        %x = memref.load %before[%i] : memref<?xf32, strided<[1]>>
        %y = memref.load %now[%i] : memref<?xf32, strided<[1]>>
        %z = arith.mulf %y, %two : f32
        %new = arith.subf %z, %x : f32
        memref.store %new, %next[%i] : memref<?xf32, strided<[1]>>
      }
      gpu.return
    }
    gpu.func @halve_all(%a: memref<f32> {tiled.binding = "read_write", tiled.name = "A"},
                        %N: index {tiled.binding = "param", tiled.name = "N"}) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>, tiled.grid = affine_map<() -> (1)>,
                    tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64,
                    tiled.strategy = "hand", tiled.tile = array<i64: 32>} {
      %cells = memref.reinterpret_cast %a to offset: [0], sizes: [%N], strides: [1]
        : memref<f32> to memref<?xf32, strided<[1]>>
      %t = gpu.thread_id x
      %block = gpu.block_id x
      %i = affine.apply affine_map<(b, t) -> (32 * b + t)>(%block, %t)
      %inside = arith.cmpi slt, %i, %N : index
      %half = arith.constant 0.5 : f32
      scf.if %inside {
        %x = memref.load %cells[%i] : memref<?xf32, strided<[1]>>
        %y = arith.mulf %x, %half : f32
        memref.store %y, %cells[%i] : memref<?xf32, strided<[1]>>
      }
      gpu.return
    }
    gpu.func @halve(%a: memref<f32> {tiled.binding = "read_write", tiled.name = "A"},
                    %r: memref<f32> {tiled.binding = "write", tiled.name = "R"},
                    %N: index {tiled.binding = "param", tiled.name = "N"}) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>, tiled.grid = affine_map<() -> (1)>,
                    tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64,
                    tiled.strategy = "hand", tiled.tile = array<i64: 32>} {
      %cells = memref.reinterpret_cast %a to offset: [0], sizes: [%N], strides: [1]
        : memref<f32> to memref<?xf32, strided<[1]>>
      %value = memref.reinterpret_cast %r to offset: [0], sizes: [1], strides: [1]
        : memref<f32> to memref<1xf32, strided<[1]>>
      %t = gpu.thread_id x
      %block = gpu.block_id x
      %i = affine.apply affine_map<(b, t) -> (32 * b + t)>(%block, %t)
      %inside = arith.cmpi slt, %i, %N : index
      %c0 = arith.constant 0 : index
      %first = arith.cmpi eq, %i, %c0 : index
      %half = arith.constant 0.5 : f32
      scf.if %inside {
        %x = memref.load %cells[%i] : memref<?xf32, strided<[1]>>
        %y = arith.mulf %x, %half : f32
        memref.store %y, %cells[%i] : memref<?xf32, strided<[1]>>
        scf.if %first {
          memref.store %y, %value[%c0] : memref<1xf32, strided<[1]>>
        }
      }
      gpu.return
    }
    gpu.func @to_pitch(%a: memref<f32> {tiled.binding = "read", tiled.name = "A"},
                       %b: memref<f32> {tiled.binding = "write", tiled.name = "B"},
                       %N: index {tiled.binding = "param", tiled.name = "N"},
                       %P: index {tiled.binding = "param", tiled.name = "P"}) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>, tiled.grid = affine_map<() -> (1)>,
                    tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64,
                    tiled.strategy = "hand", tiled.tile = array<i64: 32>} {
      %from_size = affine.apply affine_map<()[n, p] -> (8 * n)>()[%N, %P]
      %to_size = affine.apply affine_map<()[n, p] -> (8 * p)>()[%N, %P]
      %from = memref.reinterpret_cast %a to offset: [0], sizes: [%from_size], strides: [1]
        : memref<f32> to memref<?xf32, strided<[1]>>
      %to = memref.reinterpret_cast %b to offset: [0], sizes: [%to_size], strides: [1]
        : memref<f32> to memref<?xf32, strided<[1]>>
      %t = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %inside = arith.cmpi slt, %t, %N : index
      scf.for %row = %c0 to %c8 step %c1 {
        scf.if %inside {
          %here = affine.apply affine_map<(r, c)[n, p] -> (r * n + c)>(%row, %t)[%N, %P]
          %there = affine.apply affine_map<(r, c)[n, p] -> (r * p + c)>(%row, %t)[%N, %P]
          %x = memref.load %from[%here] : memref<?xf32, strided<[1]>>
          memref.store %x, %to[%there] : memref<?xf32, strided<[1]>>
        }
      }
      gpu.return
    }
    gpu.func @from_pitch(%a: memref<f32> {tiled.binding = "read", tiled.name = "A"},
                         %b: memref<f32> {tiled.binding = "write", tiled.name = "B"},
                         %N: index {tiled.binding = "param", tiled.name = "N"},
                         %P: index {tiled.binding = "param", tiled.name = "P"}) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>, tiled.grid = affine_map<() -> (1)>,
                    tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64,
                    tiled.strategy = "hand", tiled.tile = array<i64: 32>} {
      %from_size = affine.apply affine_map<()[n, p] -> (8 * p)>()[%N, %P]
      %to_size = affine.apply affine_map<()[n, p] -> (8 * n)>()[%N, %P]
      %from = memref.reinterpret_cast %a to offset: [0], sizes: [%from_size], strides: [1]
        : memref<f32> to memref<?xf32, strided<[1]>>
      %to = memref.reinterpret_cast %b to offset: [0], sizes: [%to_size], strides: [1]
        : memref<f32> to memref<?xf32, strided<[1]>>
      %t = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %inside = arith.cmpi slt, %t, %N : index
      scf.for %row = %c0 to %c8 step %c1 {
        scf.if %inside {
          %here = affine.apply affine_map<(r, c)[n, p] -> (r * p + c)>(%row, %t)[%N, %P]
          %there = affine.apply affine_map<(r, c)[n, p] -> (r * n + c)>(%row, %t)[%N, %P]
          %x = memref.load %from[%here] : memref<?xf32, strided<[1]>>
          memref.store %x, %to[%there] : memref<?xf32, strided<[1]>>
        }
      }
      gpu.return
    }
    gpu.func @to_diagonals(%a: memref<f32> {tiled.binding = "read", tiled.name = "A"},
                           %b: memref<f32> {tiled.binding = "write", tiled.name = "B"},
                           %N: index {tiled.binding = "param", tiled.name = "N"}) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>, tiled.grid = affine_map<() -> (1)>,
                    tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64,
                    tiled.strategy = "hand", tiled.tile = array<i64: 32>} {
      %from_size = affine.apply affine_map<()[n, p] -> (8 * n)>()[%N, %N]
      %to_size = affine.apply affine_map<()[n, p] -> (2 * (n + 3) * 4)>()[%N, %N]
      %from = memref.reinterpret_cast %a to offset: [0], sizes: [%from_size], strides: [1]
        : memref<f32> to memref<?xf32, strided<[1]>>
      %to = memref.reinterpret_cast %b to offset: [0], sizes: [%to_size], strides: [1]
        : memref<f32> to memref<?xf32, strided<[1]>>
      %t = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %inside = arith.cmpi slt, %t, %N : index
      scf.for %row = %c0 to %c8 step %c1 {
        scf.if %inside {
          %here = affine.apply affine_map<(r, c)[n, p] -> (r * n + c)>(%row, %t)[%N, %N]
          %there = affine.apply affine_map<(r, c)[n, p] -> ((r floordiv 4) * ((n + 3) * 4) + (c + r mod 4) * 4 + r mod 4)>(%row, %t)[%N, %N]
          %x = memref.load %from[%here] : memref<?xf32, strided<[1]>>
          memref.store %x, %to[%there] : memref<?xf32, strided<[1]>>
        }
      }
      gpu.return
    }
    gpu.func @to_blocks(%a: memref<f32> {tiled.binding = "read", tiled.name = "A"},
                        %b: memref<f32> {tiled.binding = "write", tiled.name = "B"},
                        %N: index {tiled.binding = "param", tiled.name = "N"}) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>, tiled.grid = affine_map<() -> (1)>,
                    tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64,
                    tiled.strategy = "hand", tiled.tile = array<i64: 32>} {
      %from_size = affine.apply affine_map<()[n, p] -> (8 * n)>()[%N, %N]
      %to_size = affine.apply affine_map<()[n, p] -> (2 * (n ceildiv 8) * 32)>()[%N, %N]
      %from = memref.reinterpret_cast %a to offset: [0], sizes: [%from_size], strides: [1]
        : memref<f32> to memref<?xf32, strided<[1]>>
      %to = memref.reinterpret_cast %b to offset: [0], sizes: [%to_size], strides: [1]
        : memref<f32> to memref<?xf32, strided<[1]>>
      %t = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %inside = arith.cmpi slt, %t, %N : index
      scf.for %row = %c0 to %c8 step %c1 {
        scf.if %inside {
          %here = affine.apply affine_map<(r, c)[n, p] -> (r * n + c)>(%row, %t)[%N, %N]
          %there = affine.apply affine_map<(r, c)[n, p] -> (((r floordiv 4) * (n ceildiv 8) + c floordiv 8) * 32 + (r mod 4) * 8 + c mod 8)>(%row, %t)[%N, %N]
          %x = memref.load %from[%here] : memref<?xf32, strided<[1]>>
          memref.store %x, %to[%there] : memref<?xf32, strided<[1]>>
        }
      }
      gpu.return
    }
    gpu.func @relay(%a: memref<f32> {tiled.binding = "read_write", tiled.name = "A"},
                    %f: memref<i32> {tiled.binding = "read_write", tiled.name = "F"},
                    %epoch: i32 {tiled.binding = "epoch"},
                    %N: index {tiled.binding = "param", tiled.name = "N"}) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>, tiled.grid = affine_map<() -> (1)>,
                    tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64,
                    tiled.strategy = "hand", tiled.tile = array<i64: 32>} {
      %cells = memref.reinterpret_cast %a to offset: [0], sizes: [%N], strides: [1]
        : memref<f32> to memref<?xf32, strided<[1]>>
      %flags = memref.reinterpret_cast %f to offset: [0], sizes: [%N], strides: [1]
        : memref<i32> to memref<?xi32, strided<[1]>>
      %t = gpu.thread_id x
      %block = gpu.block_id x
      %c0 = arith.constant 0 : index
      %one = arith.constant 1 : i32
      %next = arith.addi %epoch, %one : i32
      %first = arith.cmpi eq, %t, %c0 : index
      scf.if %first {
        %later = arith.cmpi sgt, %block, %c0 : index
        %mine = memref.load %cells[%block] : memref<?xf32, strided<[1]>>
        %sum = scf.if %later -> f32 {
          %before = affine.apply affine_map<(b) -> (b - 1)>(%block)
          "peer.wait"(%flags, %before, %next) : (memref<?xi32, strided<[1]>>, index, i32) -> ()
          %theirs = memref.load %cells[%before] : memref<?xf32, strided<[1]>>
          %new = arith.addf %mine, %theirs : f32
          scf.yield %new : f32
        } else {
          scf.yield %mine : f32
        }
        memref.store %sum, %cells[%block] : memref<?xf32, strided<[1]>>
        "peer.signal"(%flags, %block, %next) : (memref<?xi32, strided<[1]>>, index, i32) -> ()
      }
      gpu.return
    }
  }
}
