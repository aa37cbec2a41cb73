//! What tiles at a rim check. Whether a row or a column lies in a box is found once for a lane.
//!
//! Most warps of a tile at a rim lie at no rim of rows. They run code that checks no rows, and
//! checks those columns of a lane alone that may lie at a rim: where the sizes are known, the grid
//! begins with a lane and ends with a known column of one.

use super::layout::Layout;
use super::place::{Bounds, Cells, Inside, Place, bounds};
use crate::analysis::footprint;
use crate::kernel::frame::Frame;
use crate::kernel::lane_cells::Beyond;
use melior::ir::AffineMap;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::affine::Linear;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::{Boundary, Piece};
use stencil_dialects::tiled::{Apply, Kernel, TileOp};

/// The checks of all operations of a kernel.
pub struct Rims<'c> {
    /// For each load or store the cells in its grid, and the cells inside that are loaded.
    pub grids: BTreeMap<usize, (Inside<'c>, Cells<'c>)>,
    /// For each apply its checks.
    pub applies: BTreeMap<usize, ApplyRims<'c>>,
}

/// The checks of an apply.
pub struct ApplyRims<'c> {
    /// For each piece the cells that it covers.
    pub pieces: Vec<Inside<'c>>,
    /// The cells that the apply has to compute, where it may compute no others.
    pub computed: Option<Inside<'c>>,
    /// The points that the lane's cells stand for, where the grid repeats.
    pub repeated: Option<Cells<'c>>,
    /// What makes most checks unneeded.
    pub free: Option<Free<'c>>,
}

/// When a lane needs few checks.
pub struct Free<'c> {
    /// Whether its rows lie at no rim of rows.
    pub rows: Val<'c>,
    /// The columns of a lane that may lie at a rim of columns all the same.
    pub columns: BTreeSet<i64>,
}

