// error: memref.alloc can't stand in a point function; arith, math, scf.if and stencil.gather can
#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#first = affine_map<()[n] -> (1)>
#inner = affine_map<()[n] -> (n - 2)>
module @conformance attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (10)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(
      %a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    %0 = memref.alloc() : memref<4xf32>
    return %a : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #first, upper = #inner}]} : () -> ()
}
