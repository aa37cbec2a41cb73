//! Rows that the parts of a block hand to each other through shared memory.
//!
//! A tile value whose neighbouring rows an apply reads has a buffer `parts x rows x vectors x
//! cells`; in three dimensions rows of neighbouring planes count too. Each part puts those of its
//! rows there that others read. Values whose lives do not overlap share a buffer, as in the
//! strategy `block`. The two values of a chain of steps take turns in two buffers, so that one
//! barrier a step is enough.

use super::layout::{Layout, of_three};
use crate::analysis::footprint;
use crate::analysis::shared_slots::{self, Life};
use crate::kernel::frame::Frame;
use crate::kernel::lanes;
use crate::kernel::shared_memory;
use melior::ir::Type;
use melior::ir::r#type::MemRefType;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{Kernel, TileOp};

/// Which rows of which tile values are handed over, and in which buffer.
pub struct HandOver<'c> {
    /// The types of all buffers.
    pub types: Vec<MemRefType<'c>>,
    values: BTreeMap<usize, Shared<'c>>,
}

/// A value that is handed over.
struct Shared<'c> {
    element: Type<'c>,
    /// Rows of a lane that others read, each with its plane.
    rows: Vec<[i64; 2]>,
    buffer: usize,
}

impl<'c> HandOver<'c> {
    /// Finds the rows that applies read, and a buffer for each value.
    pub fn plan(
        builder: &Builder<'c>,
        program: &Program<'c>,
        kernel: &Kernel<'c>,
        layout: &Layout<'c>,
    ) -> Result<Self, Error> {
        let mut found: BTreeMap<usize, (Type<'c>, BTreeSet<[i64; 2]>, usize)> = BTreeMap::new();
        for (place, op) in kernel.body.iter().enumerate() {
            let TileOp::Apply(apply) = op else { continue };
            for read in footprint::of_pieces(program, &apply.pieces)? {
                let tile = apply.input(read.field);
                let tile = tile.ok_or_else(|| Error::internal("an apply reads no tile"))?;
                let element = program.field(read.field)?.element;
                for row in foreign_rows(&read, layout)? {
                    let entry = (element, BTreeSet::new(), place);
                    let (_, rows, last) = found.entry(mlir::key(tile)).or_insert(entry);
                    rows.insert(at(row, layout).1);
                    *last = place;
                }
            }
        }
        let (mut keys, mut lives) = (Vec::new(), Vec::new());
        for (first, op) in kernel.body.iter().enumerate() {
            let made = match op {
                TileOp::Load { tile, .. } => vec![*tile],
                TileOp::Apply(apply) => apply.outputs.iter().map(|(_, tile)| *tile).collect(),
                TileOp::Store { .. } => Vec::new(),
            };
            for tile in made {
                let Some((element, rows, last)) = found.get(&mlir::key(tile)) else { continue };
                let vector = lanes::vector_length(*element, layout.width);
                let rows_each = i64::try_from(rows.len()).unwrap_or(i64::MAX);
                keys.push(mlir::key(tile));
                lives.push(Life {
                    kind: element.to_string(),
                    extents: vec![
                        layout.parts.iter().product(),
                        rows_each,
                        layout.width / vector,
                        layout.lanes * vector,
                    ],
                    first,
                    last: *last,
                });
            }
        }
        let (slots, assigned) = shared_slots::assign(&lives);
        let mut values = BTreeMap::new();
        for (key, buffer) in keys.into_iter().zip(&assigned) {
            let Some((element, rows, _)) = found.remove(&key) else { continue };
            values
                .insert(key, Shared { element, rows: rows.into_iter().collect(), buffer: *buffer });
        }
        let mut types = Vec::new();
        for (number, slot) in slots.iter().enumerate() {
            let holds = |shared: &&Shared| shared.buffer == number;
            let value = values.values().find(holds);
            let value = value.ok_or_else(|| Error::internal("a buffer of no value"))?;
            types.push(shared_memory::shared_type(builder, &slot.extents, value.element)?);
        }
        Ok(Self { types, values })
    }

    /// The buffer of a value that is handed over.
    pub fn buffer(&self, tile: Val) -> Option<usize> {
        self.values.get(&mlir::key(tile)).map(|shared| shared.buffer)
    }
}

/// Rows of other parts that a lane reads, each with its plane.
pub fn foreign_rows<'c>(
    read: &footprint::Read<'c>,
    layout: &Layout<'c>,
) -> Result<BTreeSet<[i64; 2]>, Error> {
    read_rows(read, &layout.rows().collect::<Vec<_>>(), layout)
}

/// Those that some rows of a lane read.
pub fn read_rows<'c>(
    read: &footprint::Read<'c>,
    rows: &[[i64; 2]],
    layout: &Layout<'c>,
) -> Result<BTreeSet<[i64; 2]>, Error> {
    let ([front, up, _], [back, down, _]) =
        (of_three(&read.reach.lower, 0)?, of_three(&read.reach.upper, 0)?);
    let around = |[plane, row]: &[i64; 2]| {
        let (plane, row) = (*plane, *row);
        (plane + front..=plane + back)
            .flat_map(move |plane| (row + up..=row + down).map(move |row| [plane, row]))
    };
    Ok(rows.iter().flat_map(around).filter(|row| layout.is_foreign(*row)).collect())
}

