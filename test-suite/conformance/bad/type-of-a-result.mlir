// error: @f returns f32 for @A, which holds f64
#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#first = affine_map<()[n] -> (1)>
#inner = affine_map<()[n] -> (n - 2)>
module @conformance attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (10)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f64, role = "state"} : () -> ()
  func.func private @f(
      %i: i64 {stencil.coord = 0 : i64}) -> f32 {
    %0 = arith.sitofp %i : i64 to f32
    return %0 : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #first, upper = #inner}]} : () -> ()
}
