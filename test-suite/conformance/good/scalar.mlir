#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#first = affine_map<()[n] -> (1)>
#inner = affine_map<()[n] -> (n - 2)>
module @conformance attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (10)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.scalar"() {sym_name = "alpha", type = f32, default = [1.000000e-01 : f32]} : () -> ()
  func.func private @f(
      %a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>},
      %s: f32 {stencil.scalar = @alpha}) -> f32 {
    %0 = arith.mulf %a, %s : f32
    return %0 : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #zero, upper = #last}]} : () -> ()
}
