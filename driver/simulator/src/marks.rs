//! Marks the operations of point functions, so that their copies in kernels can be told apart.
//!
//! A lowering copies the bodies of point functions into kernels, and copies keep their locations.
//! [`mark_applies`] wraps each location in a name: `apply:heat`, and `root:heat` for the operation
//! that makes the function's first result, which runs once for each cell computed. The applies
//! themselves are marked by their first function. Code that a lowering builds around the copies
//! (loads, stores, loops, barriers) is therefore counted with them.

use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{Location, Module};
use stencil_dialects::attribute;
use stencil_dialects::mlir::{self, Op};
use stencil_dialects::stencil;

const APPLY: &str = "apply:";
const ROOT: &str = "root:";

/// Marks the point functions and applies of a stencil-level module, before it is tiled and lowered.
pub fn mark_applies<'c>(context: &'c Context, module: &Module<'c>) {
    let wrap = |op: Op<'c>, mark: &str, name: &str| {
        mlir::set_location(op, Location::name(context, &format!("{mark}{name}"), op.location()))
    };
    for function in mlir::operations(mlir::body(module)) {
        if mlir::name(function) == stencil::APPLY {
            let pieces = mlir::attribute(function, "pieces")
                .and_then(attribute::as_array)
                .unwrap_or_default();
            let first = pieces
                .first()
                .and_then(|piece| attribute::entry(*piece, "function"))
                .and_then(attribute::as_symbol);
            if let Some(name) = first {
                wrap(function, APPLY, name);
            }
            continue;
        }
        let Some(name) = mlir::attribute(function, "sym_name").and_then(attribute::as_string)
        else {
            continue;
        };
        if mlir::name(function) != "func.func" {
            continue;
        }
        let inner = mlir::walk(function);
        let first = inner
            .iter()
            .find(|op| mlir::name(**op) == "func.return")
            .and_then(|end| mlir::operands(*end).first().copied());
        for op in inner {
            if matches!(mlir::name(op), "func.func" | "func.return" | "arith.constant")
                || mlir::name(op).starts_with("tiled.")
            {
                continue;
            }
            let root = first.is_some_and(|first| {
                mlir::results(op).iter().any(|result| mlir::key(*result) == mlir::key(first))
            });
            wrap(op, if root { ROOT } else { APPLY }, name);
        }
    }
}

/// The mark of a location: the function, and whether the operation is its root. Where a pass made
/// several operations of the root, those within a name of the pass are only its parts.
pub(crate) fn mark_of(location: Location) -> Option<(String, bool)> {
    if location.is_name() {
        let text = mlir::identifier(location.name_value())?;
        if let Some(function) = text.strip_prefix(ROOT) {
            return Some((function.to_owned(), true));
        }
        return match text.strip_prefix(APPLY) {
            Some(function) => Some((function.to_owned(), false)),
            None => mark_of(location.name_child_location()).map(|(function, _)| (function, false)),
        };
    }
    if location.is_call_site() {
        return mark_of(location.call_site_callee());
    }
    (0..if location.is_fused() { location.fused_num_locations() } else { 0 })
        .find_map(|index| mark_of(location.fused_location(index)))
}
