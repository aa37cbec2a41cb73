//! The code of a strip: its tiles, its times, its points.

use super::geometry::Geometry;
use super::old_values::OldValues;
use super::sequences::Sequence;
use super::windows::{self, Kept, Window};
use crate::kernel::lanes::{self, WARP};
use crate::kernel::scope::Scope;
use melior::ir::{AffineMap, ValueLike};
use std::cell::RefCell;
use std::collections::BTreeMap;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Blk, Val};
use stencil_dialects::stencil;
use stencil_dialects::tiled::Apply;

/// The values and facts that the code of a kernel uses.
pub struct Strips<'c, 'p> {
    /// The kernel's declarations and parameters.
    pub scope: Scope<'c, 'p>,
    /// The buffers with old values.
    pub sources: BTreeMap<&'c str, Val<'c>>,
    /// The buffers that the sweep writes.
    pub targets: BTreeMap<&'c str, Val<'c>>,
    /// The pieces of the function.
    pub apply: &'p Apply<'c>,
    /// How strips lie.
    pub geometry: Geometry,
    /// Values in registers.
    pub windows: Vec<Window<'c>>,
    /// Values that a strip hands to the next: `strips x rows x ring` of each window.
    pub rings: Vec<Val<'c>>,
    /// Old values, with their buffers: `2 x strips x rows x lanes x columns`.
    pub old: Vec<(OldValues<'c>, Val<'c>)>,
    /// Sequences, with their buffers: `2 x strips x values`.
    pub sequences: Vec<(Sequence<'c>, Val<'c>)>,
    /// New values on their way to memory: `strips x rows x lanes x times` of each output.
    pub results: Vec<Val<'c>>,
    /// Rows and columns of the grid.
    pub extents: [Val<'c>; 2],
    /// The first point.
    pub lower: [Val<'c>; 2],
    /// The thread's number in its warp, as `index`.
    pub lane: Val<'c>,
    /// The bodies of the loops over times.
    pub bodies: RefCell<Vec<Blk<'c>>>,
    /// Whether every piece with absolute reads and every loaded grid holds a point; none if always
    /// true.
    pub filled: Option<Val<'c>>,
}

/// A tile of a strip.
#[derive(Clone, Copy)]
pub struct Tile<'c> {
    /// The strip's number in its block.
    pub strip: Val<'c>,
    /// The strip's first row, from the first point.
    pub row: Val<'c>,
    /// The first lane's first column, from the first point: the tile's first time.
    pub time: Val<'c>,
    /// Which half of the buffers it has.
    pub half: Val<'c>,
}

/// How a point's piece is found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Points {
    /// The main piece covers all points.
    Main,
    /// Pieces are evaluated at the nearest point that they cover, and selected.
    Nearest,
    /// A branch stands before each piece.
    Branches,
}

/// Operations of point functions in the body of a tile's loop.
const BODY: i64 = 600;

