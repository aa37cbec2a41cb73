//! Rows that the parts of a block hand to each other through shared memory, in three dimensions.
//!
//! Each value whose neighbouring rows are read has a double buffer: one iteration fills a half that
//! the next one reads. One barrier per iteration therefore serves all values.

use super::in_flight::InFlight;
use super::layout::Layout;
use crate::kernel::frame::Frame;
use crate::kernel::lanes;
use crate::kernel::shared_memory;
use melior::ir::r#type::MemRefType;
use std::collections::BTreeMap;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

/// The buffers as a lane sees them.
pub struct Shared<'c, 'p> {
    layout: &'p Layout<'c>,
    buffers: BTreeMap<usize, Buffer<'c>>,
    /// The lane's part, and its first column in a buffer.
    part: Val<'c>,
    column: Val<'c>,
}

/// The double buffer of a value, `2 x parts x rows x columns`. It has room for parts beyond the
/// ends of the block, so that neighbours lie at a constant distance.
struct Buffer<'c> {
    memref: Val<'c>,
    /// Parts before the block's first, and after its last.
    beyond: (i64, i64),
    /// The rows of a part that it holds.
    rows: Vec<i64>,
}

/// Halves of the double buffers in one iteration; none without buffers.
pub struct BufferHalves<'c>(Option<Halves<'c>>);

#[derive(Clone, Copy)]
struct Halves<'c> {
    put: Val<'c>,
    taken: Val<'c>,
}

/// The types of the buffers, in the order of the values that have one.
pub fn types<'c>(builder: &Builder<'c>, layout: &Layout<'c>) -> Result<Vec<MemRefType<'c>>, Error> {
    let mut types = Vec::new();
    for (window, element) in layout.pipeline.windows.iter().zip(&layout.elements) {
        if window.shared.is_some() {
            let rows = i64::try_from(layout.shared_rows(window).len()).unwrap_or(i64::MAX);
            let (before, after) = layout.neighbours(window);
            let parts = layout.parts - before + after;
            types.push(shared_memory::shared_type(
                builder,
                &[2, parts, rows, layout.lanes * layout.width],
                *element,
            )?);
        }
    }
    Ok(types)
}

impl<'c, 'p> Shared<'c, 'p> {
    /// Takes the frame's buffers.
    pub fn new(
        frame: &Frame<'c, '_>,
        builder: &Builder<'c>,
        layout: &'p Layout<'c>,
    ) -> Result<Self, Error> {
        let windows = layout
            .pipeline
            .windows
            .iter()
            .enumerate()
            .filter(|(_, window)| window.shared.is_some());
        let mut buffers = BTreeMap::new();
        for ((value, window), memref) in windows.zip(&frame.shared) {
            let (before, after) = layout.neighbours(window);
            buffers.insert(
                value,
                Buffer {
                    memref: *memref,
                    beyond: (-before, after),
                    rows: layout.shared_rows(window),
                },
            );
        }
        let [.., part, lane] = frame.thread.as_slice() else {
            return Err(Error::internal("a block of no threads"));
        };
        let column = builder.binary("arith.muli", *lane, builder.index(layout.width)?)?;
        Ok(Self { layout, buffers, part: *part, column })
    }

