#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#first = affine_map<()[n] -> (1)>
#inner = affine_map<()[n] -> (n - 2)>
module @conformance attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (10)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = i64, role = "state"} : () -> ()
  func.func private @f(
      %i: i64 {stencil.coord = 0 : i64},
      %t: i64 {stencil.step},
      %n: i64 {stencil.param = "N"}) -> i64 {
    %0 = arith.addi %i, %t : i64
    %1 = arith.addi %0, %n : i64
    return %1 : i64
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #zero, upper = #last}]} : () -> ()
}
