//! Which rims a loop may meet, and what each operation of the tile kernel checks there.

use crate::kernel::frame::Frame;
use crate::kernel::lane_cells::{Beyond, BoxCells, LaneCells};
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::tiled::{Kernel, TileOp};

/// Which rims a loop may meet.
#[derive(Clone, Copy)]
pub struct Rims<'c, 'r> {
    /// Whether it may meet the first or last plane of the grid or of a piece.
    pub planes: bool,
    /// The checks of rows and columns, where it may meet their rims.
    pub rim_checks: Option<&'r RimChecks<'c>>,
    /// The columns of a lane that rims of columns may lie in; any where there are none.
    pub columns: Option<&'r BTreeSet<i64>>,
}

/// The checks of cells at a rim.
pub struct RimChecks<'c> {
    /// For each load or store the cells in its grid, and the cells inside that are loaded.
    grids: BTreeMap<usize, (BoxCells<'c>, LaneCells<'c>)>,
    /// For each apply that computes cells beyond the grid as the grid repeated, the cells that they
    /// repeat.
    pub repeated: BTreeMap<usize, LaneCells<'c>>,
    /// Pieces, by their operation and number.
    pieces: BTreeMap<(usize, usize), BoxCells<'c>>,
}

impl<'c> RimChecks<'c> {
    /// Checks of all operations of a kernel on a lane's cells. `vector` gives how many cells of a
    /// field an access takes.
    pub fn new(
        frame: &Frame<'c, '_>,
        builder: &Builder<'c>,
        (kernel, lane): (&Kernel<'c>, &LaneCells<'c>),
        beyond: Beyond,
        vector: impl Fn(&str) -> Result<i64, Error>,
    ) -> Result<Self, Error> {
        let (mut grids, mut pieces, mut repeated) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let covered = |bounds, cells: &LaneCells<'c>| BoxCells::new(frame, builder, bounds, cells);
        for (operation, op) in kernel.body.iter().enumerate() {
            match op {
                TileOp::Load { field, .. } | TileOp::Store { field, .. } => {
                    let grid = frame.scope.program.grid_of(field)?;
                    let bounds = (grid.lower, grid.upper);
                    let inside = lane.inside(frame, builder, bounds, beyond, vector(field)?)?;
                    grids.insert(operation, (covered(bounds, lane)?, inside));
                }
                TileOp::Apply(apply) => {
                    if let Some(grid) = beyond.repeated_grid(frame.scope.program, apply)? {
                        let bounds = (grid.lower, grid.upper);
                        repeated.insert(operation, lane.inside(frame, builder, bounds, beyond, 1)?);
                    }
                    let cells = repeated.get(&operation).unwrap_or(lane);
                    for (number, piece) in apply.pieces.iter().enumerate() {
                        pieces.insert(
                            (operation, number),
                            covered((piece.lower, piece.upper), cells)?,
                        );
                    }
                }
            }
        }
        Ok(Self { grids, pieces, repeated })
    }

    /// The grid of an operation that loads or stores, and the cells inside that are loaded.
    pub fn grid(&self, operation: usize) -> Result<&(BoxCells<'c>, LaneCells<'c>), Error> {
        self.grids.get(&operation).ok_or_else(|| Error::internal("a field without checks"))
    }

    /// The piece of an operation and a number.
    pub fn piece(&self, piece: (usize, usize)) -> Result<&BoxCells<'c>, Error> {
        self.pieces.get(&piece).ok_or_else(|| Error::internal("a piece without checks"))
    }
}
