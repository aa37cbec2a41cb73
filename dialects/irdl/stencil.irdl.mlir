// The stencil dialect: the declarations of a program and the functions that a step applies.
// No operation has a region: point functions are `func.func`s whose arguments are their footprint.
irdl.dialect @stencil {
  // stencil.grid {sym_name = "G", lower = affine_map<()[n, m] -> (0, 0)>,
  //               upper = affine_map<()[n, m] -> (n - 1, m - 1)>}
  irdl.operation @grid {
    %name = irdl.base "#builtin.string"
    %lower = irdl.base "#builtin.affine_map"
    %upper = irdl.base "#builtin.affine_map"
    irdl.attributes {"sym_name" = %name, "lower" = %lower, "upper" = %upper}
  }

  // stencil.field {sym_name = "A", grid = @G, type = f32, role = "state"}
  irdl.operation @field {
    %name = irdl.base "#builtin.string"
    %grid = irdl.base "#builtin.symbol_ref"
    %type = irdl.any
    %role = irdl.base "#builtin.string"
    irdl.attributes {"sym_name" = %name, "grid" = %grid, "type" = %type, "role" = %role}
  }

  // stencil.scalar {sym_name = "alpha", type = f32, default = [0.1 : f32]}; no default: [].
  irdl.operation @scalar {
    %name = irdl.base "#builtin.string"
    %type = irdl.any
    %default = irdl.base "#builtin.array"
    irdl.attributes {"sym_name" = %name, "type" = %type, "default" = %default}
  }

  // stencil.apply {updates = [@A], pieces = [{function = @heat, lower = affine_map<...>,
  //                                           upper = affine_map<...>}]}
  irdl.operation @apply {
    %updates = irdl.base "#builtin.array"
    %pieces = irdl.base "#builtin.array"
    irdl.attributes {"updates" = %updates, "pieces" = %pieces}
  }

  // stencil.reduce {field = @worst, grid = @worst.box, function = @worst.value, operation = "max"}:
  // between applies, the one cell of a field of the role "reduction" or "condition" becomes the
  // sum, min or max of the function's values at all points of the grid. Function and applies read
  // it by stencil.gather; before the first step it is the field's stencil.initial, else 0.
  irdl.operation @reduce {
    %field = irdl.base "#builtin.symbol_ref"
    %grid = irdl.base "#builtin.symbol_ref"
    %function = irdl.base "#builtin.symbol_ref"
    %operation = irdl.base "#builtin.string"
    irdl.attributes {"field" = %field, "grid" = %grid, "function" = %function,
                     "operation" = %operation}
  }

  // stencil.until {condition = @until.met, every = 10 : i64, text = "worst < 1e-6"}: the run ends
  // where the cell of a field of the role "condition" is not 0, which is looked at after every so
  // many steps.
  irdl.operation @until {
    %condition = irdl.base "#builtin.symbol_ref"
    %every = irdl.base "#builtin.integer"
    %text = irdl.base "#builtin.string"
    irdl.attributes {"condition" = %condition, "every" = %every, "text" = %text}
  }

  // %v = stencil.gather(%i, %j) {field = @K}: a field's cell at these coordinates, in a point function:
  // its value before the apply. They lie in the field's grid.
  irdl.operation @gather {
    %field = irdl.base "#builtin.symbol_ref"
    %coordinate = irdl.is i64
    %value = irdl.any
    irdl.operands(coordinates: variadic %coordinate)
    irdl.attributes {"field" = %field}
    irdl.results(value: %value)
  }

  // stencil.check {value = affine_map<()[n] -> (n - 3)>, unless_empty = [affine_map<...>, affine_map<...>],
  //                message = "..."}: a condition on the run-time sizes, `value >= 0`.
  irdl.operation @check {
    %value = irdl.base "#builtin.affine_map"
    %unless_empty = irdl.base "#builtin.array"
    %message = irdl.base "#builtin.string"
    irdl.attributes {"value" = %value, "unless_empty" = %unless_empty, "message" = %message}
  }
}
