//! Rows that are stored by accesses of a warp side by side, in two dimensions.
//!
//! A lane holds some neighbouring cells of a row, and where these take several accesses, each access of the warp has
//! gaps: of every sector of the row it stores a part, and the level 2 cache is busy with each part as with a whole one.
//! So such rows go through shared memory: each lane puts its own cells there, and in each access to global memory the
//! lanes take cells that lie side by side (coalesced access: CUDA C++ Best Practices Guide, section 10.2.1). On an H200
//! `star2d1r` in `f64` stored 101 million sectors a launch in place of 193, and ran at 1,578 GCells/s in place of 1,471
//! ([decision 014](../../../../docs/decisions/014-rows-side-by-side.md)). Loads lose by the same detour.
//!
//! A row's buffer is a double one: what is put there in one iteration is taken after a barrier, and the next
//! iteration uses the other half. So one barrier a row is enough.

use super::super::emit::{Frame, WARP};
use super::super::lanes;
use super::lane_place::LanePlace;
use super::patch::Patch;
use super::shared;
use std::collections::BTreeMap;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::tiled::Kernel;

/// The rows of all operations that go through shared memory, by operation.
pub struct Relayout<'c>(BTreeMap<usize, Line<'c>>);

/// The rows of one operation that stores.
pub struct Line<'c> {
    /// `2 x cells of a row`.
    buffer: Val<'c>,
    /// Cells of an access.
    vector: i64,
    /// The accesses that make up a row.
    pub accesses: Vec<Access<'c>>,
    /// The lane's own cells: where they begin in the buffer, and how many of them are loaded and stored at once.
    own: (Val<'c>, i64),
}

/// What a lane takes of a row in one access to global memory.
pub struct Access<'c> {
    /// The first cell's column in the grid.
    pub column: Val<'c>,
    /// Whether the cells belong to the tile.
    pub in_tile: Val<'c>,
    /// Where they lie in the buffer.
    place: Val<'c>,
}

impl<'c> Relayout<'c> {
    /// Takes the frame's last buffers.
    pub fn new(
        frame: &Frame<'c, '_>,
        kernel: &Kernel<'c>,
        patch: &Patch<'c>,
        place: &LanePlace<'c>,
    ) -> Result<Self, Error> {
        let builder = &frame.builder;
        let lane = frame.thread.last().copied().ok_or_else(|| Error::internal("a block of no threads"))?;
        let times = |cells| builder.binary("arith.muli", lane, builder.index(cells)?);
        let buffers = frame.shared.iter().rev().take(patch.lines.len()).rev();
        let mut lines = BTreeMap::new();
        for (line, buffer) in patch.lines.iter().zip(buffers) {
            let mut accesses = Vec::new();
            for first in (0..WARP * patch.width).step_by(usize::try_from(WARP * line.vector).unwrap_or(1)) {
                let place_in_row = builder.add_constant(times(line.vector)?, first)?;
                let column = builder.add(place.first, place_in_row)?;
                let in_tile = place.holds_column(frame, kernel, column)?;
                accesses.push(Access { column, in_tile, place: place_in_row });
            }
            let own = (times(patch.width)?, lanes::vector_length(line.element, patch.width));
            lines.insert(line.operation, Line { buffer: *buffer, vector: line.vector, accesses, own });
        }
        Ok(Self(lines))
    }

    /// The rows of an operation; none if they do not go through shared memory.
    pub fn line(&self, operation: usize) -> Option<&Line<'c>> {
        self.0.get(&operation)
    }
}

impl<'c> Line<'c> {
    /// The cells of each access, given the lane's own.
    pub fn to_accesses(
        &self,
        builder: &Builder<'c>,
        row: Val<'c>,
        cells: &[Val<'c>],
    ) -> Result<Vec<Vec<Val<'c>>>, Error> {
        let half = builder.binary("arith.andi", row, builder.index(1)?)?;
        lanes::store(builder, cells, self.buffer, &[half, self.own.0], self.own.1)?;
        shared::barrier(builder)?;
        let of_access =
            |access: &Access<'c>| lanes::load(builder, self.buffer, &[half, access.place], self.vector, self.vector);
        self.accesses.iter().map(of_access).collect()
    }
}
