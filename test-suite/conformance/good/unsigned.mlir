#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#first = affine_map<()[n] -> (1)>
#inner = affine_map<()[n] -> (n - 2)>
module @conformance attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (10)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = ui32, role = "state"} : () -> ()
  func.func private @f(
      %w: i32 {stencil.read = @A, stencil.offset = array<i64: -1>},
      %e: i32 {stencil.read = @A, stencil.offset = array<i64: 1>}) -> i32 {
    %0 = arith.maxui %w, %e : i32
    return %0 : i32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #first, upper = #inner}]} : () -> ()
}
