//! Operations that have a result whatever their operands are.

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
        "affine.apply" | "affine.min" | "affine.max" | "memref.dim" => true,
        "math.ipowi" => false,
        name => match name.strip_prefix("arith.") {
            Some(word) => TOTAL.contains(&word),
            None => name.starts_with("math."),
        },
    }
}
