#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#first = affine_map<()[n] -> (1)>
#inner = affine_map<()[n] -> (n - 2)>
module @conformance attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (10)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "T", grid = @G, type = f32, role = "temp"} : () -> ()
  func.func private @f(
      %w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>},
      %e: f32 {stencil.read = @A, stencil.offset = array<i64: 1>}) -> f32 {
    %0 = arith.subf %e, %w : f32
    return %0 : f32
  }
  func.func private @g(
      %a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>},
      %t: f32 {stencil.read = @T, stencil.offset = array<i64: 0>}) -> f32 {
    %0 = arith.addf %a, %t : f32
    return %0 : f32
  }
  "stencil.apply"() {updates = [@T], pieces = [{function = @f, lower = #first, upper = #inner}]} : () -> ()
  "stencil.apply"() {updates = [@A], pieces = [{function = @g, lower = #first, upper = #inner}]} : () -> ()
}
