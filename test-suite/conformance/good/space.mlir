#zero = affine_map<()[n] -> (0, 0, 0)>
#last = affine_map<()[n] -> (n - 1, n - 1, n - 1)>
#first = affine_map<()[n] -> (1, 1, 1)>
#inner = affine_map<()[n] -> (n - 2, n - 2, n - 2)>
module @conformance attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (10)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f64, role = "state"} : () -> ()
  func.func private @f(
      %a: f64 {stencil.read = @A, stencil.offset = array<i64: -1, 0, 0>},
      %b: f64 {stencil.read = @A, stencil.offset = array<i64: 0, 0, 1>}) -> f64 {
    %0 = arith.subf %a, %b : f64
    return %0 : f64
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #first, upper = #inner}]} : () -> ()
}
