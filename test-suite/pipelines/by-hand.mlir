// RUN: not stencilc run %s --passes='builtin.module()' --target sim --in A=zeros --in B=zeros 2>&1 | FileCheck %s
// RUN: not stencilc run %s --target sim --in A=zeros --in B=zeros 2>&1 | FileCheck %s --check-prefix=LEVEL
// RUN: not stencilc %s --emit=ptx -o - 2>&1 | FileCheck %s --check-prefix=LEVEL
// All threads of a kernel written by hand store into one cell: its author's fault, no compiler's.

// CHECK: error: {{.*}}by-hand.mlir:{{[0-9]+}}:9: race: two threads touch one cell
// LEVEL: error: {{.*}}by-hand.mlir holds kernels already; take them as they are with the option passes='builtin.module()', or name passes that change them
#map = affine_map<() -> (1)>
#map1 = affine_map<() -> (0)>
#map2 = affine_map<() -> (31)>
#map3 = affine_map<()[s0] -> (1)>
module @by_hand attributes {gpu.container_module, stencil.params = [], stencil.steps = #map, stencil.target = {arch = "sm_90", contract = true, device = "NVIDIA H200", fast_math = false}} {
  "stencil.grid"() {lower = #map1, sym_name = "all", upper = #map2} : () -> ()
  "stencil.field"() {grid = @all, role = "const", sym_name = "A", type = f32} : () -> ()
  "stencil.field"() {grid = @all, role = "state", sym_name = "B", type = f32} : () -> ()
  gpu.module @kernels {
    gpu.func @by_hand(%arg0: memref<f32> {llvm.noalias, llvm.readonly, tiled.binding = "read", tiled.name = "A"}, %arg1: memref<f32> {llvm.noalias, tiled.binding = "read_write", tiled.name = "B"}, %arg2: i64 {tiled.binding = "step"}) kernel attributes {known_block_size = array<i32: 256, 1, 1>, tiled.grid = [#map], tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64, tiled.strategy = "affine", tiled.tile = array<i64: 256>} {
      %c0 = arith.constant 0 : index
      %a = memref.reinterpret_cast %arg0 to offset: [0], sizes: [32], strides: [1] : memref<f32> to memref<32xf32, strided<[1]>>
      %b = memref.reinterpret_cast %arg1 to offset: [0], sizes: [32], strides: [1] : memref<f32> to memref<32xf32, strided<[1]>>
      %x = gpu.thread_id x
      %c32 = arith.constant 32 : index
      %is = arith.cmpi slt, %x, %c32 : index
      scf.if %is {
        %v = memref.load %a[%x] : memref<32xf32, strided<[1]>>
        memref.store %v, %b[%c0] : memref<32xf32, strided<[1]>>
      }
      gpu.return
    }
  }
  "tiled.repeat"() {count = #map3, kernels = [@by_hand]} : () -> ()
}
