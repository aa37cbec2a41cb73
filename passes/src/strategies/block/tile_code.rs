//! The code of a tile in shared memory: loads, applies cell by cell, and stores.

use super::buffers::Buffers;
use crate::analysis::footprint;
use crate::kernel::evaluate::{At, Distance, Rules};
use crate::kernel::frame::Frame;
use crate::kernel::hazards::Hazards;
use melior::ir::operation::OperationLike;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::tiled::{Apply, Halo, Kernel, Region, TileOp};

/// Builds the code of a cell, given its indices in a region and its coordinates.
type PerCell<'b, 'c> = dyn FnMut(&Builder<'c>, &[Val<'c>], &[Val<'c>]) -> Result<(), Error> + 'b;
/// Builds the code of a cell, given its indices in a region.
type PerIndex<'b, 'c> = dyn FnMut(&Builder<'c>, &[Val<'c>]) -> Result<(), Error> + 'b;

/// The code of one tile.
pub struct TileCode<'c, 'p> {
    /// The kernel that is made.
    pub frame: &'p Frame<'c, 'p>,
    /// The tile kernel.
    pub kernel: &'p Kernel<'c>,
    /// The shared buffers of its tile values.
    pub buffers: &'p Buffers<'c>,
    /// Threads of the block per dimension.
    pub threads: &'p [i64],
    /// Whether the tile goes on beyond the grid as the grid repeated.
    pub wraps: bool,
}