/// How many parts away a row lies, and the row of that part's lanes.
fn at(row: [i64; 2], layout: &Layout) -> ([i64; 2], [i64; 2]) {
    let [[plane, of_planes], [row, of_rows]] = [0, 1].map(|dimension: usize| {
        let (row, each) = (row.get(dimension).copied(), layout.each.get(dimension).copied());
        let (row, each) = (row.unwrap_or(0), each.unwrap_or(1));
        [row.rem_euclid(each), row.div_euclid(each)]
    });
    ([of_planes, of_rows], [plane, row])
}

/// The buffers as a lane sees them.
pub struct Rows<'c, 'p> {
    plan: &'p HandOver<'c>,
    layout: &'p Layout<'c>,
    buffers: &'p [Val<'c>],
    /// The lane's part: of planes, where there are any, and of rows.
    part: [Option<Val<'c>>; 2],
    lane: Val<'c>,
}

impl<'c, 'p> Rows<'c, 'p> {
    /// Takes the frame's buffers.
    pub fn new(
        frame: &'p Frame<'c, '_>,
        plan: &'p HandOver<'c>,
        layout: &'p Layout<'c>,
    ) -> Result<Self, Error> {
        let (part, lane) = match *frame.thread.as_slice() {
            [row, lane] => ([None, Some(row)], lane),
            [plane, row, lane] => ([Some(plane), Some(row)], lane),
            _ => return Err(Error::internal("a block of other than two or three dimensions")),
        };
        Ok(Self { plan, layout, buffers: &frame.shared, part, lane })
    }

    /// Hands over those of a lane's new cells that others read.
    pub fn put(
        &self,
        builder: &Builder<'c>,
        tile: Val<'c>,
        cells: &[Val<'c>],
    ) -> Result<(), Error> {
        let Some(shared) = self.plan.values.get(&mlir::key(tile)) else { return Ok(()) };
        let vector = lanes::vector_length(shared.element, self.layout.width);
        let length = usize::try_from(vector).unwrap_or(1).max(1);
        let part = self.part(builder, [0, 0])?;
        for (slot, row) in (0..).zip(&shared.rows) {
            let width = usize::try_from(self.layout.width).unwrap_or(0);
            let first = self.layout.row_number(*row).unwrap_or(usize::MAX).saturating_mul(width);
            let own = cells.get(first..first.saturating_add(width));
            let own = own.ok_or_else(|| Error::internal("a row that no lane holds"))?;
            for (number, cells) in (0..).zip(own.chunks(length)) {
                let at = self.place(builder, part, (slot, number), vector)?;
                lanes::store(builder, cells, self.buffer(shared)?, &at, vector)?;
            }
        }
        Ok(())
    }

    /// A lane's columns of a row of another part. At the ends of the block, where there is no such
    /// part, the block's own outer part stands for it; no cell of the result depends on that.
    pub fn take(
        &self,
        builder: &Builder<'c>,
        tile: Val<'c>,
        row: [i64; 2],
    ) -> Result<Vec<Val<'c>>, Error> {
        let none = || Error::internal("a row that nobody hands over");
        let shared = self.plan.values.get(&mlir::key(tile)).ok_or_else(none)?;
        let (distance, own) = at(row, self.layout);
        let slot = (0..).zip(&shared.rows).find(|(_, held)| **held == own);
        let (slot, _) = slot.ok_or_else(none)?;
        let part = self.part(builder, distance)?;
        let vector = lanes::vector_length(shared.element, self.layout.width);
        let mut cells = Vec::new();
        for number in 0..self.layout.width / vector {
            let at = self.place(builder, part, (slot, number), vector)?;
            cells.extend(lanes::load(builder, self.buffer(shared)?, &at, vector, vector)?);
        }
        Ok(cells)
    }

    /// The number of the part so many parts away along planes and rows.
    fn part(&self, builder: &Builder<'c>, distance: [i64; 2]) -> Result<Val<'c>, Error> {
        let mut number: Option<Val<'c>> = None;
        for ((own, distance), parts) in self.part.iter().zip(distance).zip(self.layout.parts) {
            let Some(own) = *own else { continue };
            let part = builder.add_constant(own, distance)?;
            let part = match distance {
                0 => part,
                ..0 => builder.binary("arith.maxsi", part, builder.index(0)?)?,
                _ => builder.binary("arith.minsi", part, builder.index(parts - 1)?)?,
            };
            number = Some(match number {
                Some(before) => builder.add(builder.multiply_constant(before, parts)?, part)?,
                None => part,
            });
        }
        number.ok_or_else(|| Error::internal("a block of no parts"))
    }

    fn buffer(&self, shared: &Shared<'c>) -> Result<Val<'c>, Error> {
        let buffer = self.buffers.get(shared.buffer).copied();
        buffer.ok_or_else(|| Error::internal("a shared buffer is missing"))
    }

    /// Vectors of neighbouring lanes lie one behind the other, which no banks conflict over.
    fn place(
        &self,
        builder: &Builder<'c>,
        part: Val<'c>,
        (slot, number): (i64, i64),
        vector: i64,
    ) -> Result<[Val<'c>; 4], Error> {
        let column = builder.multiply_constant(self.lane, vector)?;
        Ok([part, builder.index(slot)?, builder.index(number)?, column])
    }
}
