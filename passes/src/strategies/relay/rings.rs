//! The rings of a block: rows that one warp hands to the next, those that are loaded for the first
//! and those that the last one leaves to be stored.
//!
//! A buffer `slots x cells`, whose rows hold a row of each ring. The rows between two barriers fill
//! one half of the slots while the other half is read.

use super::layout::Layout;
use crate::kernel::lanes;
use crate::kernel::shared_memory;
use melior::ir::r#type::MemRefType;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

/// The type of the buffer.
pub fn ty<'c>(builder: &Builder<'c>, layout: &Layout<'c>) -> Result<MemRefType<'c>, Error> {
    let extents = [2 * layout.rows, (layout.warps + 1) * layout.row_cells];
    shared_memory::shared_type(builder, &extents, layout.element)
}

/// The rings as a lane sees them.
pub struct Rings<'c> {
    /// The buffer.
    buffer: Val<'c>,
    /// The lane's first cell of the rows that its warp takes.
    taken: Val<'c>,
    /// That of the rows that it hands over.
    handed: Val<'c>,
    /// The first cell of the last ring.
    last: i64,
    /// Cells of a lane.
    width: i64,
}

impl<'c> Rings<'c> {
    /// The rings of a lane of a warp.
    pub fn new(
        builder: &Builder<'c>,
        layout: &Layout<'c>,
        buffer: Val<'c>,
        (warp, lane): (Val<'c>, Val<'c>),
    ) -> Result<Self, Error> {
        let width = layout.stage.width;
        let row = builder.multiply_constant(warp, layout.row_cells)?;
        let taken = builder.add(row, builder.multiply_constant(lane, width)?)?;
        let handed = builder.add_constant(taken, layout.row_cells)?;
        Ok(Self { buffer, taken, handed, last: layout.warps * layout.row_cells, width })
    }

    /// The lane's cells of a row that its warp takes.
    pub fn take(&self, builder: &Builder<'c>, slot: Val<'c>) -> Result<Vec<Val<'c>>, Error> {
        lanes::load(builder, self.buffer, &[slot, self.taken], self.width, 1)
    }

    /// Hands the lane's cells of a row over.
    pub fn put(
        &self,
        builder: &Builder<'c>,
        slot: Val<'c>,
        cells: &[Val<'c>],
    ) -> Result<(), Error> {
        lanes::store(builder, cells, self.buffer, &[slot, self.handed], 1)
    }

    /// Some cells of a row that the last warp has handed over.
    pub fn done(
        &self,
        builder: &Builder<'c>,
        (slot, place): (Val<'c>, Val<'c>),
        cells: i64,
    ) -> Result<Vec<Val<'c>>, Error> {
        let place = builder.add_constant(place, self.last)?;
        lanes::load(builder, self.buffer, &[slot, place], cells, cells)
    }

    /// Fills some cells of a row for the first warp.
    pub fn fill(
        &self,
        builder: &Builder<'c>,
        (slot, place): (Val<'c>, Val<'c>),
        cells: &[Val<'c>],
    ) -> Result<(), Error> {
        let vector = i64::try_from(cells.len()).unwrap_or(1);
        lanes::store(builder, cells, self.buffer, &[slot, place], vector)
    }
}
