// RUN: stencilc run %s --passes=cse --target sim --in A=random:1 --in B=zeros --out B=%t.before.npy
// RUN: stencilc run %s --passes=vectorize-copies --target sim --in A=random:1 --in B=zeros --out B=%t.npy
// RUN: cmp %t.before.npy %t.npy
// A fifth copy stores to the elements of the first one: no vector may take these to other threads.

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
      %c64 = arith.constant 64 : index
      %c128 = arith.constant 128 : index
      %c192 = arith.constant 192 : index
      %c256 = arith.constant 256 : index
      %x = gpu.thread_id x
      %x1 = arith.addi %x, %c64 : index
      %x2 = arith.addi %x, %c128 : index
      %x3 = arith.addi %x, %c192 : index
      %x4 = arith.addi %x, %c256 : index
      %v0 = memref.load %a[%x] : memref<512xf32, strided<[1]>>
      memref.store %v0, %s[%x] : memref<256xf32, #gpu.address_space<workgroup>>
      %v1 = memref.load %a[%x1] : memref<512xf32, strided<[1]>>
      memref.store %v1, %s[%x1] : memref<256xf32, #gpu.address_space<workgroup>>
      %v2 = memref.load %a[%x2] : memref<512xf32, strided<[1]>>
      memref.store %v2, %s[%x2] : memref<256xf32, #gpu.address_space<workgroup>>
      %v3 = memref.load %a[%x3] : memref<512xf32, strided<[1]>>
      memref.store %v3, %s[%x3] : memref<256xf32, #gpu.address_space<workgroup>>
      %v4 = memref.load %a[%x4] : memref<512xf32, strided<[1]>>
      memref.store %v4, %s[%x] : memref<256xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %q = memref.load %s[%x] : memref<256xf32, #gpu.address_space<workgroup>>
      memref.store %q, %b[%x] : memref<512xf32, strided<[1]>>
      gpu.return
    }
  }
  "tiled.repeat"() {count = #map3, kernels = [@by_hand]} : () -> ()
}
