//! A lane's accesses to global memory: it loads, prefetches and stores planes.

use super::rims::Rims;
use super::walk::Walk;
use crate::kernel::lane_cells::{self, LaneCells};
use crate::kernel::lanes;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

impl<'c> Walk<'c, '_> {
    /// See [`lanes::aligned_cells`].
    pub fn vector(&self, field: &str) -> Result<i64, Error> {
        lanes::aligned_cells(&self.frame.scope, field, self.layout.width)
    }

    /// A plane of an operation's field: the lane's cells, row by row.
    pub fn load(
        &self,
        builder: &Builder<'c>,
        operation: usize,
        field: &str,
        plane: Val<'c>,
        rims: Rims<'c, '_>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let (buffer, vector) = (self.frame.source(field)?, self.vector(field)?);
        let grid = self.frame.scope.program.grid_of(field)?;
        let plane =
            if rims.planes { self.beyond.plane(self.frame, builder, grid, plane)? } else { plane };
        let at = match rims.rim_checks {
            Some(rim_checks) => &rim_checks.grid(operation)?.1,
            None => &self.lane.cells,
        };
        let cells = |builder: &Builder<'c>| {
            let mut loaded = Vec::new();
            for row in &at.rows {
                for column in at.columns.iter().step_by(usize::try_from(vector).unwrap_or(1)) {
                    let at = self.frame.scope.cell(
                        builder,
                        field,
                        &LaneCells::point(plane, *row, *column),
                    )?;
                    loaded.extend(lanes::load(builder, buffer, &at, vector, vector)?);
                }
            }
            Ok(loaded)
        };
        let checked = rims.planes || rims.rim_checks.is_some();
        let some = if checked { lane_cells::some(self.frame, builder, grid)? } else { None };
        let Some(some) = some else { return cells(builder) };
        let types = vec![self.frame.scope.program.field(field)?.element; at.each().count()];
        builder.choose(some, &types, cells, |builder| {
            types.iter().map(|ty| builder.zero(*ty)).collect()
        })
    }

    /// Prefetches the lane's cells some planes after one that is loaded. [`Layout::touched`] counts
    /// them, so they lie in the grid.
    ///
    /// [`Layout::touched`]: super::layout::Layout::touched
    pub fn prefetch(
        &self,
        builder: &Builder<'c>,
        field: &str,
        loaded: Val<'c>,
    ) -> Result<(), Error> {
        let distance = self.layout.pipeline.prefetch;
        if distance == 0 {
            return Ok(());
        }
        let plane = builder.add_constant(loaded, distance)?;
        let each = lanes::cells_of_a_sector(self.frame.scope.program.field(field)?.element);
        for row in &self.lane.cells.rows {
            for column in self.lane.cells.columns.iter().step_by(each) {
                let at = self.frame.scope.cell(
                    builder,
                    field,
                    &LaneCells::point(plane, *row, *column),
                )?;
                lanes::prefetch(builder, self.frame.source(field)?, &at)?;
            }
        }
        Ok(())
    }

    /// Stores the lane's cells of a plane, those that belong to the tile.
    pub fn store(
        &self,
        builder: &Builder<'c>,
        operation: usize,
        field: &str,
        cells: &[Val<'c>],
        plane: Val<'c>,
        rims: Rims<'c, '_>,
    ) -> Result<(), Error> {
        let grid = rims
            .rim_checks
            .map(|rim_checks| rim_checks.grid(operation))
            .transpose()?
            .map(|(grid, _)| grid);
        let (buffer, vector) = (self.frame.target(field)?, self.vector(field)?);
        // Where groups of cells lie all inside or all outside of the grid, the first tells.
        let group = usize::try_from(if grid.is_some() { vector } else { self.layout.width })
            .unwrap_or(1)
            .max(1);
        let width = usize::try_from(self.layout.width).unwrap_or(1).max(1);
        let first = self
            .frame
            .origin
            .first()
            .copied()
            .ok_or_else(|| Error::internal("a tile of no dimensions"))?;
        let in_planes = builder.compare(
            Compare::Below,
            builder.binary("arith.subi", plane, first)?,
            self.planes,
        )?;
        let in_planes = if rims.planes && !self.frame.scope.hull.alike {
            let own = self.frame.scope.program.grid_of(field)?;
            let own = lane_cells::in_planes(self.frame, builder, (own.lower, own.upper), plane)?;
            builder.binary("arith.andi", in_planes, own)?
        } else {
            in_planes // The loop ends with the grid's planes.
        };
        for (number, (cells, (row, column))) in
            cells.chunks(group).zip(self.lane.cells.each().step_by(group)).enumerate()
        {
            let in_tile = self.lane.in_tile.get(number * group / width).copied();
            let in_grid = grid.and_then(|grid| grid.covered.get(number * group)).copied();
            let conditions: Vec<_> =
                [Some(in_planes), in_tile, in_grid].into_iter().flatten().collect();
            builder.when(builder.all(&conditions)?.unwrap_or(in_planes), |builder| {
                let at =
                    self.frame.scope.cell(builder, field, &LaneCells::point(plane, row, column))?;
                lanes::store(builder, cells, buffer, &at, vector)
            })?;
        }
        Ok(())
    }
}
