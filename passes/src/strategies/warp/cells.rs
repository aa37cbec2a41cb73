//! The cells of a lane: loaded, computed and stored.

use super::lower_warp::Segment;
use crate::analysis::footprint;
use crate::kernel::evaluate::{At, Distance, Rules, cell_in_registers};
use crate::kernel::frame::Frame;
use crate::kernel::lanes;
use crate::kernel::pieces::{self, PieceCase};
use melior::ir::AffineMap;
use melior::ir::operation::OperationLike;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::Piece;
use stencil_dialects::tiled::{self, Apply, Kernel, TileOp};

/// What a lane knows of its cells before it loads them.
pub struct LaneSegment<'c, 'p> {
    /// The kernel that is built.
    pub frame: &'p Frame<'c, 'p>,
    /// The tile kernel.
    pub kernel: &'p Kernel<'c>,
    segment: &'p Segment,
    /// Their coordinates.
    points: Vec<Val<'c>>,
    /// Whether they belong to the tile.
    in_tile: Val<'c>,
    /// Whether a point function has a result for any operands, by its name.
    total: BTreeMap<&'c str, bool>,
    /// Whether the tile goes on beyond the grid as the grid repeated.
    wraps: bool,
}

/// Neighbouring cells, relative to the lane's first; both ends inclusive.
#[derive(Clone, Copy)]
struct Span<'c> {
    first: Val<'c>,
    last: Val<'c>,
}

impl<'c> Span<'c> {
    /// Whether a cell of the lane is one of them.
    fn holds(self, builder: &Builder<'c>, cell: i64) -> Result<Val<'c>, Error> {
        let cell = builder.index(cell)?;
        let after = builder.compare(Compare::Le, self.first, cell)?;
        builder.binary("arith.andi", after, builder.compare(Compare::Ge, self.last, cell)?)
    }

    fn intersected(self, builder: &Builder<'c>, other: Self) -> Result<Self, Error> {
        let first = builder.binary("arith.maxsi", self.first, other.first)?;
        Ok(Self { first, last: builder.binary("arith.minsi", self.last, other.last)? })
    }
}

/// What a lane at a rim may not leave.
pub struct RimSpans<'c> {
    /// The grids of fields that are loaded or stored, by operation.
    grids: BTreeMap<usize, Span<'c>>,
    /// The pieces of applies, by operation and place.
    pieces: BTreeMap<(usize, usize), Span<'c>>,
    /// Of applies that compute cells beyond the grid as the grid repeated, the coordinates that the
    /// lane's cells stand for, by operation.
    repeated: BTreeMap<usize, Vec<Val<'c>>>,
}

/// An apply of a step.
pub struct StepApply<'c, 'k> {
    /// Its place in the kernel.
    pub operation: usize,
    /// The apply, or that of the first round of a loop.
    pub apply: &'k Apply<'c>,
    /// In a loop, steps since the first round, and by how many cells the first and the last cell
    /// that is computed move from step to step.
    pub later: Option<(Val<'c>, [i64; 2])>,
}

impl<'c, 'p> LaneSegment<'c, 'p> {
    /// Finds the lane's place.
    pub fn new(
        frame: &'p Frame<'c, 'p>,
        builder: &Builder<'c>,
        kernel: &'p Kernel<'c>,
        segment: &'p Segment,
    ) -> Result<Self, Error> {
        let ([lane], [origin]) = (frame.thread.as_slice(), frame.origin.as_slice()) else {
            return Err(Error::internal("a warp's tile has one dimension"));
        };
        let width = segment.width;
        let first =
            builder.add(*origin, builder.binary("arith.muli", *lane, builder.index(width)?)?)?;
        let first = builder.add_constant(first, -segment.left)?;
        let beyond = builder.add_constant(*lane, -(segment.left / width))?;
        let mut total = BTreeMap::new();
        for apply in kernel.applies() {
            for piece in &apply.pieces {
                total.insert(
                    piece.function,
                    pieces::is_total(frame.scope.module, frame.scope.program, piece)?,
                );
            }
        }
        Ok(Self {
            frame,
            kernel,
            segment,
            points: (0..width)
                .map(|cell| builder.add_constant(first, cell))
                .collect::<Result<_, _>>()?,
            in_tile: builder.compare(
                Compare::Below,
                beyond,
                builder.index(segment.tile / width)?,
            )?,
            total,
            wraps: tiled::wraps(frame.scope.program, kernel)?,
        })
    }

