//! The code of a strip: its tiles, its times, its points.

use super::coverage::Coverage;
use super::geometry::Geometry;
use super::old_values::OldValues;
use super::row_values::Leaving;
use super::sequences::Sequence;
use super::windows::{self, Kept, Window};
use crate::kernel::early_loads::Groups;
use crate::kernel::lanes;
use crate::kernel::scope::Scope;
use melior::ir::{AffineMap, ValueLike};
use std::cell::RefCell;
use std::collections::BTreeMap;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil;
use stencil_dialects::tiled::Apply;

/// The values and facts that the code of a kernel uses.
#[derive(Clone)]
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
    /// Values that a strip hands to the next, and the last one to the block below:
    /// `(strips + 1) x rows x ring` of each window.
    pub rings: Vec<Val<'c>>,
    /// Old values, with their buffers: `2 x strips x rows x lanes x columns`.
    pub old: Vec<(OldValues<'c>, Val<'c>)>,
    /// Sequences, with their buffers: `2 x strips x values`.
    pub sequences: Vec<(Sequence<'c>, Val<'c>)>,
    /// New values on their way to memory: `strips x rows x lanes x times` of each stored field.
    pub results: BTreeMap<&'c str, Val<'c>>,
    /// What the sweep stores in place of matrices.
    pub leaving: &'p Leaving<'c>,
    /// Rows and columns of the grid.
    pub extents: [Val<'c>; 2],
    /// The first point.
    pub lower: [Val<'c>; 2],
    /// Rows before the first strip (`frozen.rs`).
    pub frozen: i64,
    /// The thread's number in its warp, as `index`.
    pub lane: Val<'c>,
    /// Zero that no compiler knows (`apart.rs`).
    pub zero: Option<Val<'c>>,
    /// The bodies of the loops over times, a group for some times each.
    pub bodies: &'p RefCell<Vec<Groups<'c>>>,
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
#[derive(Clone, Copy)]
pub enum Points<'c, 'r> {
    /// The main piece covers all points, of which no value stays in last rows.
    Main,
    /// The main piece covers all points.
    Last,
    /// Pieces are evaluated at the nearest point that they cover, and selected.
    Nearest(&'r Coverage<'c>),
    /// A branch stands before each piece.
    Branches,
}

impl Points<'_, '_> {
    /// Whether the main piece covers all points, of which no value stays in last rows.
    fn is_main(self) -> bool {
        matches!(self, Self::Main)
    }

    /// Whether the main piece covers all points.
    pub fn is_in_main(self) -> bool {
        matches!(self, Self::Main | Self::Last)
    }
}

/// Times whose values from the strip above are loaded at once.
const HANDED: i64 = 4;

/// Times whose values are looked at together for the value of a row.
const LOOKED: usize = 8;

/// Operations of point functions in the body of a tile's loop.
const BODY: i64 = 1200;

impl<'c> Strips<'c, '_> {
    /// Computes a tile; the values that the lane carries to the next.
    pub fn tile(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        carried: &[Val<'c>],
    ) -> Result<Vec<Val<'c>>, Error> {
        let types = self.carried()?;
        let nearest = |builder: &Builder<'c>, settled| {
            let coverage = self.coverage(builder, tile, settled)?;
            self.times(builder, tile, carried, Points::Nearest(&coverage))
        };
        let selected = |builder: &Builder<'c>| {
            let settled = self.settled(builder, tile)?;
            let version = |settled| move |builder: &Builder<'c>| nearest(builder, settled);
            builder.choose(settled, &types, version(true), version(false))
        };
        let rim = |builder: &Builder<'c>| match self.filled {
            None => selected(builder),
            Some(filled) => builder.choose(filled, &types, selected, |builder| {
                self.times(builder, tile, carried, Points::Branches)
            }),
        };
        match self.interior(builder, tile)? {
            None => rim(builder),
            Some(interior) => builder.choose(
                interior,
                &types,
                |builder| {
                    let Some(last) = self.has_last_rows(builder, tile)? else {
                        return self.times(builder, tile, carried, Points::Main);
                    };
                    let version = |points| {
                        move |builder: &Builder<'c>| self.times(builder, tile, carried, points)
                    };
                    builder.choose(last, &types, version(Points::Last), version(Points::Main))
                },
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
        points: Points<'c, '_>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let width = self.geometry.width;
        let times = self.times_per_body(points)?;
        let bounds = (builder.index(0)?, builder.index(width)?, builder.index(times)?);
        let of_windows = windows::types(&self.windows).len();
        builder.carry(bounds, carried, |builder, start, carried| {
            let (windows, values) = carried.split_at(of_windows.min(carried.len()));
            let mut row_values = values.to_vec();
            self.bodies.borrow_mut().push(Groups::new(builder.block));
            let group = times.min(HANDED);
            let load =
                |time| self.handed(builder, tile, (builder.add_constant(start, time)?, group));
            let mut handed = load(0)?.into_iter();
            let mut carried = windows.to_vec();
            let mut waiting: Vec<Vec<Vec<Val>>> = Vec::new();
            let combine = |builder: &Builder<'c>, end: i64, before, waiting: &mut Vec<_>| {
                let results = std::mem::take(waiting);
                let count = i64::try_from(results.len()).unwrap_or(0);
                let time = builder.add_constant(start, end - count)?;
                self.combine(builder, (tile, time), &results, (before, points))
            };
            for first in (0..times).step_by(usize::try_from(group).unwrap_or(1)) {
                // A group ahead, so that no time waits for shared memory.
                let next = if first + group < times { load(first + group)? } else { Vec::new() };
                let (mut results, mut handed_on) = (Vec::new(), Vec::new());
                for (number, handed) in (first..).zip(handed) {
                    let begins = number == first && number > 0;
                    let time = builder.add_constant(start, number)?;
                    if let Some(groups) = self.bodies.borrow_mut().last_mut().filter(|_| begins) {
                        groups.next();
                    }
                    let mut kept = windows::unpack(&self.windows, &carried);
                    handed_on.push(self.last_rows(&kept)?);
                    self.take(builder, &handed, &mut kept)?;
                    // While values of the lane above are on their way.
                    if waiting.len() >= LOOKED {
                        row_values = combine(builder, number, row_values, &mut waiting)?;
                    }
                    let new = self.time(builder, (tile, time), &mut kept, points)?;
                    waiting.push(new.clone());
                    results.push(new);
                    carried = windows::pack(&self.windows, &kept);
                }
                handed = next.into_iter();
                // At once, while the next time waits for its shuffle.
                self.put(builder, (tile, start, first), &results, points)?;
                self.hand_on(builder, (tile, start, first), &handed_on)?;
            }
            let row_values = combine(builder, times, row_values, &mut waiting)?;
            Ok([carried, row_values].concat())
        })
    }

    /// Puts the new values of some times into shared memory, several times of a row at once: those
    /// that begin `first` times behind the start of a body. The first slots are repeated behind the
    /// last one, so that warps that store find the times of an access side by side.
    fn put(
        &self,
        builder: &Builder<'c>,
        (tile, start, first): (Tile<'c>, Val<'c>, i64),
        results: &[Vec<Vec<Val<'c>>>],
        points: Points<'c, '_>,
    ) -> Result<(), Error> {
        let times = i64::try_from(results.len()).unwrap_or(1);
        let slot = builder.add(self.kept_slot(builder, tile.time)?, start)?;
        let slot = builder.add_constant(slot, first)?;
        let at_once = self.stored_at_once()?;
        let begins = builder.compare(Compare::Lt, slot, builder.index(at_once)?)?;
        // Times may come one by one: each of the first slots is repeated when it comes.
        let repeats = at_once > 1 && first < at_once;
        let repeated = usize::try_from(at_once.min(times)).ok().filter(|_| repeats);
        for (output, (field, _)) in self.apply.outputs.iter().enumerate() {
            let whole = self.targets.contains_key(field);
            // A temp field that nobody reads later is not stored.
            let stored = self.results.get(field).filter(|_| whole || !points.is_main());
            let Some(buffer) = stored else { continue };
            for row in 0..self.geometry.rows {
                let at = usize::try_from(row).unwrap_or(0);
                let values: Vec<_> =
                    results.iter().filter_map(|rows| rows.get(at)?.get(output).copied()).collect();
                let Some(first) = values.first() else { continue };
                let vector = lanes::vector_length(first.r#type(), times);
                let row = builder.index(row)?;
                let place = [tile.strip, row, self.lane, slot];
                lanes::store(builder, &values, *buffer, &place, vector)?;
                let Some(repeated) = repeated else { continue };
                let values = values.get(..repeated).unwrap_or_default();
                let vector = lanes::vector_length(first.r#type(), repeated as i64);
                builder.when(begins, |builder| {
                    let behind = builder.add_constant(slot, self.geometry.kept_times())?;
                    let place = [tile.strip, row, self.lane, behind];
                    lanes::store(builder, values, *buffer, &place, vector)
                })?;
            }
        }
        Ok(())
    }

    /// Times in the body of a tile's loop: a divisor of its times.
    fn times_per_body(&self, points: Points<'c, '_>) -> Result<i64, Error> {
        let mut operations = 0;
        let pieces = match (points, &self.apply.main) {
            (Points::Main | Points::Last, Some(main)) => std::slice::from_ref(main),
            _ => self.apply.pieces.as_slice(),
        };
        for piece in pieces {
            let function = stencil::function(self.scope.module, piece.function)?;
            operations += i64::try_from(mlir::walk(function).len()).unwrap_or(i64::MAX);
        }
        let each = operations.max(1) * self.geometry.rows;
        let width = self.geometry.width;
        Ok((1..=width).rev().find(|times| width % times == 0 && times * each <= BODY).unwrap_or(1))
    }

    /// The slot of a new value of a time on its way to memory.
    pub fn kept_slot(&self, builder: &Builder<'c>, time: Val<'c>) -> Result<Val<'c>, Error> {
        builder.binary("arith.andi", time, builder.index(self.geometry.kept_times() - 1)?)
    }

    /// Computes the lane's rows at a time. The new values, by row and output.
    fn time(
        &self,
        builder: &Builder<'c>,
        (tile, time): (Tile<'c>, Val<'c>),
        kept: &mut [Kept<'c>],
        points: Points<'c, '_>,
    ) -> Result<Vec<Vec<Val<'c>>>, Error> {
        let geometry = &self.geometry;
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

    /// The first and last row, then column, of a box.
    pub fn ends(
        &self,
        builder: &Builder<'c>,
        (lower, upper): (AffineMap<'c>, AffineMap<'c>),
    ) -> Result<[[Val<'c>; 2]; 2], Error> {
        let ends = [self.scope.bounds(builder, lower)?, self.scope.bounds(builder, upper)?];
        match ends.each_ref().map(Vec::as_slice) {
            [&[top, left], &[bottom, right]] => Ok([[top, bottom], [left, right]]),
            _ => Err(Error::internal("a box of another rank")),
        }
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
