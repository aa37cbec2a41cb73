//! The walk of a block along its tile: the loops over planes.

use super::in_flight::InFlight;
use super::lane_tile::LaneTile;
use super::layout::Layout;
use super::rims::{RimChecks, Rims};
use super::shared::{BufferHalves, Shared};
use super::updates::Updates;
use crate::kernel::frame::Frame;
use crate::kernel::interior::Limits;
use crate::kernel::lane_cells::Beyond;
use crate::kernel::lanes;
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;
use std::collections::VecDeque;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::tiled::{Kernel, TileOp};

/// Rows that a tile at a rim loads before their turn in two dimensions. It loads one where more
/// would take the code with checks beyond its registers.
const RIM_AHEAD: i64 = 2;

/// Registers that rim checks take; `star2d1r` with 10 steps spilled 40 bytes without room for them.
const CHECK_REGISTERS: i64 = 10;

/// The code of one walk.
pub struct Walk<'c, 'p> {
    /// The kernel that is made.
    pub frame: &'p Frame<'c, 'p>,
    /// The tile kernel.
    pub kernel: &'p Kernel<'c>,
    /// The facts of the tile that are known at compile time.
    pub layout: &'p Layout<'c>,
    /// The lane's cells.
    pub lane: LaneTile<'c>,
    /// Planes of the tile that lie in the grid.
    pub planes: Val<'c>,
    /// The content of the tile beyond the grid.
    pub beyond: Beyond,
    shared: Shared<'c, 'p>,
    /// Limits of code without checks.
    limits: Option<Limits<'c>>,
}

