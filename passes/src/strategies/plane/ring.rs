//! A field's planes in shared memory: the cells of all threads, and the halo around them, which the
//! threads load beside their own cells.
//!
//! One iteration reads the planes of the ring and fills the free slot, so one barrier at its end
//! serves both.

use super::held::{Place, Ring};
use super::layout::Layout;
use super::source::{Segment, Source};
use crate::kernel::frame::Frame;
use crate::kernel::lanes;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

/// The code of a ring.
pub struct RingCode<'c> {
    buffer: Val<'c>,
    width: i64,
    vector: i64,
    /// The thread's own segment: its row, where planes have rows, and its column.
    own: Spot<'c>,
    /// The segments of the halo that the thread loads.
    halo: Vec<HaloSegment<'c>>,
}

/// A segment's row and column in a slot.
#[derive(Clone, Copy)]
struct Spot<'c> {
    row: Option<Val<'c>>,
    column: Val<'c>,
}

struct HaloSegment<'c> {
    /// Whether there is such a segment; none where all threads have one.
    exists: Option<Val<'c>>,
    segment: Segment<'c>,
    spot: Spot<'c>,
}

/// Segments of a halo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HaloSegments {
    /// Rows of the tile, and segments of a row.
    tile: [i64; 2],
    /// Segments of a row above or below the tile.
    long: i64,
    /// Segments in rows above and below the tile.
    outer: i64,
    /// Segments beside a row of the tile.
    beside: i64,
}

impl HaloSegments {
    /// The segments around a tile of so many rows and segments a row.
    pub fn of(ring: &Ring, [rows, segments]: [i64; 2]) -> Self {
        let beside = ring.segments[0] + ring.segments[1];
        let long = segments + if ring.corners { beside } else { 0 };
        let outer = (ring.rows[0] + ring.rows[1]) * long;
        Self { tile: [rows, segments], long, outer, beside }
    }

    /// All of them.
    pub fn count(&self) -> i64 {
        self.outer + self.beside * self.tile[0]
    }

    /// Those that one of so many threads loads at most.
    pub fn each(&self, threads: i64) -> i64 {
        (self.count() + threads - 1) / threads
    }

    /// Row and segment of the segment of some number, relative to the tile's first.
    fn place<'c>(
        &self,
        builder: &Builder<'c>,
        ring: &Ring,
        number: Val<'c>,
    ) -> Result<[Val<'c>; 2], Error> {
        let [rows, segments] = self.tile;
        // Of a row of numbers those from `before` on lie behind the tile, which is so long.
        let around = |index: Val<'c>, before: i64, length: i64| {
            let behind = builder.compare(Compare::Ge, index, builder.index(before)?)?;
            let skipped = builder.select(behind, builder.index(length)?, builder.index(0)?)?;
            builder.add_constant(builder.add(index, skipped)?, -before)
        };
        let cut = |number: Val<'c>, length: i64| {
            let length = builder.index(length.max(1))?;
            let row = builder.binary("arith.divui", number, length)?;
            Ok::<_, Error>([row, builder.binary("arith.remui", number, length)?])
        };
        let [row, segment] = cut(number, self.long)?;
        let row = around(row, ring.rows[0], rows)?;
        let first = if ring.corners { -ring.segments[0] } else { 0 };
        let outer = [row, builder.add_constant(segment, first)?];
        if self.beside == 0 {
            return Ok(outer);
        }
        let rest = builder.add_constant(number, -self.outer)?;
        let rest = builder.binary("arith.maxsi", rest, builder.index(0)?)?;
        let [row, segment] = cut(rest, self.beside)?;
        let inner = [row, around(segment, ring.segments[0], segments)?];
        let is_outer = builder.compare(Compare::Lt, number, builder.index(self.outer)?)?;
        let [outer_row, outer_segment] = outer;
        let [inner_row, inner_segment] = inner;
        Ok([
            builder.select(is_outer, outer_row, inner_row)?,
            builder.select(is_outer, outer_segment, inner_segment)?,
        ])
    }
}