    /// Which halves an iteration uses.
    pub fn halves(&self, builder: &Builder<'c>, plane: Val<'c>) -> Result<BufferHalves<'c>, Error> {
        if self.buffers.is_empty() {
            return Ok(BufferHalves(None));
        }
        let one = builder.index(1)?;
        let put = builder.binary("arith.andi", plane, one)?;
        Ok(BufferHalves(Some(Halves { put, taken: builder.binary("arith.xori", put, one)? })))
    }

    /// Zeros for the first iteration to take, and in both halves for the parts that the block
    /// lacks.
    pub fn clear(
        &self,
        builder: &Builder<'c>,
        first: Val<'c>,
        zeros: &[Val<'c>],
    ) -> Result<(), Error> {
        let BufferHalves(Some(halves)) = self.halves(builder, first)? else { return Ok(()) };
        for (value, buffer) in &self.buffers {
            let zero =
                zeros.get(*value).copied().ok_or_else(|| Error::internal("a value of no type"))?;
            let cells = vec![zero; usize::try_from(self.layout.width).unwrap_or(1)];
            let clear = |builder: &Builder<'c>, half, part| {
                (0..)
                    .take(buffer.rows.len())
                    .try_for_each(|slot| self.put(builder, *value, (half, part, slot), &cells))
            };
            clear(builder, halves.taken, 0)?;
            // The block's first and last part stand for those beyond.
            let ends = [(0, -buffer.beyond.0..0), (self.layout.parts - 1, 1..buffer.beyond.1 + 1)];
            for (end, beyond) in ends {
                builder.when(
                    builder.compare(Compare::Eq, self.part, builder.index(end)?)?,
                    |builder| {
                        for distance in beyond {
                            clear(builder, halves.taken, distance)?;
                            clear(builder, halves.put, distance)?;
                        }
                        Ok(())
                    },
                )?;
            }
        }
        barrier(builder)
    }

    /// Rows of other parts come in, those of the plane that was handed over an iteration ago.
    pub fn take(
        &self,
        builder: &Builder<'c>,
        state: &mut InFlight<'c>,
        value: usize,
        halves: &BufferHalves<'c>,
    ) -> Result<(), Error> {
        let (Some(buffer), Some(window), Some(halves)) =
            (self.buffers.get(&value), self.layout.pipeline.windows.get(value), halves.0)
        else {
            return Ok(());
        };
        let rows_per_lane = self.layout.rows_per_lane;
        for row in window.rows.iter().filter(|row| !(0..rows_per_lane).contains(&row.row)) {
            let slot = (0..)
                .zip(&buffer.rows)
                .find(|(_, held)| **held == row.row.rem_euclid(rows_per_lane));
            let (slot, _) = slot.ok_or_else(|| Error::internal("a row that nobody hands over"))?;
            let at = self.slot_index(
                builder,
                buffer,
                (halves.taken, row.row.div_euclid(rows_per_lane), slot),
            )?;
            let cells =
                lanes::load(builder, buffer.memref, &at, self.layout.width, self.vector(value))?;
            for (column, cell) in (0..).zip(cells) {
                state.push(value, (row.row, column), cell)?;
            }
        }
        Ok(())
    }

    /// Ends an iteration: hands the lane's rows over. Their cells are in registers anyway, so
    /// stores come last and no load of an iteration waits for one.
    pub fn hand_over(
        &self,
        builder: &Builder<'c>,
        state: &InFlight<'c>,
        halves: &BufferHalves<'c>,
    ) -> Result<(), Error> {
        let Some(halves) = halves.0 else { return Ok(()) };
        for (value, buffer) in &self.buffers {
            let window = self.layout.pipeline.windows.get(*value);
            let age = window
                .and_then(|window| window.shared)
                .ok_or_else(|| Error::internal("a window not shared"))?;
            for (slot, row) in (0..).zip(&buffer.rows) {
                let cells =
                    (0..self.layout.width).map(|column| state.get(*value, (*row, column), age));
                self.put(
                    builder,
                    *value,
                    (halves.put, 0, slot),
                    &cells.collect::<Result<Vec<_>, _>>()?,
                )?;
            }
        }
        barrier(builder)
    }

    /// The index of a lane's row of a part: by its half, the distance of the part from the lane's
    /// own, and its slot among the part's rows.
    fn slot_index(
        &self,
        builder: &Builder<'c>,
        buffer: &Buffer<'c>,
        (half, distance, slot): (Val<'c>, i64, i64),
    ) -> Result<[Val<'c>; 4], Error> {
        let part = builder.add_constant(self.part, buffer.beyond.0 + distance)?;
        Ok([half, part, builder.index(slot)?, self.column])
    }

    fn put(
        &self,
        builder: &Builder<'c>,
        value: usize,
        slot: (Val<'c>, i64, i64),
        cells: &[Val<'c>],
    ) -> Result<(), Error> {
        let buffer = self
            .buffers
            .get(&value)
            .ok_or_else(|| Error::internal("a value that is not handed over"))?;
        let at = self.slot_index(builder, buffer, slot)?;
        lanes::store(builder, cells, buffer.memref, &at, self.vector(value))
    }

    fn vector(&self, value: usize) -> i64 {
        self.layout
            .elements
            .get(value)
            .map_or(1, |element| lanes::vector_length(*element, self.layout.width))
    }
}

fn barrier(builder: &Builder) -> Result<(), Error> {
    builder.op("gpu.barrier", &[], &[], &[]).map(|_| ())
}