/// Which planes of a loop lie at no rim.
enum Planes<'c> {
    /// All of them.
    Free,
    /// The planes of iterations within these limits; others run another body.
    Partly([Val<'c>; 2]),
    /// Unknown, so every plane is checked.
    Checked,
}

impl<'c, 'p> Walk<'c, 'p> {
    /// Computes what all loops need.
    pub fn new(
        frame: &'p Frame<'c, 'p>,
        kernel: &'p Kernel<'c>,
        layout: &'p Layout<'c>,
        tile_planes: Val<'c>,
    ) -> Result<Self, Error> {
        let builder = &frame.builder;
        let first_plane = frame
            .origin
            .first()
            .copied()
            .ok_or_else(|| Error::internal("a tile of no dimensions"))?;
        let lane = LaneTile::new(frame, kernel, layout)?;
        let limits = Limits::of(frame, kernel, |op, halo| layout.touched(kernel, op, halo))?;
        // Without checks all cells of the layout are computed, those beyond the halo too.
        let limits = limits.filter(|_| layout.total.values().all(|total| *total));
        let mut walk = Self {
            frame,
            kernel,
            layout,
            shared: Shared::new(frame, builder, layout)?,
            lane,
            limits,
            planes: tile_planes,
            beyond: if layout.wraps { Beyond::Repeated } else { Beyond::Nearest },
        };
        let last_plane = frame.scope.bounds(builder, frame.scope.hull.upper)?.first().copied();
        let last_plane = last_plane.ok_or_else(|| Error::internal("a grid of no dimensions"))?;
        let left =
            builder.add_constant(builder.binary("arith.subi", last_plane, first_plane)?, 1)?;
        // A half of the last tile may begin beyond it.
        let left = builder.binary("arith.maxsi", left, builder.index(0)?)?;
        walk.planes = builder.binary("arith.minsi", tile_planes, left)?;
        Ok(walk)
    }

    /// The whole tile: a version without checks of rows and columns for most tiles, and one with.
    /// In two dimensions few tiles lie at a rim. The version without checks is then for tiles at no
    /// rim at all, and the other one has a short body; both save registers. The same holds where an
    /// apply has several pieces, because all dimensions tell the other pieces from the main one.
    pub fn tile(&self) -> Result<(), Error> {
        let builder = &self.frame.builder;
        let first = self
            .frame
            .origin
            .first()
            .copied()
            .ok_or_else(|| Error::internal("a tile of no dimensions"))?;
        let first = builder.add_constant(first, self.layout.first)?;
        let end = builder.add_constant(builder.add(first, self.planes)?, self.layout.fill)?;
        let all = (self.start(builder, first)?, end);
        let Some(limits) = &self.limits else {
            return self.version(builder, all, true, &Planes::Checked);
        };
        let free = limits.range(self.frame, builder)?;
        let mut conditions: Vec<_> =
            limits.condition(self.frame, builder, self.kernel, 1)?.into_iter().collect();
        conditions.extend(self.lane.off_margin(builder)?);
        let (mut inner, mut outer) = (Planes::Partly(free), Planes::Partly(free));
        let several = |op: &TileOp| matches!(op, TileOp::Apply(apply) if apply.pieces.len() > 1);
        if self.frame.origin.len() == 2 || self.kernel.body.iter().any(several) {
            (inner, outer) = (Planes::Free, Planes::Checked);
            // The last body may go on beyond the end.
            let last = builder.add_constant(end, self.layout.pipeline.unroll - 2)?;
            conditions.extend(self.within(builder, (first, last), free)?);
        } else if self.layout.selects || self.is_tight() {
            // One copy of the many selects is enough, or two bodies with checks would spill.
            outer = Planes::Checked;
        }
        let version = |with_checks, planes| {
            move |builder: &Builder<'c>| {
                self.version(builder, all, with_checks, planes).map(|()| Vec::new())
            }
        };
        match builder.all(&conditions)? {
            Some(interior) => builder
                .choose(interior, &[], version(false, &inner), version(true, &outer))
                .map(|_| ()),
            None => self.version(builder, all, false, &inner),
        }
    }

    /// Whether two bodies with checks would not keep to the registers: those of planes of 64-bit
    /// cells or of several fields spilled 32 to 540 bytes a thread for `sm_90`, and others at most
    /// a few. Those others ran 5 to 8 per cent slower on an H200 with a single body.
    fn is_tight(&self) -> bool {
        let loads = self.kernel.body.iter().filter(|op| matches!(op, TileOp::Load { .. })).count();
        loads > 1 || self.layout.elements.iter().any(|element| lanes::words(*element) > 1)
    }

    /// Whether the first and the last iteration keep to the limits.
    fn within(
        &self,
        builder: &Builder<'c>,
        (first, last): (Val<'c>, Val<'c>),
        [lower, upper]: [Val<'c>; 2],
    ) -> Result<[Val<'c>; 2], Error> {
        Ok([
            builder.compare(Compare::Ge, first, lower)?,
            builder.compare(Compare::Le, last, upper)?,
        ])
    }

    /// The loop over planes.
    fn version(
        &self,
        builder: &Builder<'c>,
        (start, end): (Val<'c>, Val<'c>),
        with_checks: bool,
        planes: &Planes<'c>,
    ) -> Result<(), Error> {
        let rim_checks = if with_checks {
            let (about, vector) =
                ((self.kernel, &self.lane.cells), |field: &str| self.vector(field));
            Some(RimChecks::new(self.frame, builder, about, self.beyond, vector)?)
        } else {
            None
        };
        let rims = |planes| Rims { planes, rim_checks: rim_checks.as_ref(), columns: None };
        let (checked, ahead) = (matches!(planes, Planes::Checked), self.layout.pipeline.ahead);
        let rim_ahead = if self.layout.pipeline.registers + CHECK_REGISTERS > self.layout.limit {
            1
        } else {
            RIM_AHEAD
        };
        let (unroll, ahead) =
            if checked { (1, ahead.min(rim_ahead)) } else { (self.layout.pipeline.unroll, ahead) };
        let initial = self.initial(builder, start, ahead, rims(!matches!(planes, Planes::Free)))?;
        let free = |builder: &Builder<'c>, plane, carried: &[Val<'c>]| {
            self.planes(builder, plane, unroll, rims(false), initial.with(carried))
        };
        let one = |builder: &Builder<'c>, plane, carried: &[Val<'c>]| {
            self.planes(builder, plane, 1, rims(true), initial.with(carried))
        };
        let bounds = (start, end, builder.index(unroll)?);
        builder.carry(bounds, &initial.flat(), |builder, plane, carried| match planes {
            Planes::Free => free(builder, plane, carried),
            Planes::Checked => one(builder, plane, carried),
            Planes::Partly(limits) => {
                let last = builder.add_constant(plane, unroll - 1)?;
                let [after, before] = self.within(builder, (plane, last), *limits)?;
                let types: Vec<_> = carried.iter().map(|value| value.r#type()).collect();
                builder.choose(
                    builder.binary("arith.andi", after, before)?,
                    &types,
                    |builder| free(builder, plane, carried),
                    |builder| {
                        let bounds =
                            (plane, builder.add_constant(plane, unroll)?, builder.index(1)?);
                        builder.carry(bounds, carried, one)
                    },
                )
            }
        })?;
        Ok(())
    }

    /// The first iteration. Iterations for planes before the grid alone are skipped, unless these
    /// planes hold the grid repeated.
    fn start(&self, builder: &Builder<'c>, first: Val<'c>) -> Result<Val<'c>, Error> {
        let mut begin: Option<Val<'c>> = None;
        if self.beyond == Beyond::Repeated {
            return Ok(first);
        }
        let tiles = self.kernel.body.iter().flat_map(|op| match op {
            TileOp::Load { field, tile, .. } => vec![(*field, *tile)],
            TileOp::Apply(apply) => apply.outputs.clone(),
            TileOp::Store { .. } => Vec::new(),
        });
        for (field, tile) in tiles {
            let bounds =
                self.frame.scope.bounds(builder, self.frame.scope.program.grid_of(field)?.lower)?;
            let Some(bound) = bounds.first() else { continue };
            let bound = builder.add_constant(*bound, self.layout.window(tile)?.lag)?;
            begin =
                Some(begin.map_or(Ok(bound), |begin| builder.binary("arith.minsi", begin, bound))?);
        }
        begin.map_or(Ok(first), |begin| builder.binary("arith.maxsi", begin, first))
    }

    /// Runs some planes from one on; returns what is in flight after them.
    fn planes(
        &self,
        builder: &Builder<'c>,
        first: Val<'c>,
        count: i64,
        rims: Rims<'c, '_>,
        mut state: InFlight<'c>,
    ) -> Result<Vec<Val<'c>>, Error> {
        for number in 0..count {
            self.iteration(builder, &mut state, builder.add_constant(first, number)?, rims)?;
            state.age();
        }
        Ok(state.flat())
    }

    /// Zeros in all windows and in shared memory, and the first planes of the loads.
    fn initial(
        &self,
        builder: &Builder<'c>,
        start: Val<'c>,
        ahead: i64,
        rims: Rims<'c, '_>,
    ) -> Result<InFlight<'c>, Error> {
        let mut zeros = Vec::new();
        for element in &self.layout.elements {
            zeros.push(builder.zero(*element)?);
        }
        let mut waiting = vec![VecDeque::new(); zeros.len()];
        for (operation, op) in self.kernel.body.iter().enumerate() {
            let TileOp::Load { field, tile, .. } = op else { continue };
            let Some(queue) = waiting.get_mut(self.layout.value(*tile)?) else { continue };
            for number in 0..ahead {
                let plane = builder.add_constant(start, number - self.layout.window(*tile)?.lag)?;
                queue.push_back(self.load(builder, operation, field, plane, rims)?);
            }
        }
        self.shared.clear(builder, start, &zeros)?;
        Ok(InFlight::new(&self.layout.pipeline, self.layout.width, &zeros, waiting))
    }

    /// One plane of every value; `plane` is that of values without lag.
    fn iteration(
        &self,
        builder: &Builder<'c>,
        state: &mut InFlight<'c>,
        plane: Val<'c>,
        rims: Rims<'c, '_>,
    ) -> Result<(), Error> {
        let lag = |tile| self.layout.window(tile).map(|window| window.lag);
        let halves = self.shared.halves(builder, plane)?;
        for (operation, op) in self.kernel.body.iter().enumerate() {
            match op {
                TileOp::Load { op, field, tile } => {
                    let builder = &Builder { location: op.location(), ..*builder };
                    let value = self.layout.value(*tile)?;
                    let ahead = builder.add_constant(plane, state.ahead(value) - lag(*tile)?)?;
                    let cells = state
                        .exchange(value, self.load(builder, operation, field, ahead, rims)?)?;
                    if rims.rim_checks.is_none() && !rims.planes {
                        self.prefetch(builder, field, ahead)?;
                    }
                    self.push(builder, state, value, &cells, &halves)?;
                }
                TileOp::Apply(apply) => {
                    let builder = &Builder { location: apply.op.location(), ..*builder };
                    let Some((_, first)) = apply.outputs.first() else { continue };
                    let plane = builder.add_constant(plane, -lag(*first)?)?;
                    let about = (operation, apply);
                    let cells = self.updates().apply(builder, state, about, plane, rims)?;
                    for (number, (_, tile)) in apply.outputs.iter().enumerate() {
                        let cells: Vec<_> =
                            cells.iter().filter_map(|values| values.get(number)).copied().collect();
                        self.push(builder, state, self.layout.value(*tile)?, &cells, &halves)?;
                    }
                }
                TileOp::Store { op, field, tile } => {
                    let builder = &Builder { location: op.location(), ..*builder };
                    let plane = builder.add_constant(plane, -lag(*tile)?)?;
                    let value = self.layout.value(*tile)?;
                    let cells = self
                        .layout
                        .positions()
                        .map(|position| state.get(value, position, 0))
                        .collect::<Result<Vec<_>, _>>()?;
                    self.store(builder, operation, field, &cells, plane, rims)?;
                }
            }
        }
        self.shared.hand_over(builder, state, &halves)
    }

    fn updates(&self) -> Updates<'c, '_> {
        let (frame, layout, cells, beyond) =
            (self.frame, self.layout, &self.lane.cells, self.beyond);
        Updates { frame, layout, cells, beyond }
    }

    /// A value's new plane: the lane's own cells, and those of others that come in now.
    fn push(
        &self,
        builder: &Builder<'c>,
        state: &mut InFlight<'c>,
        value: usize,
        cells: &[Val<'c>],
        halves: &BufferHalves<'c>,
    ) -> Result<(), Error> {
        for (position, cell) in self.layout.positions().zip(cells) {
            state.push(value, position, *cell)?;
        }
        self.shared.take(builder, state, value, halves)?;
        self.updates().take_edges(builder, state, value)
    }
}
