//! The footprint of an apply: which cells of which fields a point's new values come from.

use melior::ir::Module;
use std::collections::BTreeSet;
use stencil_dialects::error::Error;
use stencil_dialects::fast_math;
use stencil_dialects::mlir;
use stencil_dialects::stencil::{self, Argument, Piece, Program};
use stencil_dialects::tiled::{Halo, Kernel};

/// One read of a point function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read<'c> {
    /// The field.
    pub field: &'c str,
    /// The cells that it may take, relative to the point: one, but for fields with a boundary rule.
    pub reach: Halo,
}

impl Read<'_> {
    /// The offsets that the read may have, one number a dimension, slowest first.
    pub fn offsets(&self) -> Vec<Vec<i64>> {
        self.reach.lower.iter().zip(&self.reach.upper).fold(
            vec![Vec::new()],
            |all, (lower, upper)| {
                all.iter()
                    .flat_map(|rest| {
                        (*lower..=*upper).map(|last| [rest.as_slice(), &[last]].concat())
                    })
                    .collect()
            },
        )
    }
}

/// What any of the pieces reads, in the order of the fields' names, each once.
pub fn of_pieces<'c>(program: &Program<'c>, pieces: &[Piece<'c>]) -> Result<Vec<Read<'c>>, Error> {
    let mut reads: Vec<Read> = Vec::new();
    for piece in pieces {
        for argument in program.arguments(piece.function)? {
            if let Argument::Read { field, offset } = argument {
                let read = Read { field, reach: Halo::of_read(program.field(field)?, offset) };
                if !reads.contains(&read) {
                    reads.push(read);
                }
            }
        }
    }
    reads.sort_by_key(|read| read.field);
    Ok(reads)
}

/// Whether a tile kernel reads a field at computed places that it updates. Some of its functions
/// may be newer than the program.
pub fn gathers_own<'c>(module: &Module<'c>, kernel: &Kernel<'c>) -> Result<bool, Error> {
    let mut gathered = BTreeSet::new();
    for piece in kernel.applies().flat_map(|apply| &apply.pieces) {
        let function = stencil::function(module, piece.function)?;
        gathered.extend(stencil::gathers(function)?.into_iter().map(|gather| gather.field));
    }
    let mut updated = kernel.applies().flat_map(|apply| &apply.outputs);
    Ok(updated.any(|(field, _)| gathered.contains(field)))
}

/// How many cells those reads of a point may take together that a boundary rule sends elsewhere:
/// each takes one of those in reach, and a lowering that holds cells in registers has a select for
/// each.
pub fn cells_by_rules<'c>(program: &Program<'c>, pieces: &[Piece<'c>]) -> Result<i64, Error> {
    let reads = of_pieces(program, pieces)?;
    let cells = |read: &Read| {
        let extents = read
            .reach
            .lower
            .iter()
            .zip(&read.reach.upper)
            .map(|(lower, upper)| upper.saturating_sub(*lower));
        extents.fold(1_i64, |cells, extent| cells.saturating_mul(extent.saturating_add(1)))
    };
    Ok(reads.iter().map(cells).filter(|cells| *cells > 1).fold(0, i64::saturating_add))
}

/// Rows of cells that a lane holds on the way to a row of results, beside those that a sum of
/// products needs: divisions and mathematical functions are long sequences of instructions, many of
/// which are under way at once. A division that may be a product with a reciprocal is none.
pub fn long_operations<'c>(program: &Program<'c>, pieces: &[Piece<'c>]) -> Result<i64, Error> {
    let (mut rows, fast_math) = (0, fast_math::Cache::default());
    for piece in pieces {
        for op in mlir::walk(program.function(piece.function)?) {
            let name = mlir::name(op);
            let fast = fast_math.of(op).may_approximate();
            rows = rows.max(
                match (
                    name.starts_with("math.") || name == "arith.remf",
                    name == "arith.divf",
                    fast,
                ) {
                    (true, _, true) => FAST_ROWS,
                    (true, _, false) | (_, true, false) => EXACT_ROWS,
                    _ => 0,
                },
            );
        }
    }
    Ok(rows)
}

/// Measured with ptxas: approximate square roots, and exact divisions and roots.
const FAST_ROWS: i64 = 2;
const EXACT_ROWS: i64 = 6;
