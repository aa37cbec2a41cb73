// error: a field with stencil.kernel_block needs stencil.layout = "relaid"
#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#first = affine_map<()[n] -> (1)>
#inner = affine_map<()[n] -> (n - 2)>
module @conformance attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (10)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "W.h", grid = @G, type = f32, role = "state", stencil.layout = "aos", stencil.kernel_block = 32 : i64, stencil.member = {field = "W", offset = 0, size = 8}} : () -> ()
  "stencil.field"() {sym_name = "W.u", grid = @G, type = f32, role = "state", stencil.layout = "aos", stencil.kernel_block = 32 : i64, stencil.member = {field = "W", offset = 4, size = 8}} : () -> ()
  func.func private @f(
      %a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    return %a : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #first, upper = #inner}]} : () -> ()
}