    /// Whether every function has a result for any operands, so that all cells can be computed.
    pub fn all_total(&self) -> bool {
        self.total.values().all(|total| *total)
    }

    /// Zeros for the lane's cells of a field.
    pub fn zeros(&self, builder: &Builder<'c>, field: &str) -> Result<Vec<Val<'c>>, Error> {
        let zero = builder.zero(self.frame.scope.program.field(field)?.element)?;
        Ok(vec![zero; self.points.len()])
    }

    /// What a tile at a rim checks.
    pub fn rim_spans(&self, builder: &Builder<'c>) -> Result<RimSpans<'c>, Error> {
        let (mut grids, mut pieces, mut repeated) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (operation, op) in self.kernel.body.iter().enumerate() {
            match op {
                TileOp::Load { field, .. } | TileOp::Store { field, .. } => {
                    let grid = self.frame.scope.program.grid_of(field)?;
                    grids.insert(operation, self.span(builder, grid.lower, grid.upper)?);
                }
                TileOp::Apply(apply) => {
                    for (place, piece) in apply.pieces.iter().enumerate() {
                        pieces.insert(
                            (operation, place),
                            self.span(builder, piece.lower, piece.upper)?,
                        );
                    }
                    if self.wraps
                        && apply.reaches_beyond()
                        && let Some((field, _)) = apply.outputs.first()
                    {
                        repeated.insert(operation, self.repeated(builder, field)?);
                    }
                }
            }
        }
        Ok(RimSpans { grids, pieces, repeated })
    }

    /// A box of the grid from the lane's point of view.
    fn span(
        &self,
        builder: &Builder<'c>,
        lower: AffineMap<'c>,
        upper: AffineMap<'c>,
    ) -> Result<Span<'c>, Error> {
        let bound = |map| {
            let bounds = self.frame.scope.bounds(builder, map)?;
            let bound = bounds
                .first()
                .copied()
                .ok_or_else(|| Error::internal("a bound of no dimensions"))?;
            builder.binary("arith.subi", bound, self.first()?)
        };
        Ok(Span { first: bound(lower)?, last: bound(upper)? })
    }

    /// The cells that an apply computes, from the lane's point of view. In a loop they hang on the
    /// step, which also keeps their comparisons in the loop: before it, each would take a register.
    fn computed(
        &self,
        builder: &Builder<'c>,
        step_apply: &StepApply<'c, '_>,
    ) -> Result<Span<'c>, Error> {
        let moved = |from: Val<'c>, by: i64, drift: fn([i64; 2]) -> i64| {
            let start = builder.add_constant(from, by)?;
            match step_apply.later {
                Some((steps, drifts)) => builder.add(
                    start,
                    builder.binary("arith.muli", steps, builder.index(drift(drifts))?)?,
                ),
                None => Ok(start),
            }
        };
        let origin = self
            .frame
            .origin
            .first()
            .copied()
            .ok_or_else(|| Error::internal("a tile of no dimensions"))?;
        let origin = builder.binary("arith.subi", origin, self.first()?)?;
        let (lower, upper) = (
            step_apply.apply.halo.lower.iter().sum(),
            step_apply.apply.halo.upper.iter().sum::<i64>(),
        );
        Ok(Span {
            first: moved(origin, lower, |[first, _]| first)?,
            last: moved(origin, self.segment.tile - 1 + upper, |[_, last]| last)?,
        })
    }

