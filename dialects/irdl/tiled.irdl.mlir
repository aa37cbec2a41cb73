// The tiled dialect: straight-line tile kernels over tile values, and the host schedule.
irdl.dialect @tiled {
  // The cells of a field around a tile. Which cells, the defining operation says: from
  // `tile origin + lower` to `tile origin + tile size - 1 + upper`, both ends inclusive. (A bound
  // in the type would have to be the same for all operands of a variadic in IRDL.)
  irdl.type @tile

  // %0 = tiled.load {field = @A, lower = array<i64: -2, -2>, upper = array<i64: 2, 2>}:
  // the cells of a field as they were before the launch.
  irdl.operation @load {
    %field = irdl.base "#builtin.symbol_ref"
    %lower = irdl.any
    %upper = irdl.any
    %tile = irdl.base @tiled::@tile
    irdl.attributes {"field" = %field, "lower" = %lower, "upper" = %upper}
    irdl.results(tile: %tile)
  }

  // %u = tiled.apply(%a, %k) {reads = [@A, @K], updates = [@A], pieces = [...], step = 0,
  //                           lower = array<i64: -1, -1>, upper = array<i64: 1, 1>}:
  // one operand a field of `reads`, one result a field of `updates`; cells that no piece covers
  // keep the value of the operand of the same field. `pieces` is that of stencil.apply.
  irdl.operation @apply {
    %input = irdl.base @tiled::@tile
    %output = irdl.base @tiled::@tile
    %reads = irdl.base "#builtin.array"
    %updates = irdl.base "#builtin.array"
    %pieces = irdl.base "#builtin.array"
    %step = irdl.base "#builtin.integer"
    %lower = irdl.any
    %upper = irdl.any
    irdl.operands(inputs: variadic %input)
    irdl.attributes {"reads" = %reads, "updates" = %updates, "pieces" = %pieces, "step" = %step,
                     "lower" = %lower, "upper" = %upper}
    irdl.results(outputs: variadic %output)
  }

  // tiled.store(%u) {field = @A}: the tile itself, without halo, becomes the field's next value.
  irdl.operation @store {
    %tile = irdl.base @tiled::@tile
    %field = irdl.base "#builtin.symbol_ref"
    irdl.operands(tile: %tile)
    irdl.attributes {"field" = %field}
  }

  // tiled.repeat {count = affine_map<()[n, steps] -> (steps floordiv 4)>, kernels = [@heat_4]}:
  // launches the kernels in order, `count` times. The last symbol is the number of steps.
  irdl.operation @repeat {
    %count = irdl.base "#builtin.affine_map"
    %kernels = irdl.base "#builtin.array"
    irdl.attributes {"count" = %count, "kernels" = %kernels}
  }
}
