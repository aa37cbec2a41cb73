//! Cells among which a lane's reads select by boundary rules.

use crate::analysis::footprint;
use crate::schedule::code_size::MOST_FOUND;
use melior::ir::operation::OperationLike;
use stencil_dialects::error::{Decline, Error, Place};
use stencil_dialects::mlir::{self, Op};
use stencil_dialects::stencil::{Piece, Program};

/// The most cells that boundary rules may send a lane's reads to. Beyond this limit, MLIR and LLVM
/// take minutes for a kernel, which would spill. The tile graph lists each cell, so the limit is
/// looked at before a graph is made.
pub const MOST: i64 = MOST_FOUND;

/// The most cells of a lane in a plane: no kernel holds more in registers, and the tile graph lists
/// each.
const MOST_CELLS: i64 = 1024;

/// Whether a lane of some rows and columns holds more cells than any kernel.
pub fn is_too_large((rows_per_lane, width): (i64, i64)) -> bool {
    rows_per_lane.saturating_mul(width) > MOST_CELLS
}

/// Cells among which the reads of a lane of some rows and columns select by boundary rules, in all
/// applies together.
///
/// # Errors
/// Declines more than [`MOST`], and lanes of more than [`MOST_CELLS`].
pub fn of<'p, 'c: 'p>(
    program: &Program<'c>,
    applies: impl Iterator<Item = (Op<'c>, &'p [Piece<'c>])>,
    (rows_per_lane, width): (i64, i64),
) -> Result<i64, Error> {
    let cells = rows_per_lane.saturating_mul(width);
    let (mut selects, mut place) = (0_i64, None);
    for (op, pieces) in applies {
        let reads = footprint::cells_by_rules(program, pieces)?;
        selects = selects.saturating_add(reads.saturating_mul(cells));
        place = place.or_else(|| Some(mlir::place(op.location())));
    }
    let declined = |message| {
        let place = place.clone().unwrap_or_else(Place::unknown);
        Err(Error::declined(Decline::Registers, message).at(place))
    };
    if is_too_large((rows_per_lane, width)) {
        return declined(format!(
            "a lane with {rows_per_lane} x {width} cells holds more than {MOST_CELLS}, the most of \
             the strategy stream; give a lane fewer cells, or choose another strategy"
        ));
    }
    if selects <= MOST {
        return Ok(selects);
    }
    declined(format!(
        "by their boundary rules the reads of a lane with {rows_per_lane} x {width} cells may take \
         {selects} cells in a launch, and the strategy stream selects among {MOST} at most; give a \
         lane fewer cells, make the pyramid height smaller, or choose another strategy"
    ))
}
