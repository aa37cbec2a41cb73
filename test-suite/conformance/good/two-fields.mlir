#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#first = affine_map<()[n] -> (1)>
#inner = affine_map<()[n] -> (n - 2)>
module @conformance attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (10)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "P", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "U", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(
      %u: f32 {stencil.read = @U, stencil.offset = array<i64: 0>},
      %p: f32 {stencil.read = @P, stencil.offset = array<i64: 0>}) -> (f32, f32) {
    %0 = arith.subf %u, %p : f32
    return %u, %0 : f32, f32
  }
  "stencil.apply"() {updates = [@P, @U], pieces = [{function = @f, lower = #zero, upper = #last}]} : () -> ()
}
