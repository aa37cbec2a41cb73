#zero = affine_map<()[n, m] -> (0, 0)>
#last = affine_map<()[n, m] -> (n - 1, m - 1)>
#first = affine_map<()[n, m] -> (1, 1)>
#inner = affine_map<()[n, m] -> (n - 2, m - 2)>
module @conformance attributes {stencil.params = ["N", "M"], stencil.steps = affine_map<()[n, m] -> (10)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(
      %n: f32 {stencil.read = @A, stencil.offset = array<i64: -1, 0>},
      %s: f32 {stencil.read = @A, stencil.offset = array<i64: 1, 0>},
      %w: f32 {stencil.read = @A, stencil.offset = array<i64: 0, -1>},
      %e: f32 {stencil.read = @A, stencil.offset = array<i64: 0, 1>}) -> f32 {
    %0 = arith.addf %n, %s : f32
    %1 = arith.addf %w, %e : f32
    %2 = arith.addf %0, %1 : f32
    return %2 : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #first, upper = #inner}]} : () -> ()
}
