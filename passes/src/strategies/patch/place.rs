//! A lane in its tile: the coordinates of its cells, and which of them the tile stores.

use super::layout::{Layout, Position};
use super::masks::Mask;
use crate::kernel::frame::Frame;
use crate::kernel::lane_cells::Beyond;
use crate::kernel::lanes;
use crate::kernel::tile_ends::Ends;
use melior::ir::AffineMap;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::Grid;
use stencil_dialects::tiled::{Halo, Kernel};

/// A value for each coordinate of a lane's cells, per dimension: the coordinate, or a condition.
#[derive(Clone)]
pub struct Cells<'c>(Vec<Vec<Val<'c>>>);

/// First and last coordinate of a box per dimension, slowest first.
pub type Bounds<'c> = Vec<[Val<'c>; 2]>;

/// The bounds of a box.
pub fn bounds<'c>(
    frame: &Frame<'c, '_>,
    builder: &Builder<'c>,
    (lower, upper): (AffineMap<'c>, AffineMap<'c>),
) -> Result<Bounds<'c>, Error> {
    let (lower, upper) = (frame.scope.bounds(builder, lower)?, frame.scope.bounds(builder, upper)?);
    Ok(lower.into_iter().zip(upper).map(|(lower, upper)| [lower, upper]).collect())
}

impl<'c> Cells<'c> {
    /// For each coordinate whether it lies in a box.
    pub fn inside(&self, builder: &Builder<'c>, bounds: &Bounds<'c>) -> Result<Self, Error> {
        let mut all = Vec::new();
        for (cells, [first, last]) in self.0.iter().zip(bounds) {
            let inside = |cell: &Val<'c>| {
                let after = builder.compare(Compare::Ge, *cell, *first)?;
                builder.both(after, builder.compare(Compare::Le, *cell, *last)?)
            };
            all.push(cells.iter().map(inside).collect::<Result<_, Error>>()?);
        }
        Ok(Self(all))
    }

    /// The same cells, with each cell outside of a grid replaced by the one inside that stands for
    /// it. Columns come in groups of `group`, each all inside or all outside.
    pub fn kept_in(
        &self,
        builder: &Builder<'c>,
        bounds: &Bounds<'c>,
        (beyond, group): (Beyond, i64),
    ) -> Result<Self, Error> {
        let mut all = Vec::new();
        for (dimension, (cells, ends)) in self.0.iter().zip(bounds).enumerate() {
            let group = if dimension + 1 == self.0.len() { group } else { 1 };
            let kept = |(number, cell): (i64, &Val<'c>)| {
                let start = builder.add_constant(*cell, -(number % group))?;
                let start = beyond.inside(builder, start, *ends, group)?;
                builder.add_constant(start, number % group)
            };
            all.push((0..).zip(cells).map(kept).collect::<Result<_, Error>>()?);
        }
        Ok(Self(all))
    }

    /// The same of a grid's cells.
    pub fn kept_in_grid(
        &self,
        frame: &Frame<'c, '_>,
        builder: &Builder<'c>,
        grid: &Grid<'c>,
        how: (Beyond, i64),
    ) -> Result<Self, Error> {
        self.kept_in(builder, &bounds(frame, builder, (grid.lower, grid.upper))?, how)
    }

    /// The values of planes and rows in words.
    pub fn packed(&self, builder: &Builder<'c>) -> Result<Mask<'c>, Error> {
        let outer = self.0.len().saturating_sub(1);
        let all: Vec<_> = self.0.iter().take(outer).flatten().copied().collect();
        Mask::of(builder, &all)
    }

    /// The same with values of planes and rows that were packed. Those of columns stay: lanes at no
    /// rim of rows need them too.
    pub fn unpacked(&self, values: Vec<Val<'c>>) -> Self {
        let (mut values, mut all) = (values.into_iter(), self.0.clone());
        let outer = all.len().saturating_sub(1);
        for own in all.iter_mut().take(outer).flatten() {
            *own = values.next().unwrap_or(*own);
        }
        Self(all)
    }

    /// The same coordinates, which LLVM does not compute outside of a loop: their addresses would
    /// take registers there. All lanes of a warp must ask for them together.
    pub fn inside_loop(&self, builder: &Builder<'c>) -> Result<Self, Error> {
        let zero = builder.constant(builder.integer_type(32), 0)?;
        let zero = lanes::shuffle(builder, zero, 0)?;
        let zero = builder.value("arith.index_cast", &[zero], builder.index_type(), &[])?;
        let mut all = Vec::new();
        for cells in &self.0 {
            let Some(first) = cells.first() else { continue };
            let first = builder.add(*first, zero)?;
            let cells = (0..).zip(cells).map(|(cell, _)| builder.add_constant(first, cell));
            all.push(cells.collect::<Result<Vec<_>, _>>()?);
        }
        Ok(Self(all))
    }

    /// The values of a cell, slowest dimension first.
    pub fn of(&self, position: Position) -> Result<Vec<Val<'c>>, Error> {
        let skip = position.len().saturating_sub(self.0.len());
        let value = |(cells, place): (&Vec<Val<'c>>, i64)| {
            let cell = usize::try_from(place).ok().and_then(|place| cells.get(place)).copied();
            cell.ok_or_else(|| Error::internal("a cell that no lane holds"))
        };
        self.0.iter().zip(position.into_iter().skip(skip)).map(value).collect()
    }

    /// The first and the last value per dimension.
    pub fn ends(&self) -> Result<Vec<[Val<'c>; 2]>, Error> {
        let ends = |cells: &Vec<Val<'c>>| Some([*cells.first()?, *cells.last()?]);
        let ends = self.0.iter().map(ends).collect::<Option<Vec<_>>>();
        ends.ok_or_else(|| Error::internal("a lane of no cells"))
    }
}