impl<'c> RingCode<'c> {
    /// The code of a ring in a buffer.
    pub fn new(
        frame: &Frame<'c, '_>,
        layout: &Layout<'c>,
        (ring, buffer): (&Ring, Val<'c>),
        source: &Source<'c, '_>,
    ) -> Result<Self, Error> {
        let builder = &frame.builder;
        let width = layout.width;
        let none = || Error::internal("a block of no threads");
        let solid = frame.thread.len() == 3;
        let [.., lane] = frame.thread.as_slice() else { return Err(none()) };
        let (mut number, mut own_row) = (*lane, None);
        if let [_, row, _] = frame.thread.as_slice() {
            let first = builder.multiply_constant(*row, layout.segments)?;
            number = builder.add(first, *lane)?;
            own_row = Some(builder.add_constant(*row, ring.rows[0])?);
        }
        let column = builder.add_constant(*lane, ring.segments[0])?;
        let own = Spot { row: own_row, column: builder.multiply_constant(column, width)? };
        let segments = HaloSegments::of(ring, [layout.rows, layout.segments]);
        let (threads, mut halo) = (layout.threads(), Vec::new());
        for turn in 0..segments.each(threads) {
            let number = builder.add_constant(number, turn * threads)?;
            let all = (turn + 1) * threads <= segments.count();
            let exists = match all {
                true => None,
                false => {
                    let count = builder.index(segments.count())?;
                    Some(builder.compare(Compare::Lt, number, count)?)
                }
            };
            let [row, segment] = segments.place(builder, ring, number)?;
            let of_tile = |dimension: usize, far: Val<'c>| {
                let origin = frame.origin.get(dimension).copied().ok_or_else(none)?;
                builder.add(origin, far)
            };
            let far = builder.multiply_constant(segment, width)?;
            let column = of_tile(frame.origin.len() - 1, far)?;
            let at = if solid { Some(of_tile(1, row)?) } else { None };
            let spot = Spot {
                row: if solid { Some(builder.add_constant(row, ring.rows[0])?) } else { None },
                column: builder.add_constant(far, ring.segments[0] * width)?,
            };
            halo.push(HaloSegment { exists, segment: source.segment(builder, at, column)?, spot });
        }
        let vector = lanes::vector_length(source.element(), width);
        Ok(Self { buffer, width, vector, own, halo })
    }

    /// The thread's segments of the halo of a plane.
    pub fn load(
        &self,
        builder: &Builder<'c>,
        source: &Source<'c, '_>,
        plane: Val<'c>,
    ) -> Result<Vec<Vec<Val<'c>>>, Error> {
        let load = |halo: &HaloSegment<'c>| {
            let cells = |builder: &Builder<'c>| source.load(builder, &halo.segment, plane);
            let Some(exists) = halo.exists else { return cells(builder) };
            let types = vec![source.element(); usize::try_from(self.width).unwrap_or(1)];
            builder.choose(exists, &types, cells, |builder| {
                types.iter().map(|ty| builder.zero(*ty)).collect()
            })
        };
        self.halo.iter().map(load).collect()
    }

    /// Fills a slot with the thread's own cells of a plane and its part of the halo.
    pub fn store(
        &self,
        builder: &Builder<'c>,
        slot: Val<'c>,
        own: &[Val<'c>],
        halo: &[Vec<Val<'c>>],
    ) -> Result<(), Error> {
        let put = |builder: &Builder<'c>, spot: Spot<'c>, cells: &[Val<'c>]| {
            let at: Vec<_> =
                [Some(slot), spot.row, Some(spot.column)].into_iter().flatten().collect();
            lanes::store(builder, cells, self.buffer, &at, self.vector)
        };
        put(builder, self.own, own)?;
        for (halo, cells) in self.halo.iter().zip(halo) {
            match halo.exists {
                Some(exists) => builder.when(exists, |builder| put(builder, halo.spot, cells))?,
                None => put(builder, halo.spot, cells)?,
            }
        }
        Ok(())
    }

    /// The cells of a segment at a place from the thread's own.
    pub fn read(
        &self,
        builder: &Builder<'c>,
        slot: Val<'c>,
        [_, row, segment]: Place,
    ) -> Result<Vec<Val<'c>>, Error> {
        let row = self.own.row.map(|own| builder.add_constant(own, row)).transpose()?;
        let column = builder.add_constant(self.own.column, segment * self.width)?;
        let at: Vec<_> = [Some(slot), row, Some(column)].into_iter().flatten().collect();
        lanes::load(builder, self.buffer, &at, self.width, self.vector)
    }
}
