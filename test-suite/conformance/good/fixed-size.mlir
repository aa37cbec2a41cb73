#zero = affine_map<() -> (0)>
#last = affine_map<() -> (63)>
#first = affine_map<() -> (1)>
#inner = affine_map<() -> (62)>
module @conformance attributes {stencil.params = [], stencil.steps = affine_map<() -> (10)>,
                                stencil.constants = [{name = "N", value = 64 : i64}]} {
  "stencil.grid"() {sym_name = "G", lower = #zero, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
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
