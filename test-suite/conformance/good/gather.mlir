#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#first = affine_map<()[n] -> (1)>
#inner = affine_map<()[n] -> (n - 2)>
module @conformance attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (10)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.grid"() {sym_name = "T", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (7)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.field"() {sym_name = "K", grid = @T, type = f32, role = "const"} : () -> ()
  func.func private @f(
      %a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>}) -> f32 {
    %i = arith.constant 3 : i64
    %k = "stencil.gather"(%i) {field = @K} : (i64) -> f32
    %0 = arith.addf %a, %k : f32
    return %0 : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #zero, upper = #last}]} : () -> ()
}
