#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#first = affine_map<()[n] -> (1)>
#inner = affine_map<()[n] -> (n - 2)>
module @conformance attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (10)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.scalar"() {sym_name = "n", type = i64, default = []} : () -> ()
  func.func private @f(
      %a: f32 {stencil.read = @A, stencil.offset = array<i64: 0>},
      %s: i64 {stencil.scalar = @n}) -> f32 {
    %0 = arith.sitofp %s : i64 to f32
    %1 = arith.addf %a, %0 : f32
    return %1 : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #zero, upper = #last}]} : () -> ()
}