impl<'c> Strips<'c, '_> {
    /// Computes a tile; the values that the lane carries to the next.
    pub fn tile(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        carried: &[Val<'c>],
    ) -> Result<Vec<Val<'c>>, Error> {
        let types = windows::types(&self.windows);
        let rim = |builder: &Builder<'c>| match self.filled {
            None => self.times(builder, tile, carried, Points::Nearest),
            Some(filled) => builder.choose(
                filled,
                &types,
                |builder| self.times(builder, tile, carried, Points::Nearest),
                |builder| self.times(builder, tile, carried, Points::Branches),
            ),
        };
        match self.interior(builder, tile)? {
            None => rim(builder),
            Some(interior) => builder.choose(
                interior,
                &types,
                |builder| self.times(builder, tile, carried, Points::Main),
                rim,
            ),
        }
    }

    /// Whether the main piece covers all points of a tile.
    pub fn interior(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
    ) -> Result<Option<Val<'c>>, Error> {
        let Some(main) = &self.apply.main else { return Ok(None) };
        let geometry = &self.geometry;
        let reach = [[0, geometry.strip() - 1], [-geometry.depth(), geometry.width - 1]];
        self.fits(builder, tile, reach, (main.lower, main.upper)).map(Some)
    }

    /// Whether a box holds all points between two corners, which are distances from a tile's first
    /// row and first time.
    pub fn fits(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        [rows, columns]: [[i64; 2]; 2],
        (lower, upper): (AffineMap<'c>, AffineMap<'c>),
    ) -> Result<Val<'c>, Error> {
        let corner = |row, column| {
            let row = builder.add_constant(tile.row, row)?;
            let column = builder.add_constant(tile.time, column)?;
            let point = self.point_at(builder, [row, column])?;
            self.scope.inside(builder, &point, lower, upper)
        };
        builder.both(corner(rows[0], columns[0])?, corner(rows[1], columns[1])?)
    }

    /// The times of a tile.
    fn times(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        carried: &[Val<'c>],
        points: Points,
    ) -> Result<Vec<Val<'c>>, Error> {
        let width = self.geometry.width;
        let handed = self.handed(builder, tile)?;
        let times = self.times_per_body(points)?;
        let bounds = (builder.index(0)?, builder.index(width)?, builder.index(times)?);
        builder.carry(bounds, carried, |builder, start, carried| {
            self.bodies.borrow_mut().push(builder.block);
            let mut carried = carried.to_vec();
            let (mut results, mut computed) = (Vec::new(), Vec::new());
            for time in 0..times {
                let time = builder.add_constant(start, time)?;
                let mut kept = windows::unpack(&self.windows, &carried);
                results.push(self.time(builder, (tile, time), &handed, &mut kept, points)?);
                carried = windows::pack(&self.windows, &kept);
                computed.push(kept);
            }
            self.hand_on(builder, (tile, start), &computed)?;
            self.put(builder, (tile, start), &results)?;
            Ok(carried)
        })
    }

    /// Puts the new values of some times into shared memory, several times of a row at once.
    fn put(
        &self,
        builder: &Builder<'c>,
        (tile, start): (Tile<'c>, Val<'c>),
        results: &[Vec<Vec<Val<'c>>>],
    ) -> Result<(), Error> {
        let times = i64::try_from(results.len()).unwrap_or(1);
        let slot = builder.add(self.kept_slot(builder, tile.time)?, start)?;
        for (output, buffer) in self.results.iter().enumerate() {
            for row in 0..self.geometry.rows {
                let at = usize::try_from(row).unwrap_or(0);
                let values: Vec<_> =
                    results.iter().filter_map(|rows| rows.get(at)?.get(output).copied()).collect();
                let Some(first) = values.first() else { continue };
                let vector = lanes::vector_length(first.r#type(), times);
                let place = [tile.strip, builder.index(row)?, self.lane, slot];
                lanes::store(builder, &values, *buffer, &place, vector)?;
            }
        }
        Ok(())
    }

    /// Times in the body of a tile's loop: a divisor of its times.
    fn times_per_body(&self, points: Points) -> Result<i64, Error> {
        let mut operations = 0;
        let main = self.apply.main.iter().filter(|_| points == Points::Main);
        let all = self.apply.pieces.iter().filter(|_| points != Points::Main);
        for piece in main.chain(all) {
            let function = stencil::function(self.scope.module, piece.function)?;
            operations += i64::try_from(mlir::walk(function).len()).unwrap_or(i64::MAX);
        }
        let each = operations.max(1) * self.geometry.rows;
        let width = self.geometry.width;
        Ok((1..=width).rev().find(|times| width % times == 0 && times * each <= BODY).unwrap_or(1))
    }

    /// The values that the strip above hands to a tile, by window and row. Each lane holds those of
    /// one time.
    fn handed(&self, builder: &Builder<'c>, tile: Tile<'c>) -> Result<Vec<Val<'c>>, Error> {
        let geometry = &self.geometry;
        let last = builder.index(geometry.width - 1)?;
        let time = builder.add(tile.time, builder.binary("arith.andi", self.lane, last)?)?;
        let slot = self.slot(builder, builder.add_constant(time, geometry.handover())?)?;
        let mut handed = Vec::new();
        for (window, ring) in self.windows.iter().zip(&self.rings) {
            for row in 0..window.above() {
                handed.push(builder.load(*ring, &[tile.strip, builder.index(row)?, slot])?);
            }
        }
        Ok(handed)
    }

    /// The slot of a new value of a time on its way to memory.
    pub fn kept_slot(&self, builder: &Builder<'c>, time: Val<'c>) -> Result<Val<'c>, Error> {
        builder.binary("arith.andi", time, builder.index(self.geometry.kept_times() - 1)?)
    }

    /// The slot of a ring for the value of a time of the strip above.
    pub fn slot(&self, builder: &Builder<'c>, time: Val<'c>) -> Result<Val<'c>, Error> {
        builder.binary("arith.andi", time, builder.index(self.geometry.ring() - 1)?)
    }

    /// One time: takes values of the lane above and computes the lane's rows.
    /// The new values, by row and output.
    fn time(
        &self,
        builder: &Builder<'c>,
        (tile, time): (Tile<'c>, Val<'c>),
        handed: &[Val<'c>],
        kept: &mut [Kept<'c>],
        points: Points,
    ) -> Result<Vec<Vec<Val<'c>>>, Error> {
        let geometry = &self.geometry;
        let first = builder.compare(Compare::Eq, self.lane, builder.index(0)?)?;
        let mut handed = handed.iter();
        for (window, kept) in self.windows.iter().zip(kept.iter_mut()) {
            for (row, handed) in (1..=window.above()).zip(handed.by_ref()) {
                let value = lanes::shuffle(builder, kept.last(row)?, -1)?;
                let handed = lanes::broadcast(builder, *handed, time)?;
                kept.take(row, builder.select(first, handed, value)?);
            }
        }
        let mut results = Vec::new();
        for row in 0..geometry.rows {
            let values = self.point(builder, (tile, time), row, kept, points)?;
            for ((field, _), value) in self.apply.outputs.iter().zip(&values) {
                let window = self.windows.iter().position(|window| window.field == *field);
                if let Some(kept) = window.and_then(|window| kept.get_mut(window)) {
                    kept.push(*value);
                }
            }
            results.push(values);
        }
        Ok(results)
    }

    /// The last lane's last rows of some times go to the strip below, several times at once.
    fn hand_on(
        &self,
        builder: &Builder<'c>,
        (tile, start): (Tile<'c>, Val<'c>),
        times: &[Vec<Kept<'c>>],
    ) -> Result<(), Error> {
        let geometry = &self.geometry;
        if geometry.strips == 1 || geometry.above == 0 {
            return Ok(());
        }
        let last = builder.compare(Compare::Eq, self.lane, builder.index(WARP - 1)?)?;
        let below = builder.add_constant(tile.strip, 1)?;
        let strips = builder.index(geometry.strips)?;
        let there = builder.compare(Compare::Lt, below, strips)?;
        builder.when(builder.both(last, there)?, |builder| {
            // Tiles begin at multiples of their width, and so does the ring.
            let slot = builder.add(self.slot(builder, tile.time)?, start)?;
            let count = i64::try_from(times.len()).unwrap_or(1);
            for (place, (window, ring)) in self.windows.iter().zip(&self.rings).enumerate() {
                let vector = lanes::vector_length(window.element, count);
                for row in 1..=window.above() {
                    let newest = times.iter().filter_map(|kept| kept.get(place));
                    let newest = newest.map(|kept| kept.newest(row));
                    let newest = newest.collect::<Result<Vec<_>, _>>()?;
                    let at = [below, builder.index(row - 1)?, slot];
                    lanes::store(builder, &newest, *ring, &at, vector)?;
                }
            }
            Ok(())
        })
    }

    /// The place of a lane's row at the first time of a tile, from the first point.
    pub fn place(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        (lane, row): (Val<'c>, Val<'c>),
    ) -> Result<[Val<'c>; 2], Error> {
        let geometry = &self.geometry;
        let rows = builder.add(builder.multiply_constant(lane, geometry.rows)?, row)?;
        let late = builder.add(
            builder.multiply_constant(lane, geometry.lag)?,
            builder.multiply_constant(row, geometry.skew)?,
        )?;
        let column = builder.binary("arith.subi", tile.time, late)?;
        Ok([builder.add(tile.row, rows)?, column])
    }

    /// The point at a place.
    pub fn point_at(
        &self,
        builder: &Builder<'c>,
        place: [Val<'c>; 2],
    ) -> Result<Vec<Val<'c>>, Error> {
        place.into_iter().zip(self.lower).map(|(at, lower)| builder.add(at, lower)).collect()
    }

    /// The point of a box that is nearest to a point.
    pub fn nearest(
        &self,
        builder: &Builder<'c>,
        point: &[Val<'c>],
        (lower, upper): (AffineMap<'c>, AffineMap<'c>),
    ) -> Result<Vec<Val<'c>>, Error> {
        let ends = self.scope.bounds(builder, lower)?.into_iter();
        let ends = ends.zip(self.scope.bounds(builder, upper)?);
        let nearest = point.iter().zip(ends).map(|(at, (lower, upper))| {
            let at = builder.binary("arith.maxsi", *at, lower)?;
            builder.binary("arith.minsi", at, upper)
        });
        nearest.collect()
    }
}