    /// The coordinates inside a field's grid that the lane's cells stand for where the grid
    /// repeats.
    fn repeated(&self, builder: &Builder<'c>, field: &str) -> Result<Vec<Val<'c>>, Error> {
        let points =
            self.points.iter().map(|point| self.frame.scope.wrapped(builder, field, &[*point]));
        Ok(points.collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// The coordinate of the lane's first cell.
    fn first(&self) -> Result<Val<'c>, Error> {
        self.points.first().copied().ok_or_else(|| Error::internal("a lane of no cells"))
    }

    /// The lane's cells of a field.
    pub fn load(
        &self,
        builder: &Builder<'c>,
        operation: usize,
        field: &str,
        rim_spans: Option<&RimSpans<'c>>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let buffer = self.frame.source(field)?;
        match rim_spans {
            None => {
                let at = self.frame.scope.cell(builder, field, &[self.first()?])?;
                lanes::load(builder, buffer, &at, self.segment.width, self.vector(field)?)
            }
            Some(rim_spans) => {
                let grid = rim_spans
                    .grids
                    .get(&operation)
                    .ok_or_else(|| Error::internal("a load without checks"))?;
                let nearest = |builder: &Builder<'c>, cell| {
                    let nearest = builder.binary("arith.minsi", builder.index(cell)?, grid.last)?;
                    builder.add(self.first()?, builder.binary("arith.maxsi", nearest, grid.first)?)
                };
                let cells = |builder: &Builder<'c>| {
                    let points = match self.wraps {
                        true => self.repeated(builder, field)?,
                        false => (0..self.segment.width)
                            .map(|cell| nearest(builder, cell))
                            .collect::<Result<_, _>>()?,
                    };
                    let load = |point: &Val<'c>| {
                        builder.load(buffer, &self.frame.scope.cell(builder, field, &[*point])?)
                    };
                    points.iter().map(load).collect()
                };
                let (declared, element) = (
                    self.frame.scope.program.grid_of(field)?,
                    self.frame.scope.program.field(field)?.element,
                );
                if self.frame.scope.hull.has_points_of(declared) {
                    return cells(builder);
                }
                let some = builder.compare(Compare::Le, grid.first, grid.last)?;
                let types = vec![element; usize::try_from(self.segment.width).unwrap_or(0)];
                builder.choose(some, &types, cells, |builder| {
                    types.iter().map(|ty| builder.zero(*ty)).collect()
                })
            }
        }
    }

    /// Writes those of the lane's cells that belong to the tile.
    pub fn store(
        &self,
        builder: &Builder<'c>,
        operation: usize,
        field: &str,
        cells: &[Val<'c>],
        rim_spans: Option<&RimSpans<'c>>,
    ) -> Result<(), Error> {
        let buffer = self.frame.target(field)?;
        builder.when(self.in_tile, |builder| {
            let Some(rim_spans) = rim_spans else {
                let at = self.frame.scope.cell(builder, field, &[self.first()?])?;
                return lanes::store(builder, cells, buffer, &at, self.vector(field)?);
            };
            let grid = rim_spans
                .grids
                .get(&operation)
                .ok_or_else(|| Error::internal("a store without checks"))?;
            for ((number, cell), point) in (0..).zip(cells).zip(&self.points) {
                builder.when(grid.holds(builder, number)?, |builder| {
                    builder.store(*cell, buffer, &self.frame.scope.cell(builder, field, &[*point])?)
                })?;
            }
            Ok(())
        })
    }

    /// See [`lanes::aligned_cells`].
    fn vector(&self, field: &str) -> Result<i64, Error> {
        lanes::aligned_cells(&self.frame.scope, field, self.segment.width)
    }

    /// The new values of an apply: for each updated field the lane's cells. `state` holds those of
    /// its inputs, by field; `frame` knows the step. With checks a piece holds for the cells that
    /// it covers and whose operands are right.
    pub fn apply(
        &self,
        frame: &Frame<'c, '_>,
        builder: &Builder<'c>,
        step_apply: &StepApply<'c, '_>,
        state: &BTreeMap<&'c str, &[Val<'c>]>,
        rim_spans: Option<&RimSpans<'c>>,
    ) -> Result<Vec<Vec<Val<'c>>>, Error> {
        let apply = step_apply.apply;
        let builder = &Builder { location: apply.op.location(), ..*builder };
        let window = self.window(builder, apply, state)?;
        let read = |cell: i64, field: &str, offset: i64| {
            let value = window.get(&(field, cell + offset)).copied();
            value.ok_or_else(|| Error::internal(format!("no cell of @{field} is there to read")))
        };
        let repeated =
            rim_spans.and_then(|rim_spans| rim_spans.repeated.get(&step_apply.operation));
        let rules = match (rim_spans, self.wraps) {
            (None, _) => Rules::Unneeded,
            (Some(_), true) => Rules::Wrapped,
            (Some(_), false) => Rules::All,
        };
        let spans = match rim_spans {
            Some(rim_spans) => self.spans(builder, step_apply, rim_spans)?,
            None => Vec::new(),
        };
        let mut columns = vec![Vec::new(); apply.outputs.len()];
        for (cell, point) in (0..).zip(repeated.unwrap_or(&self.points)) {
            let evaluate = |builder: &Builder<'c>, piece: &Piece<'c>| {
                let fetch = |builder: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
                    cell_in_registers(builder, distances, &|offset| match offset {
                        [offset] => read(cell, field, *offset),
                        _ => Err(Error::internal("a read that has not one offset")),
                    })
                };
                let (point, step) = (&[*point], apply.step);
                let at = At { point, step, rules, fetch: &fetch, current: None, partial: None };
                frame.scope.evaluate(builder, piece, &at)
            };
            let values = match (rim_spans, &apply.main) {
                (Some(_), _) => {
                    let mut old = Vec::new();
                    for (field, _) in &apply.outputs {
                        // A field without a tile has no value where no piece lies.
                        old.push(match apply.input(field) {
                            Some(_) => read(cell, field, 0)?,
                            None => builder.zero(frame.scope.program.field(field)?.element)?,
                        });
                    }
                    let mut cases = Vec::new();
                    for (piece, span, total) in &spans {
                        let mut covered = span.holds(builder, cell)?;
                        if repeated.is_some() {
                            let inside =
                                frame.scope.inside(builder, &[*point], piece.lower, piece.upper)?;
                            covered = builder.binary("arith.andi", covered, inside)?;
                        }
                        cases.push(PieceCase { piece, covered, total: *total });
                    }
                    pieces::values(builder, &cases, &old, &evaluate)?
                }
                (None, Some(piece)) => evaluate(builder, piece)?,
                (None, None) => return Err(Error::internal("an apply of no main piece")),
            };
            for (column, value) in columns.iter_mut().zip(values) {
                column.push(value);
            }
        }
        Ok(columns)
    }

    /// The pieces of an apply, each with the cells for which it may hold and whether its function
    /// has a result for any operands.
    fn spans<'k>(
        &self,
        builder: &Builder<'c>,
        step_apply: &StepApply<'c, 'k>,
        rim_spans: &RimSpans<'c>,
    ) -> Result<Vec<(&'k Piece<'c>, Span<'c>, bool)>, Error> {
        let operation = step_apply.operation;
        let computed = self.computed(builder, step_apply)?;
        let mut spans = Vec::new();
        for (number, piece) in step_apply.apply.pieces.iter().enumerate() {
            let span = rim_spans.pieces.get(&(operation, number));
            let span = span.ok_or_else(|| Error::internal("a piece without checks"))?;
            let total = self.total.get(piece.function) == Some(&true);
            let span = match rim_spans.repeated.get(&operation) {
                Some(_) => computed,
                None => span.intersected(builder, computed)?,
            };
            spans.push((piece, span, total));
        }
        Ok(spans)
    }

    /// All cells that an apply reads, by field and place relative to the lane's first cell. Those
    /// of other lanes come by shuffles, in which all lanes take part.
    fn window(
        &self,
        builder: &Builder<'c>,
        apply: &Apply<'c>,
        state: &BTreeMap<&'c str, &[Val<'c>]>,
    ) -> Result<BTreeMap<(&'c str, i64), Val<'c>>, Error> {
        let width = self.segment.width;
        let mut window = BTreeMap::new();
        for (field, cells) in state {
            window.extend((0..).zip(*cells).map(|(cell, value)| ((*field, cell), *value)));
        }
        let mut wanted = BTreeSet::new();
        for read in footprint::of_pieces(self.frame.scope.program, &apply.pieces)? {
            for offset in read.offsets().into_iter().flatten() {
                wanted.extend((0..width).map(|cell| (read.field, cell + offset)));
            }
        }
        for (field, cell) in wanted {
            let own = usize::try_from(cell.rem_euclid(width)).unwrap_or(usize::MAX);
            let value = state.get(field).and_then(|cells| cells.get(own)).copied();
            let value = value
                .ok_or_else(|| Error::internal(format!("no tile of @{field} reaches an apply")))?;
            let distance = cell.div_euclid(width);
            if distance != 0 {
                window.insert((field, cell), lanes::shuffle(builder, value, distance)?);
            }
        }
        Ok(window)
    }
}
