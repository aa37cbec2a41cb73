#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#first = affine_map<()[n] -> (1)>
#inner = affine_map<()[n] -> (n - 2)>
module @conformance attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (10)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @f(
      %c: f32 {stencil.read = @A, stencil.offset = array<i64: 1>}) -> f32 {
    return %c : f32
  }
  "stencil.check"() {value = affine_map<()[n] -> (n - 9)>, unless_empty = [], message = "N must be at least 9"} : () -> ()
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = affine_map<()[n] -> (2)>, upper = affine_map<()[n] -> (7)>}]} : () -> ()
}
