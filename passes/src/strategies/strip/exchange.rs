//! How lanes and strips of a block hand values on: a shuffle per time, and a ring in shared memory
//! from each strip to the next.

use super::code::{Strips, Tile};
use super::windows::Kept;
use crate::kernel::lanes::{self, WARP};
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

impl<'c> Strips<'c, '_> {
    /// The values that the strip above hands to some times of a tile: by time, then window and row.
    pub fn handed(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        (start, times): (Val<'c>, i64),
    ) -> Result<Vec<Vec<Val<'c>>>, Error> {
        let slot = builder.add(self.slot(builder, tile.time)?, start)?;
        let mut handed: Vec<_> = (0..times).map(|_| Vec::new()).collect();
        for (window, ring) in self.windows.iter().zip(&self.rings) {
            let vector = lanes::vector_length(window.element, times);
            for row in 0..window.above() {
                let at = [tile.strip, builder.index(row)?, slot];
                let values = lanes::load(builder, *ring, &at, times, vector)?;
                handed.iter_mut().zip(values).for_each(|(time, value)| time.push(value));
            }
        }
        Ok(handed)
    }

    /// The newest values of the rows that lanes hand on, by window and row.
    pub fn last_rows(&self, kept: &[Kept<'c>]) -> Result<Vec<Val<'c>>, Error> {
        let rows = self.windows.iter().zip(kept);
        let rows = rows.flat_map(|(window, kept)| (1..=window.above()).map(|row| kept.last(row)));
        rows.collect()
    }

    /// The slot of a ring for the value that the first lane takes at a time.
    pub fn slot(&self, builder: &Builder<'c>, time: Val<'c>) -> Result<Val<'c>, Error> {
        builder.binary("arith.andi", time, builder.index(self.geometry.ring() - 1)?)
    }

    /// Takes values of the lane above.
    pub fn take(
        &self,
        builder: &Builder<'c>,
        handed: &[Val<'c>],
        kept: &mut [Kept<'c>],
    ) -> Result<(), Error> {
        // A ring of lanes: no lane reads the last lane's value, so it passes on what is handed.
        let last = builder.compare(Compare::Eq, self.lane, builder.index(WARP - 1)?)?;
        let above = builder.add_constant(self.lane, WARP - 1)?;
        let above = builder.binary("arith.andi", above, builder.index(WARP - 1)?)?;
        let mut handed = handed.iter();
        for (window, kept) in self.windows.iter().zip(kept.iter_mut()) {
            for (row, handed) in (1..=window.above()).zip(handed.by_ref()) {
                let value = builder.select(last, *handed, kept.last(row)?)?;
                kept.take(row, lanes::broadcast(builder, value, above)?);
            }
        }
        Ok(())
    }

    /// The last lane's last rows go to the strip below, several times at once: those of the time
    /// before the first one, which is `first` times behind the start of a body, and of the times
    /// behind it but the last, so that accesses are aligned.
    pub fn hand_on(
        &self,
        builder: &Builder<'c>,
        (tile, start, first): (Tile<'c>, Val<'c>, i64),
        times: &[Vec<Val<'c>>],
    ) -> Result<(), Error> {
        let geometry = &self.geometry;
        if geometry.above == 0 {
            return Ok(());
        }
        let last = builder.compare(Compare::Eq, self.lane, builder.index(WARP - 1)?)?;
        let below = builder.add_constant(tile.strip, 1)?;
        builder.when(last, |builder| {
            let time = builder.add_constant(tile.time, -1 - geometry.handover())?;
            let slot = builder.add(self.slot(builder, time)?, start)?;
            let slot = builder.add_constant(slot, first)?;
            let count = i64::try_from(times.len()).unwrap_or(1);
            let rings = self.windows.iter().zip(&self.rings);
            let rows = rings.flat_map(|ring| (0..ring.0.above()).map(move |row| (ring, row)));
            for (place, ((window, ring), row)) in rows.enumerate() {
                let vector = lanes::vector_length(window.element, count);
                let values = times.iter().filter_map(|rows| rows.get(place).copied());
                let values: Vec<_> = values.collect();
                let at = [below, builder.index(row)?, slot];
                lanes::store(builder, &values, *ring, &at, vector)?;
            }
            Ok(())
        })
    }
}
