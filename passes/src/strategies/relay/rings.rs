//! The rings of a block: rows that one warp hands to the next, those that are loaded for the first
//! and those that the last one leaves to be stored.
//!
//! `rings x 2 x rows x cells of a row`. The rows between two barriers fill one half of each ring
//! while the other half is read.

use super::layout::Layout;
use crate::kernel::lanes;
use crate::kernel::shared_memory;
use melior::ir::r#type::MemRefType;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

/// The type of the buffer.
pub fn ty<'c>(builder: &Builder<'c>, layout: &Layout<'c>) -> Result<MemRefType<'c>, Error> {
    let extents = [layout.warps + 1, 2, layout.rows, layout.row_cells];
    shared_memory::shared_type(builder, &extents, layout.element)
}

/// A row of a ring: the ring, its half, and the row's number since the last barrier.
#[derive(Clone, Copy)]
pub struct Slot<'c> {
    /// The ring: that of the rows which the warp of this number reads.
    pub ring: Val<'c>,
    /// The half.
    pub half: Val<'c>,
    /// The row.
    pub row: Val<'c>,
}

impl<'c> Slot<'c> {
    fn at(self, column: Val<'c>) -> [Val<'c>; 4] {
        [self.ring, self.half, self.row, column]
    }
}

/// The rings as a lane sees them.
pub struct Rings<'c> {
    /// The buffer.
    pub buffer: Val<'c>,
    /// The lane's first column.
    pub column: Val<'c>,
    /// Cells of a lane.
    pub width: i64,
}

impl<'c> Rings<'c> {
    /// The lane's cells of a row.
    pub fn take(&self, builder: &Builder<'c>, slot: Slot<'c>) -> Result<Vec<Val<'c>>, Error> {
        lanes::load(builder, self.buffer, &slot.at(self.column), self.width, 1)
    }

    /// Hands the lane's cells of a row over.
    pub fn put(
        &self,
        builder: &Builder<'c>,
        slot: Slot<'c>,
        cells: &[Val<'c>],
    ) -> Result<(), Error> {
        lanes::store(builder, cells, self.buffer, &slot.at(self.column), 1)
    }

    /// The cell in some column of a row.
    pub fn cell(
        &self,
        builder: &Builder<'c>,
        slot: Slot<'c>,
        column: Val<'c>,
    ) -> Result<Val<'c>, Error> {
        builder.load(self.buffer, &slot.at(column))
    }

    /// Fills the cell in some column of a row.
    pub fn fill(
        &self,
        builder: &Builder<'c>,
        (slot, column): (Slot<'c>, Val<'c>),
        cell: Val<'c>,
    ) -> Result<(), Error> {
        builder.store(cell, self.buffer, &slot.at(column))
    }
}
