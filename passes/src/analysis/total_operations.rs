//! Operations that have a result whatever their operands are.

use melior::ir::AffineExpr;
use stencil_dialects::attribute;
use stencil_dialects::mlir::{self, Op};

/// Whether an operation has a result whatever its operands are, and no effect.
pub fn is_total(op: Op) -> bool {
    const TOTAL: [&str; 34] = [
        "constant",
        "addf",
        "subf",
        "mulf",
        "divf",
        "negf",
        "maximumf",
        "minimumf",
        "maxnumf",
        "minnumf",
        "addi",
        "subi",
        "muli",
        "andi",
        "ori",
        "xori",
        "cmpi",
        "cmpf",
        "select",
        "index_cast",
        "index_castui",
        "sitofp",
        "uitofp",
        "extf",
        "truncf",
        "extsi",
        "extui",
        "trunci",
        "maxsi",
        "minsi",
        "maxui",
        "minui",
        "bitcast",
        "remf",
    ];
    match mlir::name(op) {
        "affine.apply" | "affine.min" | "affine.max" => divides_by_constants(op),
        "memref.dim" => true,
        "math.ipowi" => false,
        name => match name.strip_prefix("arith.") {
            Some(word) => TOTAL.contains(&word),
            None => name.starts_with("math."),
        },
    }
}

/// Whether no map of an operation divides by a value: that may be 0.
fn divides_by_constants(op: Op) -> bool {
    fn total(of: AffineExpr) -> bool {
        if of.is_constant() || of.is_dim() || of.is_symbol() {
            return true;
        }
        let right = of.rhs();
        let whole = of.is_add() || of.is_mul() || right.is_constant() && right.constant_value() > 0;
        whole && total(of.lhs()) && total(right)
    }
    let map = mlir::attribute(op, "map").and_then(attribute::as_map);
    map.is_some_and(|map| (0..map.result_count()).all(|place| map.result(place).is_ok_and(total)))
}
