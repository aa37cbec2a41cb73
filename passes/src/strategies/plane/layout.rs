//! What is known of a kernel of planes at compile time: its threads, what they hold, and how many
//! registers that takes.

use super::held::{self, Held};
use super::lower_plane::decline;
use super::ring::HaloSegments;
use crate::analysis::footprint;
use crate::kernel::lanes;
use crate::kernel::shared_memory;
use crate::subject::Subject;
use melior::ir::r#type::MemRefType;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::tiled::{Apply, Kernel};
use stencil_runtime::device::Device;
use stencil_runtime::model;

/// Registers for addresses, the loop and conditions; by ptxas of CUDA 13.0 on the programs of
/// `test-suite/programs`.
const OVERHEAD: i64 = 36;

/// More of them for each field.
const FIELD_OVERHEAD: i64 = 4;

/// Planes that are loaded before their turn where that costs no block: a plane takes a block less
/// time than a load from memory.
const AHEAD: i64 = 2;

/// Registers that a thread may lack by the estimate, which is so much too high for ten fields: more
/// of them cost more than the halo of smaller tiles.
const SPILLED: i64 = 64;

/// Registers of a thread beyond which code would take minutes to make.
const MOST_REGISTERS: i64 = 2048;

/// The layout.
pub struct Layout<'c> {
    /// What a block holds of each field.
    pub held: Vec<Held<'c>>,
    /// Cells of a segment.
    pub width: i64,
    /// Rows of a tile; 1 in two dimensions.
    pub rows: i64,
    /// Segments of a row.
    pub segments: i64,
    /// Planes that are loaded before their turn.
    pub ahead: i64,
    /// Planes of the loop's body.
    pub unroll: i64,
    /// Registers that a thread needs, estimated.
    pub estimate: i64,
    /// Registers that a thread may take.
    pub limit: i64,
}

impl<'c> Layout<'c> {
    /// Plans a kernel of one apply; `ahead` and
    /// `unroll` where so many planes are asked for.
    pub fn plan(
        subject: &Subject<'c, '_>,
        (kernel, apply): (&Kernel<'c>, &Apply<'c>),
        (ahead, unroll): (Option<i64>, Option<i64>),
    ) -> Result<Self, Error> {
        let (tile, per_thread) = (&kernel.schedule.tile, &kernel.schedule.per_thread);
        let (rows, columns, width) = match (tile.as_slice(), per_thread.as_slice()) {
            (&[_, columns], &[1, width]) => (1, columns, width),
            (&[_, rows, columns], &[1, 1, width]) => (rows, columns, width),
            _ => {
                let message = format!(
                    "the strategy {} needs a grid of two dimensions and tiled.per_thread = \
                     [1, cells per thread], or one of three and [1, 1, cells per thread], and \
                     here tile and tiled.per_thread are {tile:?} and {per_thread:?}",
                    super::NAME
                );
                return Err(decline(kernel, Decline::TileShape, message));
            }
        };
        if columns % width != 0 {
            let message = format!(
                "a tile's columns must be a multiple of the {width} cells per thread, and \
                 {columns} are not"
            );
            return Err(decline(kernel, Decline::TileShape, message));
        }
        let held = held::of(subject.program, kernel, apply, width)?;
        let segments = columns / width;
        let mut layout =
            Self { held, width, rows, segments, ahead: 1, unroll: 1, estimate: 0, limit: 0 };
        layout.unroll = unroll.unwrap_or(1);
        let long = footprint::long_operations(subject.program, &apply.pieces)?;
        let results = i64::try_from(apply.outputs.len()).unwrap_or(i64::MAX).max(1);
        let results = results.saturating_add(long);
        let threads = layout.threads();
        let with = |ahead| blocks(layout.registers(results, ahead), threads, subject.device);
        // One more plane under way is worth its registers, but no block.
        let usual = if with(AHEAD) < with(1) { 1 } else { AHEAD };
        layout.ahead = ahead.unwrap_or(usual);
        let registers = layout.registers(results, layout.ahead);
        if registers > MOST_REGISTERS {
            let message = format!(
                "the planes of a thread with {width} cells take {registers} registers, and the \
                 strategy {} holds {MOST_REGISTERS} at most; give a thread fewer cells, or choose \
                 another strategy",
                super::NAME
            );
            return Err(decline(kernel, Decline::Registers, message));
        }
        layout.estimate = registers;
        let room = most(1, threads, subject.device);
        let fits = threads <= subject.device.threads_per_block.into();
        if fits && registers > room + SPILLED && ahead.is_none() {
            let message = format!(
                "the planes of a thread with {width} cells take about {registers} registers, and a \
                 thread of a block of {threads} has {room}; make the tile smaller or give a thread \
                 fewer cells"
            );
            return Err(decline(kernel, Decline::Registers, message));
        }
        layout.limit = most(blocks(registers, threads, subject.device), threads, subject.device);
        for held in &mut layout.held {
            held.planes[1] += layout.ahead - 1;
        }
        Ok(layout)
    }

    /// Threads of a block.
    pub fn threads(&self) -> i64 {
        self.rows.saturating_mul(self.segments)
    }

    /// Threads per dimension, slowest first.
    pub fn block(&self, rank: usize) -> Vec<i64> {
        if rank == 2 { vec![1, self.segments] } else { vec![1, self.rows, self.segments] }
    }

    /// An estimate of a thread's registers, with so many rows of results and of values on the way
    /// to them, and so many planes under way.
    fn registers(&self, results: i64, ahead: i64) -> i64 {
        let (mut all, mut widest) = (OVERHEAD, 1);
        for held in &self.held {
            let words = lanes::words(held.element);
            let halos = held.ring.as_ref().map_or(0, |ring| {
                HaloSegments::of(ring, [self.rows, self.segments]).each(self.threads().max(1))
            });
            let segments = held.count().saturating_add(ahead.saturating_mul(halos + 1));
            widest = widest.max(words);
            all = all.saturating_add(words * self.width.saturating_mul(segments) + FIELD_OVERHEAD);
        }
        all.saturating_add((widest * self.width).saturating_mul(results))
    }

    /// The buffers of the rings.
    pub fn buffers(&self, builder: &Builder<'c>) -> Result<Vec<MemRefType<'c>>, Error> {
        let rings = self.held.iter().filter_map(|held| Some((held, held.ring.as_ref()?)));
        rings
            .map(|(held, ring)| {
                let rows = self.rows + ring.rows[0] + ring.rows[1];
                let columns = (self.segments + ring.segments[0] + ring.segments[1]) * self.width;
                let extents = match held.reach.len() {
                    2 => vec![ring.slots(), columns],
                    _ => vec![ring.slots(), rows, columns],
                };
                shared_memory::shared_type(builder, &extents, held.element)
            })
            .collect()
    }
}

/// Registers that a thread can have where so many blocks share a multiprocessor.
fn most(blocks: i64, threads: i64, device: &Device) -> i64 {
    let threads = u32::try_from(threads.saturating_mul(blocks)).unwrap_or(u32::MAX);
    model::most_registers(threads, device).into()
}

/// Blocks that share a multiprocessor if threads have at least so many registers; at least 1.
fn blocks(registers: i64, threads: i64, device: &Device) -> i64 {
    let fits = |blocks: &i64| registers <= most(*blocks, threads, device);
    (1..=device.blocks_per_multiprocessor.into()).rev().find(fits).unwrap_or(1)
}
