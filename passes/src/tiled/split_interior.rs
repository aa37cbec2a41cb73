//! `split-interior`: asks for two versions of a tile kernel's code, one with checks for tiles at a
//! rim and one without for the others, which are most.
//!
//! A tile goes without checks where all cells that it loads lie in their grids and all cells that
//! an apply computes lie in one piece of it: the main piece, which has the most cells for large
//! sizes. A run-time size counts as 2^20 for this; that the choice is good is no condition for it
//! to be right, because a tile decides at run time by the bounds themselves.
//!
//! Needs: tile kernels. Guarantees: the same kernels; each that some tile may pass without checks
//! says so by `tiled.interior`, which `lower-block` and `lower-stream` follow. Kernels of strategy
//! `naive` have no checks that could be left out, and stay as they are; so do streams of planes of
//! several fields of 64-bit cells, which one version serves better.
//!
//! ```text
//! func.func @heat_2() attributes {tiled.tile = array<i64: 32, 64>, ...} {
//!   %2 = "tiled.apply"(%0, %1) {pieces = [{function = @rim, ...}, {function = @heat, ...}], ...}
//! ```
//! becomes
//! ```text
//! func.func @heat_2() attributes {tiled.interior = array<i64: 1>, tiled.tile = array<i64: 32, 64>, ...} {
//! ```

use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::strategies;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineMap, Module};
use stencil_dialects::affine::Linear;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{self, Apply, Halo, Kernel, MOST_CELLS, TileOp};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "split-interior",
    summary: "run tiles away from every rim without checks",
    options: &[],
    read: |_: &Options| Ok(Box::new(SplitInterior)),
};

/// The pass.
pub struct SplitInterior;

impl Pass for SplitInterior {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        run(context, module)
    }
}

fn run<'c>(context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
    let program = Program::read(module)?;
    for kernel in &tiled::kernels(module)? {
        let strategy = strategies::named(&kernel.schedule.strategy)?;
        if !strategy.splits_interior(&program, kernel)? {
            continue;
        }
        if let Some(pieces) = main_pieces(&program, kernel)? {
            let builder = Builder::new(context, kernel.op.location(), mlir::body(module));
            tiled::set_interior(&builder, kernel.op, &pieces);
        }
    }
    Ok(())
}

/// The place of each apply's main piece; none where no tile fits into its grids and pieces.
fn main_pieces(program: &Program, kernel: &Kernel) -> Result<Option<Vec<i64>>, Error> {
    let tile = &kernel.schedule.tile;
    let mut places = Vec::new();
    for op in &kernel.body {
        match op {
            TileOp::Load { field, tile: loaded, .. } => {
                let grid = program.grid_of(field)?;
                if !fits(&kernel.tile(*loaded)?.halo, tile, (grid.lower, grid.upper)) {
                    return Ok(None);
                }
            }
            TileOp::Apply(apply) => match main_piece(apply, tile) {
                Some(place) => places.push(place),
                None => return Ok(None),
            },
            TileOp::Store { .. } => {}
        }
    }
    Ok(Some(places))
}

fn main_piece(apply: &Apply, tile: &[i64]) -> Option<i64> {
    let mut main = None;
    for (place, piece) in (0..).zip(&apply.pieces) {
        let bounds = (piece.lower, piece.upper);
        let cells = extents(bounds)
            .into_iter()
            .fold(1_i128, |cells, extent| cells.saturating_mul(extent.into()));
        if fits(&apply.halo, tile, bounds) && main.is_none_or(|(_, most)| cells > most) {
            main = Some((place, cells));
        }
    }
    main.map(|(place, _)| place)
}

/// Whether the box around a tile has its extents within bounds, for sizes that hold any tile.
fn fits(halo: &Halo, tile: &[i64], bounds: (AffineMap, AffineMap)) -> bool {
    halo.extents(tile).iter().zip(extents(bounds)).all(|(wanted, extent)| *wanted <= extent)
}

/// Cells per dimension between two bounds, for sizes that hold any tile.
fn extents((lower, upper): (AffineMap, AffineMap)) -> Vec<i64> {
    let (lower, upper) =
        (Linear::of_map(lower).unwrap_or_default(), Linear::of_map(upper).unwrap_or_default());
    let large = |bound: &Linear| {
        let sizes = bound
            .coefficients
            .iter()
            .fold(0_i64, |sum, size| sum.saturating_add(size.saturating_mul(MOST_CELLS)));
        sizes.saturating_add(bound.constant)
    };
    lower
        .iter()
        .zip(&upper)
        .map(|(lower, upper)| large(upper).saturating_sub(large(lower)).saturating_add(1).max(0))
        .collect()
}