/// A lane's cells in its tile.
#[derive(Clone)]
pub struct Place<'c> {
    /// Its cells.
    pub cells: Cells<'c>,
    /// For each row of the lane whether its cells belong to the tile.
    pub in_tile: Vec<Val<'c>>,
    /// The ends of the tile.
    pub ends: Vec<Ends<'c>>,
}

impl<'c> Place<'c> {
    /// Finds the lane's cells.
    pub fn new(
        frame: &Frame<'c, '_>,
        kernel: &Kernel<'c>,
        layout: &Layout<'c>,
    ) -> Result<Self, Error> {
        let builder = &frame.builder;
        let ([planes, rows], [front, top]) = (layout.each, layout.before);
        let shape = [(planes, front), (rows, top), (layout.width, layout.left)];
        let shape = shape.into_iter().skip(3_usize.saturating_sub(layout.rank));
        let ends = Ends::all(frame, kernel)?;
        let dimensions = frame.origin.iter().zip(&frame.thread).zip(&kernel.schedule.tile);
        let (mut cells, mut held) = (Vec::new(), Vec::new());
        for (((each, before), ((origin, thread), tile)), ends) in shape.zip(dimensions).zip(&ends) {
            let beyond = builder.multiply_constant(*thread, each)?;
            let first = builder.add_constant(builder.add(*origin, beyond)?, -before)?;
            let all = (0..each).map(|cell| builder.add_constant(first, cell));
            let all = all.collect::<Result<Vec<_>, _>>()?;
            let inside = all.iter().map(|cell| ends.holds(builder, *cell, *origin, *tile));
            held.push(inside.collect::<Result<Vec<_>, _>>()?);
            cells.push(all);
        }
        let held = Cells(held);
        let mut in_tile = Vec::new();
        for [plane, row] in layout.rows() {
            // Tiles are whole lanes wide, so the first column tells.
            let inside = builder.all(&held.of([plane, row, 0])?)?;
            in_tile.push(inside.ok_or_else(|| Error::internal("a tile of no dimensions"))?);
        }
        Ok(Self { cells: Cells(cells), in_tile, ends })
    }

    /// For each coordinate whether it lies in the box around the tile that an apply computes.
    pub fn computed(
        &self,
        frame: &Frame<'c, '_>,
        builder: &Builder<'c>,
        (halo, tile): (&Halo, &[i64]),
    ) -> Result<Cells<'c>, Error> {
        let mut ends = Vec::new();
        for (dimension, origin) in frame.origin.iter().enumerate() {
            let of = |cells: &[i64]| cells.get(dimension).copied().unwrap_or(0);
            let first = builder.add_constant(*origin, of(&halo.lower))?;
            let last = builder.add_constant(*origin, of(tile) - 1 + of(&halo.upper))?;
            ends.push([first, last]);
        }
        self.cells.inside(builder, &ends)
    }
}
