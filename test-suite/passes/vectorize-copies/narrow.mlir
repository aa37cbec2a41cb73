// RUN: stencilc run %s --passes=cse --target sim --in A=random:1 --in B=zeros --out B=%t.before.npy
// RUN: stencilc run %s --passes=vectorize-copies --target sim --in A=random:1 --in B=zeros --out B=%t.npy
// RUN: cmp %t.before.npy %t.npy
// Numbers of 8 bits wrap: threads 128 to 255 do not load what lies behind the others' elements.

#map = affine_map<() -> (1)>
#map1 = affine_map<() -> (0)>
#map2 = affine_map<() -> (511)>
#map3 = affine_map<()[s0] -> (1)>
module @by_hand attributes {gpu.container_module, stencil.params = [], stencil.steps = #map, stencil.target = {arch = "sm_90", contract = true, device = "NVIDIA H200", fast_math = false}} {
  "stencil.grid"() {lower = #map1, sym_name = "all", upper = #map2} : () -> ()
  "stencil.field"() {grid = @all, role = "const", sym_name = "A", type = f32} : () -> ()
  "stencil.field"() {grid = @all, role = "state", sym_name = "B", type = f32} : () -> ()
  gpu.module @kernels {
    gpu.func @by_hand(%arg0: memref<f32> {llvm.noalias, llvm.readonly, tiled.binding = "read", tiled.name = "A"}, %arg1: memref<f32> {llvm.noalias, tiled.binding = "read_write", tiled.name = "B"}, %arg2: i64 {tiled.binding = "step"}) workgroup(%s : memref<256xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>, tiled.grid = [#map], tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64, tiled.strategy = "affine", tiled.tile = array<i64: 64>} {
      %a = memref.reinterpret_cast %arg0 to offset: [0], sizes: [512], strides: [1] : memref<f32> to memref<512xf32, strided<[1]>>
      %b = memref.reinterpret_cast %arg1 to offset: [0], sizes: [512], strides: [1] : memref<f32> to memref<512xf32, strided<[1]>>
      %zero = arith.constant 0 : index
      %mask = arith.constant 127 : i8
      %c256 = arith.constant 256 : index
      %c64 = arith.constant 64 : index
      %c128 = arith.constant 128 : index
      %c192 = arith.constant 192 : index
      %x = gpu.thread_id x
      %x1 = arith.addi %x, %c64 : index
      %x2 = arith.addi %x, %c128 : index
      %x3 = arith.addi %x, %c192 : index
      %i0 = arith.index_cast %x : index to i32
      %j0 = arith.trunci %i0 : i32 to i8
      %m0 = arith.andi %j0, %mask : i8
      %k0 = arith.index_cast %j0 : i8 to index
      %p0 = arith.maxsi %k0, %zero : index
      %v0 = memref.load %a[%p0] : memref<512xf32, strided<[1]>>
      memref.store %v0, %s[%x] : memref<256xf32, #gpu.address_space<workgroup>>
      %i1 = arith.index_cast %x1 : index to i32
      %j1 = arith.trunci %i1 : i32 to i8
      %m1 = arith.andi %j1, %mask : i8
      %k1 = arith.index_cast %j1 : i8 to index
      %p1 = arith.maxsi %k1, %zero : index
      %v1 = memref.load %a[%p1] : memref<512xf32, strided<[1]>>
      memref.store %v1, %s[%x1] : memref<256xf32, #gpu.address_space<workgroup>>
      %i2 = arith.index_cast %x2 : index to i32
      %j2 = arith.trunci %i2 : i32 to i8
      %m2 = arith.andi %j2, %mask : i8
      %k2 = arith.index_cast %j2 : i8 to index
      %p2 = arith.maxsi %k2, %zero : index
      %v2 = memref.load %a[%p2] : memref<512xf32, strided<[1]>>
      memref.store %v2, %s[%x2] : memref<256xf32, #gpu.address_space<workgroup>>
      %i3 = arith.index_cast %x3 : index to i32
      %j3 = arith.trunci %i3 : i32 to i8
      %m3 = arith.andi %j3, %mask : i8
      %k3 = arith.index_cast %j3 : i8 to index
      %p3 = arith.maxsi %k3, %zero : index
      %v3 = memref.load %a[%p3] : memref<512xf32, strided<[1]>>
      memref.store %v3, %s[%x3] : memref<256xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      scf.for %t = %x to %c256 step %c64 {
      %q = memref.load %s[%t] : memref<256xf32, #gpu.address_space<workgroup>>
      memref.store %q, %b[%t] : memref<512xf32, strided<[1]>>
      }
      gpu.return
    }
  }
  "tiled.repeat"() {count = #map3, kernels = [@by_hand]} : () -> ()
}
