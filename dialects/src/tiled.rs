//! Typed views of the `tiled` dialect: tile kernels, schedules, and the launches of lowered
//! kernels.

mod array_order;
mod build;
mod constant;
mod cut;
mod halo;
mod kernel;
mod launch;
mod nest_tile;
mod rotate;
mod rows;
mod schedule;
mod wave;

pub use array_order::{
    argument_note, layout_note, set_argument_note, set_layout_note, set_transposed, transposed_of,
};
pub use build::{
    apply, apply_in_part, copy, kernel_of, load, repeat, set_interior, set_kernel, set_steps,
    set_tile, store,
};
pub use constant::{CONSTANT_SPACE, Constant, constants, declare_constant, set_not_constant};
pub use cut::{Cut, CutRead, Order, Parts, cut_attribute};
pub use halo::Halo;
pub use kernel::{Apply, Keeps, Kernel, Tile, TileOp, kernels};
pub use launch::{
    Bands, BankPad, Binding, Launch, axes_attributes, bank_pads, binding_attributes,
    block_points_attribute, dynamic_shared, flags_attribute, has_unroll, is_launched,
    lacking_attribute, launch_attributes, launches, set_bank_pads, set_dynamic_shared, set_unroll,
    turns_attribute,
};
pub use nest_tile::{
    NestTile, nest_constants, nest_tile, set_nest_constants, set_nest_tile, set_not_tiled,
};
pub(crate) use rotate::verify_rotations;
pub use rotate::{computed, rotations, rotations_attribute, set_computed, set_rotations};
pub use rows::{LastRows, RowValue, Rows, set_rows};
pub use schedule::{
    Choice, Height, Part, Region, Repeat, Schedule, choice, heights, remove_heights, repeats,
    schedule_attributes, set_choice, set_height, set_heights, set_kernels, set_part,
};
pub use wave::{
    Skew, Waiting, Wave, pace, set_pace, set_skew, set_sweeps, set_waiting, sweeps_attribute,
};

use crate::Signature;
use crate::attribute;
use crate::builder::Builder;
use crate::error::Error;
use crate::mlir;
use crate::stencil::{Argument, Boundary, Piece, Program};
use melior::ir::Module;

/// Names of the operations.
pub const LOAD: &str = "tiled.load";
/// See [`LOAD`].
pub const APPLY: &str = "tiled.apply";
/// See [`LOAD`].
pub const STORE: &str = "tiled.store";
/// See [`LOAD`].
pub const REPEAT: &str = "tiled.repeat";

/// Every operation, as the IRDL text declares it.
pub const OPERATIONS: &[Signature] = &[
    Signature {
        name: LOAD,
        operands: &[],
        results: &["tile"],
        attributes: &["field", "lower", "upper"],
        optional: &[],
    },
    Signature {
        name: APPLY,
        operands: &["inputs"],
        results: &["outputs"],
        attributes: &["reads", "updates", "pieces", "step", "lower", "upper"],
        optional: &["tiled.partial", "tiled.keeps"],
    },
    Signature {
        name: STORE,
        operands: &["tile"],
        results: &[],
        attributes: &["field"],
        optional: &[],
    },
    Signature {
        name: REPEAT,
        operands: &[],
        results: &[],
        attributes: &["count", "kernels"],
        optional: &["tiled.until", "tiled.height", "tiled.halo"],
    },
];

/// Cells of a tile along one dimension, and cells of a thread: far more than fit in any shared
/// memory, and few enough that the volume of a tile can't overflow.
pub const MOST_CELLS: i64 = 1 << 20;
/// Steps a launch: a kernel holds every step's code.
pub const MOST_STEPS: i64 = 1024;

const STRATEGY: &str = "tiled.strategy";
const TILE: &str = "tiled.tile";
const PER_THREAD: &str = "tiled.per_thread";
const STEPS: &str = "tiled.steps";
const REGION: &str = "tiled.region";
const BLOCK: &str = "tiled.block";
const INDEX_WIDTH: &str = "tiled.index_width";
const INTERIOR: &str = "tiled.interior";
const PARTIAL: &str = "tiled.partial";
const KEEPS: &str = "tiled.keeps";
const KERNEL: &str = "tiled.kernel";
const SKEW: &str = "tiled.skew";
pub(crate) const SHEAR: &str = "tiled.shear";
const SYNC: &str = "tiled.sync";
const PACE: &str = "tiled.pace";
const SWEEPS: &str = "tiled.sweeps";
const LAST_ROWS: &str = "tiled.last_rows";
const ROW_VALUES: &str = "tiled.row_values";
const UNTIL: &str = "tiled.until";
const HALO: &str = "tiled.halo";
const HEIGHT: &str = "tiled.height";
const HEIGHTS: &str = "tiled.heights";

/// Whether a kernel's tiles go on beyond the grid as the grid repeated: whether any of its point
/// functions reads a periodic field beside the point.
pub fn wraps<'c>(program: &Program<'c>, kernel: &Kernel<'c>) -> Result<bool, Error> {
    for apply in kernel.applies() {
        if reads_periodic(program, &apply.pieces)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether one of some pieces reads a periodic field beside the point.
pub fn reads_periodic<'c>(program: &Program<'c>, pieces: &[Piece<'c>]) -> Result<bool, Error> {
    for piece in pieces {
        for argument in program.arguments(piece.function)? {
            if let Argument::Read { field, offset } = argument {
                let beside = offset.iter().any(|cells| *cells != 0);
                if beside && program.field(field)?.boundary == Some(Boundary::Periodic) {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

/// The bits of an index in the kernels: 64, or 32 where that is proved to be enough. The verifier
/// refuses other numbers.
pub fn index_width(module: &Module) -> u32 {
    if stated_index_width(module) == Some(Some(32)) { 32 } else { 64 }
}

/// The module's attribute for the bits of an index, if it has one; none inside if that is no
/// number.
pub(crate) fn stated_index_width(module: &Module) -> Option<Option<i64>> {
    mlir::attribute(mlir::module_op(module), INDEX_WIDTH).map(attribute::as_integer)
}

/// Sets what [`index_width`] reads.
pub fn set_index_width<'c>(builder: &Builder<'c>, module: &Module<'c>, width: u32) {
    mlir::set_attribute(
        mlir::module_op(module),
        INDEX_WIDTH,
        attribute::integer(builder.context, i64::from(width)),
    );
}