impl<'c> Rims<'c> {
    /// The checks of a kernel. `vector` has the cells of an access to a field.
    pub fn new(
        frame: &Frame<'c, '_>,
        builder: &Builder<'c>,
        (kernel, layout, place): (&Kernel<'c>, &Layout<'c>, &Place<'c>),
        vector: impl Fn(&str) -> Result<i64, Error>,
    ) -> Result<Self, Error> {
        let beyond = if layout.wraps { Beyond::Repeated } else { Beyond::Nearest };
        let (mut grids, mut applies) = (BTreeMap::new(), BTreeMap::new());
        for (operation, op) in kernel.body.iter().enumerate() {
            match op {
                TileOp::Load { field, .. } | TileOp::Store { field, .. } => {
                    let grid = frame.scope.program.grid_of(field)?;
                    let bounds = bounds(frame, builder, (grid.lower, grid.upper))?;
                    let group = (beyond, vector(field)?);
                    let kept = place.cells.kept_in(frame, builder, grid, group)?;
                    grids.insert(operation, (place.cells.inside(builder, bounds)?, kept));
                }
                TileOp::Apply(apply) => {
                    let mut repeated = None;
                    if let Some(grid) = beyond.repeated_grid(frame.scope.program, apply)? {
                        repeated =
                            Some(place.cells.kept_in(frame, builder, grid, (beyond, 1))?);
                    }
                    let cells = repeated.as_ref().unwrap_or(&place.cells);
                    let mut pieces = Vec::new();
                    for piece in &apply.pieces {
                        let bounds = bounds(frame, builder, (piece.lower, piece.upper))?;
                        pieces.push(cells.inside(builder, bounds)?);
                    }
                    let all = apply.pieces.iter().all(|piece| is_total(layout, piece));
                    let computed = match all {
                        true => None,
                        false => {
                            let reach = (&apply.halo, kernel.schedule.tile.as_slice());
                            Some(place.computed(frame, builder, reach)?)
                        }
                    };
                    let free = match (all && !layout.wraps, apply.main) {
                        (true, Some(main)) => {
                            Some(free(frame, builder, (layout, place), (apply, &main))?)
                        }
                        _ => None,
                    };
                    applies.insert(operation, ApplyRims { pieces, computed, repeated, free });
                }
            }
        }
        Ok(Self { grids, applies })
    }
}

/// Whether a piece's function has a result for any operands.
pub fn is_total(layout: &Layout, piece: &Piece) -> bool {
    layout.total.get(piece.function) == Some(&true)
}

/// The cells of an apply at no rim: those of the main piece whose reads follow no boundary rule.
struct Limits<'c> {
    lowers: Vec<(AffineMap<'c>, [i64; 2])>,
    uppers: Vec<(AffineMap<'c>, [i64; 2])>,
}

impl<'c> Limits<'c> {
    fn of(frame: &Frame<'c, '_>, apply: &Apply<'c>, main: &Piece<'c>) -> Result<Self, Error> {
        let program = frame.scope.program;
        let mut limits =
            Self { lowers: vec![(main.lower, [0; 2])], uppers: vec![(main.upper, [0; 2])] };
        for read in footprint::of_pieces(program, &apply.pieces)? {
            let field = program.field(read.field)?;
            if field.boundary.is_none_or(|rule| rule == Boundary::Periodic) {
                continue;
            }
            let grid = program.grid_of(read.field)?;
            let (&[up, before], &[down, after]) =
                (read.reach.lower.as_slice(), read.reach.upper.as_slice())
            else {
                return Err(Error::internal("a read of other than two offsets"));
            };
            // The cell inside that a rule finds is in reach too, so that reach holds the offset.
            limits.lowers.push((grid.lower, [-up, -before]));
            limits.uppers.push((grid.upper, [-down, -after]));
        }
        Ok(limits)
    }

    /// The bounds as values.
    fn bounds(&self, frame: &Frame<'c, '_>, builder: &Builder<'c>) -> Result<Bounds<'c>, Error> {
        let end = |all: &[(AffineMap<'c>, [i64; 2])], dimension: usize, pick| {
            let mut end: Option<Val<'c>> = None;
            for (map, moved) in all {
                let bound = frame.scope.bounds(builder, *map)?.get(dimension).copied();
                let bound = bound.ok_or_else(|| Error::internal("a bound beyond the rank"))?;
                let moved = moved.get(dimension).copied().unwrap_or(0);
                let bound = builder.add_constant(bound, moved)?;
                end = Some(end.map_or(Ok(bound), |end| builder.binary(pick, end, bound))?);
            }
            end.ok_or_else(|| Error::internal("an apply without limits"))
        };
        let both = |dimension| {
            Ok::<_, Error>([
                end(&self.lowers, dimension, "arith.maxsi")?,
                end(&self.uppers, dimension, "arith.minsi")?,
            ])
        };
        Ok([both(0)?, both(1)?])
    }
}

/// When the lanes of an apply need few checks.
fn free<'c>(
    frame: &Frame<'c, '_>,
    builder: &Builder<'c>,
    (layout, place): (&Layout<'c>, &Place<'c>),
    (apply, main): (&Apply<'c>, &Piece<'c>),
) -> Result<Free<'c>, Error> {
    let limits = Limits::of(frame, apply, main)?;
    let [[first, last], _] = limits.bounds(frame, builder)?;
    let (Some(top), Some(bottom)) = (place.cells.rows.first(), place.cells.rows.last()) else {
        return Err(Error::internal("a lane of no rows"));
    };
    let after = builder.compare(Compare::Ge, *top, first)?;
    let mut rows = builder.both(after, builder.compare(Compare::Le, *bottom, last)?)?;
    // Nobody reads what rows beyond the grid hold.
    let grids = apply.outputs.iter().map(|(field, _)| frame.scope.program.grid_of(field));
    let grids = grids.collect::<Result<Vec<_>, _>>()?;
    if let Some((grid, others)) = grids.split_first()
        && others.iter().all(|other| (other.lower, other.upper) == (grid.lower, grid.upper))
    {
        let [[first, last], _] = bounds(frame, builder, (grid.lower, grid.upper))?;
        let above = builder.compare(Compare::Lt, *bottom, first)?;
        let below = builder.compare(Compare::Gt, *top, last)?;
        rows = builder.binary("arith.ori", rows, builder.binary("arith.ori", above, below)?)?;
    }
    Ok(Free { rows, columns: columns(frame, layout, (apply, &limits))? })
}

/// The columns of a lane that may lie at a rim: every tile begins with the grid's first column, or
/// whole lanes after it.
fn columns<'c>(
    frame: &Frame<'c, '_>,
    layout: &Layout<'c>,
    (apply, limits): (&Apply<'c>, &Limits<'c>),
) -> Result<BTreeSet<i64>, Error> {
    let of = |(map, by): &(AffineMap<'c>, [i64; 2])| {
        let bound = Linear::of_map(*map)?.get(1).cloned()?;
        let constant = bound.constant.checked_add(by[1])?;
        Some(Linear { constant, ..bound })
    };
    let width = layout.width;
    let all = || (0..width).collect::<BTreeSet<_>>();
    let mut found = BTreeSet::new();
    let Some(start) = of(&(frame.scope.hull.lower, [0; 2])) else { return Ok(all()) };
    for (field, _) in &apply.outputs {
        let grid = frame.scope.program.grid_of(field)?;
        let (Some(first), Some(last)) = (of(&(grid.lower, [0; 2])), of(&(grid.upper, [0; 2])))
        else {
            return Ok(all());
        };
        // Columns before a lower limit and behind an upper one, counted from the grid's first.
        let before = limits.lowers.iter().map(|limit| (Some(first.clone()), of(limit), [0, -1]));
        let after = limits.uppers.iter().map(|limit| (of(limit), Some(last.clone()), [1, 0]));
        for (from, to, [skip, until]) in before.chain(after) {
            let gap = from.as_ref().zip(to.as_ref()).and_then(|(from, to)| to.minus(from));
            let shift = from.as_ref().and_then(|from| from.minus(&start));
            let Some(gap) = gap.filter(Linear::is_constant) else { return Ok(all()) };
            let count = gap.constant + until - skip + 1;
            if count <= 0 {
                continue;
            }
            let Some(shift) = shift.filter(Linear::is_constant).filter(|_| count < width) else {
                return Ok(all());
            };
            let first = shift.constant + skip;
            found.extend((first..first + count).map(|column| column.rem_euclid(width)));
        }
    }
    Ok(found)
}