impl<'c> TileCode<'c, '_> {
    /// The whole tile; `checked` where cells may lie outside the grid or a piece.
    pub fn body(&self, builder: &Builder<'c>, checked: bool) -> Result<(), Error> {
        let mut hazards = Hazards::default();
        for op in &self.kernel.body {
            match op {
                TileOp::Load { op, field, tile } => {
                    let builder = &Builder { location: op.location(), ..*builder };
                    let Some(slot) = self.buffers.slot(*tile) else { continue };
                    // Without checks only the main piece runs, so tiles that only keep uncovered
                    // cells are not loaded.
                    if !checked && !self.is_read_by_main(field, *tile)? {
                        continue;
                    }
                    hazards.before(builder, &[], &[slot])?;
                    self.load(builder, field, *tile, checked)?;
                }
                TileOp::Apply(apply) => {
                    let builder = &Builder { location: apply.op.location(), ..*builder };
                    let slots = |tiles: &[(&str, Val<'c>)]| {
                        tiles
                            .iter()
                            .filter_map(|(_, tile)| self.buffers.slot(*tile))
                            .collect::<Vec<_>>()
                    };
                    hazards.before(builder, &slots(&apply.inputs), &slots(&apply.outputs))?;
                    self.apply(builder, apply, checked)?;
                }
                TileOp::Store { .. } => {}
            }
        }
        Ok(())
    }

    /// Whether the main piece of any apply reads a tile.
    fn is_read_by_main(&self, field: &str, tile: Val<'c>) -> Result<bool, Error> {
        for apply in self.kernel.applies().filter(|apply| apply.input(field) == Some(tile)) {
            let reads = footprint::of_pieces(self.frame.scope.program, apply.main.as_slice())?;
            if reads.iter().any(|read| read.field == field) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn load(
        &self,
        builder: &Builder<'c>,
        field: &str,
        tile: Val<'c>,
        checked: bool,
    ) -> Result<(), Error> {
        let halo = &self.kernel.tile(tile)?.halo;
        let grid = self.frame.scope.program.grid_of(field)?;
        self.each_cell(builder, halo, &mut |builder, local, point| {
            let copy = |builder: &Builder<'c>, point: &[Val<'c>]| {
                let value = builder.load(
                    self.frame.source(field)?,
                    &self.frame.scope.cell(builder, field, point)?,
                )?;
                builder.store(value, self.shared(tile)?, local)
            };
            match (checked, self.wraps) {
                (false, _) => copy(builder, point),
                (true, true) => {
                    let wrapped = |builder: &Builder<'c>| {
                        copy(builder, &self.frame.scope.wrapped(builder, field, point)?)
                    };
                    if self.frame.scope.hull.has_points_of(grid) {
                        return wrapped(builder);
                    }
                    // A grid that is not that of the tiles may have no cell to repeat.
                    let first = self.frame.scope.bounds(builder, grid.lower)?;
                    builder.when(
                        self.frame.scope.inside(builder, &first, grid.lower, grid.upper)?,
                        wrapped,
                    )
                }
                (true, false) => {
                    let inside = self.frame.scope.inside(builder, point, grid.lower, grid.upper)?;
                    self.either(builder, inside, |builder| copy(builder, point), &[tile], local)
                }
            }
        })
    }

    fn apply(&self, builder: &Builder<'c>, apply: &Apply<'c>, checked: bool) -> Result<(), Error> {
        let Some((field, _)) = apply.outputs.first() else { return Ok(()) };
        let hull = &self.frame.scope.hull;
        // Cells beyond the grid are wanted of an apply that reaches beyond the tile; then all
        // fields lie on the same points.
        let beyond = checked && self.wraps && apply.reaches_beyond();
        self.each_cell(builder, &apply.halo, &mut |builder, local, point| {
            let one = |builder: &Builder<'c>| {
                let inside =
                    if beyond { &self.frame.scope.wrapped(builder, field, point)? } else { point };
                let values = self.new_values(builder, apply, local, inside, checked)?;
                self.write(builder, apply, &values, (local, point), checked, beyond)
            };
            // Each field has its own condition where they lie on different points.
            if checked && hull.alike && !beyond {
                let inside = self.frame.scope.inside(builder, point, hull.lower, hull.upper)?;
                let tiles: Vec<_> = apply.outputs.iter().map(|(_, tile)| *tile).collect();
                self.either(builder, inside, one, &tiles, local)
            } else {
                one(builder)
            }
        })
    }

    /// Code for a cell inside the grid. Outside, the cell of each tile becomes zero where reads may
    /// be sent there.
    fn either(
        &self,
        builder: &Builder<'c>,
        inside: Val<'c>,
        code: impl FnOnce(&Builder<'c>) -> Result<(), Error>,
        tiles: &[Val<'c>],
        local: &[Val<'c>],
    ) -> Result<(), Error> {
        if self.kernel.schedule.region != Region::Fixed {
            return builder.when(inside, code);
        }
        let zeros = |builder: &Builder<'c>| {
            for tile in tiles.iter().filter(|tile| self.buffers.slot(**tile).is_some()) {
                let element =
                    self.frame.scope.program.field(self.kernel.tile(*tile)?.field)?.element;
                builder.store(builder.zero(element)?, self.shared(*tile)?, local)?;
            }
            Ok(Vec::new())
        };
        builder.choose(inside, &[], |builder| code(builder).map(|()| Vec::new()), zeros).map(|_| ())
    }

    /// One cell's new values.
    fn new_values(
        &self,
        builder: &Builder<'c>,
        apply: &Apply<'c>,
        local: &[Val<'c>],
        point: &[Val<'c>],
        checked: bool,
    ) -> Result<Vec<Val<'c>>, Error> {
        let fetch = |builder: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
            let tile = apply
                .input(field)
                .ok_or_else(|| Error::internal(format!("no tile of @{field}")))?;
            let held = &self.kernel.tile(tile)?.halo;
            let extents = held.extents(&self.kernel.schedule.tile);
            let mut at = Vec::new();
            for (dimension, (index, distance)) in local.iter().zip(distances).enumerate() {
                let of = |bounds: &[i64]| bounds.get(dimension).copied().unwrap_or(0);
                let before = of(&apply.halo.lower) - of(&held.lower);
                let beyond = of(&apply.halo.upper) - of(&held.upper);
                let (mut cell, leaves) = match distance {
                    Distance::Constant(cells) => (
                        builder.add_constant(*index, before + cells)?,
                        [before + cells < 0, beyond + cells > 0],
                    ),
                    mapped => {
                        (mapped.from(builder, builder.add_constant(*index, before)?)?, [true, true])
                    }
                };
                if self.kernel.schedule.region == Region::Fixed {
                    let [first, last] = leaves;
                    if first {
                        cell = builder.binary("arith.maxsi", cell, builder.index(0)?)?;
                    }
                    if last {
                        cell = builder.binary(
                            "arith.minsi",
                            cell,
                            builder.index(of(&extents) - 1)?,
                        )?;
                    }
                }
                at.push(cell);
            }
            builder.load(self.shared(tile)?, &at)
        };
        let scope = &self.frame.scope;
        let at = |rules| At {
            point,
            step: apply.step,
            rules,
            fetch: &fetch,
            current: None,
            partial: None,
        };
        match (checked, apply.main) {
            (false, Some(piece)) => scope.evaluate(builder, &piece, &at(Rules::Unneeded)),
            _ => {
                let rules = if self.wraps { Rules::Wrapped } else { Rules::All };
                scope.new_values(builder, apply, &apply.pieces, &at(rules))
            }
        }
    }

    /// New values go to shared memory where a later apply reads them, and to global memory where
    /// they are the launch's result and the cell belongs to the tile itself.
    fn write(
        &self,
        builder: &Builder<'c>,
        apply: &Apply<'c>,
        values: &[Val<'c>],
        (local, point): (&[Val<'c>], &[Val<'c>]),
        checked: bool,
        beyond: bool,
    ) -> Result<(), Error> {
        for ((_, tile), value) in apply.outputs.iter().zip(values) {
            if self.buffers.slot(*tile).is_some() {
                builder.store(*value, self.shared(*tile)?, local)?;
            }
        }
        let mut stores = Vec::new();
        for ((field, tile), value) in apply.outputs.iter().zip(values) {
            if self
                .kernel
                .body
                .iter()
                .any(|op| matches!(op, TileOp::Store { tile: stored, .. } if stored == tile))
            {
                stores.push((*field, *value));
            }
        }
        if stores.is_empty() {
            return Ok(());
        }
        let store = |builder: &Builder<'c>| {
            for (field, value) in &stores {
                let store = |builder: &Builder<'c>| {
                    builder.store(
                        *value,
                        self.frame.target(field)?,
                        &self.frame.scope.cell(builder, field, point)?,
                    )?;
                    Ok(Vec::new())
                };
                if checked {
                    self.frame.scope.where_it_lies(builder, field, point, &[], store)?;
                } else {
                    store(builder)?;
                }
            }
            Ok(())
        };
        let mut conditions = Vec::new();
        for (dimension, coordinate) in local.iter().enumerate() {
            let (lower, upper) = (
                apply.halo.lower.get(dimension).copied().unwrap_or(0),
                apply.halo.upper.get(dimension).copied().unwrap_or(0),
            );
            let cells = self.kernel.schedule.tile.get(dimension).copied().unwrap_or(1);
            if lower < 0 {
                conditions.push(builder.compare(
                    Compare::Ge,
                    *coordinate,
                    builder.index(-lower)?,
                )?);
            }
            if upper > 0 {
                conditions.push(builder.compare(
                    Compare::Lt,
                    *coordinate,
                    builder.index(cells - lower)?,
                )?);
            }
        }
        if beyond {
            let hull = &self.frame.scope.hull;
            conditions.push(self.frame.scope.inside(builder, point, hull.lower, hull.upper)?);
        }
        match builder.all(&conditions)? {
            Some(in_tile) => builder.when(in_tile, store),
            None => store(builder),
        }
    }

    fn shared(&self, tile: Val<'c>) -> Result<Val<'c>, Error> {
        let slot = self
            .buffers
            .slot(tile)
            .ok_or_else(|| Error::internal("a tile value without a buffer is read"))?;
        self.frame
            .shared
            .get(slot)
            .copied()
            .ok_or_else(|| Error::internal("a shared buffer is missing"))
    }

    /// Runs `body` for each cell of a region: the block's threads take neighbouring cells, and step
    /// by the block's size. `body` gets the cell's indices in the region and its coordinates.
    fn each_cell(
        &self,
        builder: &Builder<'c>,
        halo: &Halo,
        body: &mut PerCell<'_, 'c>,
    ) -> Result<(), Error> {
        let extents = halo.extents(&self.kernel.schedule.tile);
        self.loops(builder, &extents, &mut Vec::new(), &mut |builder, local| {
            let mut point = Vec::new();
            for ((index, origin), lower) in local.iter().zip(&self.frame.origin).zip(&halo.lower) {
                point.push(builder.add_constant(builder.add(*origin, *index)?, *lower)?);
            }
            body(builder, local, &point)
        })
    }

    fn loops(
        &self,
        builder: &Builder<'c>,
        extents: &[i64],
        local: &mut Vec<Val<'c>>,
        body: &mut PerIndex<'_, 'c>,
    ) -> Result<(), Error> {
        let dimension = local.len();
        let Some(extent) = extents.get(dimension) else { return body(builder, local) };
        let internal = || Error::internal("a dimension without threads");
        let thread = self.frame.thread.get(dimension).copied().ok_or_else(internal)?;
        let threads = self.threads.get(dimension).copied().ok_or_else(internal)?;
        let mut next = |builder: &Builder<'c>, index| {
            local.push(index);
            let done = self.loops(builder, extents, local, body);
            local.pop();
            done
        };
        if *extent == threads {
            return next(builder, thread);
        }
        builder.repeat((thread, builder.index(*extent)?, builder.index(threads)?), next)
    }
}
