// error: @N is declared twice: it is the name of a size, too
#zero = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#first = affine_map<()[n] -> (1)>
#inner = affine_map<()[n] -> (n - 2)>
module @conformance attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (10)>} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  "stencil.scalar"() {sym_name = "N", type = f32, default = []} : () -> ()
  func.func private @f(
      %w: f32 {stencil.read = @A, stencil.offset = array<i64: -1>},
      %e: f32 {stencil.read = @A, stencil.offset = array<i64: 1>}) -> f32 {
    %half = arith.constant 5.000000e-01 : f32
    %0 = arith.addf %w, %e : f32
    %1 = arith.mulf %0, %half : f32
    return %1 : f32
  }
  "stencil.apply"() {updates = [@A], pieces = [{function = @f, lower = #first, upper = #inner}]} : () -> ()
}
