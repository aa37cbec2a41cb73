//! What tiles at a rim check. Whether a coordinate lies in a box is found once for a lane.
//!
//! Most warps of a tile at a rim lie at no rim of rows and planes. They run code that checks
//! neither, and
//! checks those columns of a lane alone that may lie at a rim: where the sizes are known, the grid
//! begins with a lane and ends with a known column of one.

use super::layout::Layout;
use super::masks::Mask;
use super::place::{Cells, Place, bounds};
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
    /// For each load or store whether coordinates lie in its grid, and the loaded ones inside.
    pub grids: BTreeMap<usize, (Cells<'c>, Cells<'c>)>,
    /// For each apply its checks.
    pub applies: BTreeMap<usize, ApplyRims<'c>>,
}

/// The checks of an apply.
pub struct ApplyRims<'c> {
    /// For each piece whether it covers coordinates.
    pub pieces: Vec<Cells<'c>>,
    /// Whether the apply has to compute coordinates, where it may compute no others.
    pub computed: Option<Cells<'c>>,
    /// The points that the lane's cells stand for, where the grid repeats.
    pub repeated: Option<Cells<'c>>,
    /// What makes most checks unneeded.
    pub free: Option<Free<'c>>,
}

/// When a lane needs few checks.
#[derive(Clone)]
pub struct Free<'c> {
    /// Whether its rows and planes lie at no rim of rows or planes.
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
                    let kept = place.cells.kept_in(builder, &bounds, group)?;
                    grids.insert(operation, (place.cells.inside(builder, &bounds)?, kept));
                }
                TileOp::Apply(apply) => {
                    let mut repeated = None;
                    if let Some(grid) = beyond.repeated_grid(frame.scope.program, apply)? {
                        let how = (beyond, 1);
                        repeated = Some(place.cells.kept_in_grid(frame, builder, grid, how)?);
                    }
                    let cells = repeated.as_ref().unwrap_or(&place.cells);
                    let mut pieces = Vec::new();
                    for piece in &apply.pieces {
                        let bounds = bounds(frame, builder, (piece.lower, piece.upper))?;
                        pieces.push(cells.inside(builder, &bounds)?);
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

impl<'c> Rims<'c> {
    /// The checks of an apply.
    pub fn of_apply(&self, operation: usize) -> Result<&ApplyRims<'c>, Error> {
        let checks = self.applies.get(&operation);
        checks.ok_or_else(|| Error::internal("an apply without checks"))
    }
}

/// The checks of an apply with their conditions in words.
pub struct Packed<'c> {
    pieces: Vec<Mask<'c>>,
    computed: Option<Mask<'c>>,
}

impl<'c> ApplyRims<'c> {
    /// Packs the conditions.
    pub fn packed(&self, builder: &Builder<'c>) -> Result<Packed<'c>, Error> {
        let pieces =
            self.pieces.iter().map(|cells| cells.packed(builder)).collect::<Result<_, _>>();
        let computed = self.computed.as_ref().map(|cells| cells.packed(builder)).transpose()?;
        Ok(Packed { pieces: pieces?, computed })
    }

    /// The same checks with the conditions that were packed. All lanes of a warp must ask for them
    /// together.
    pub fn unpacked(&self, builder: &Builder<'c>, packed: &Packed<'c>) -> Result<Self, Error> {
        let cells =
            |(cells, mask): (&Cells<'c>, &Mask<'c>)| Ok(cells.unpacked(mask.conditions(builder)?));
        let computed = self.computed.as_ref().zip(packed.computed.as_ref());
        let pieces = self.pieces.iter().zip(&packed.pieces).map(cells);
        Ok(Self {
            pieces: pieces.collect::<Result<_, Error>>()?,
            computed: computed.map(cells).transpose()?,
            repeated: self.repeated.clone(),
            free: self.free.clone(),
        })
    }
}

/// Whether a piece's function has a result for any operands.
pub fn is_total(layout: &Layout, piece: &Piece) -> bool {
    layout.total.get(piece.function) == Some(&true)
}

/// An end of a box, and by how many cells it is moved per dimension.
type Limit<'c> = (AffineMap<'c>, Vec<i64>);

/// The cells of an apply at no rim: those of the main piece whose reads follow no boundary rule.
struct Limits<'c> {
    lowers: Vec<Limit<'c>>,
    uppers: Vec<Limit<'c>>,
}

impl<'c> Limits<'c> {
    fn of(frame: &Frame<'c, '_>, apply: &Apply<'c>, main: &Piece<'c>) -> Result<Self, Error> {
        let program = frame.scope.program;
        let none = vec![0; frame.origin.len()];
        let mut limits =
            Self { lowers: vec![(main.lower, none.clone())], uppers: vec![(main.upper, none)] };
        for read in footprint::of_pieces(program, &apply.pieces)? {
            let field = program.field(read.field)?;
            if field.boundary.is_none_or(|rule| rule == Boundary::Periodic) {
                continue;
            }
            let grid = program.grid_of(read.field)?;
            let back = |cells: &[i64]| cells.iter().map(|cells| -cells).collect();
            // The cell inside that a rule finds is in reach too, so that reach holds the offset.
            limits.lowers.push((grid.lower, back(&read.reach.lower)));
            limits.uppers.push((grid.upper, back(&read.reach.upper)));
        }
        Ok(limits)
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
    let ends = place.cells.ends()?;
    let outer = ends.len().saturating_sub(1);
    let mut conditions = Vec::new();
    let sides = [(&limits.lowers, Compare::Ge), (&limits.uppers, Compare::Le)];
    for (map, moved, compare) in sides
        .into_iter()
        .flat_map(|(all, compare)| all.iter().map(move |(map, moved)| (map, moved, compare)))
    {
        let bounds = frame.scope.bounds(builder, *map)?.into_iter().zip(moved);
        for ((bound, moved), [first, last]) in bounds.zip(&ends).take(outer) {
            let cell = if compare == Compare::Ge { *first } else { *last };
            let bound = builder.add_constant(bound, *moved)?;
            conditions.push(builder.compare(compare, cell, bound)?);
        }
    }
    let rows = builder.all(&conditions)?;
    let mut rows = rows.ok_or_else(|| Error::internal("an apply without limits"))?;
    // Nobody reads what rows beyond the grid hold.
    let grids = apply.outputs.iter().map(|(field, _)| frame.scope.program.grid_of(field));
    let grids = grids.collect::<Result<Vec<_>, _>>()?;
    if let Some((grid, others)) = grids.split_first()
        && others.iter().all(|other| (other.lower, other.upper) == (grid.lower, grid.upper))
    {
        let bounds = bounds(frame, builder, (grid.lower, grid.upper))?;
        for ([first, last], [lower, upper]) in ends.iter().zip(bounds).take(outer) {
            let before = builder.compare(Compare::Lt, *last, lower)?;
            let after = builder.compare(Compare::Gt, *first, upper)?;
            let beyond = builder.binary("arith.ori", before, after)?;
            rows = builder.binary("arith.ori", rows, beyond)?;
        }
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
    let of = |(map, moved): &Limit<'c>| {
        let bound = Linear::of_map(*map)?.last().cloned()?;
        let constant = bound.constant.checked_add(*moved.last()?)?;
        Some(Linear { constant, ..bound })
    };
    let of_map = |map: AffineMap<'c>| of(&(map, vec![0]));
    let width = layout.width;
    let all = || (0..width).collect::<BTreeSet<_>>();
    let mut found = BTreeSet::new();
    let Some(start) = of_map(frame.scope.hull.lower) else { return Ok(all()) };
    for (field, _) in &apply.outputs {
        let grid = frame.scope.program.grid_of(field)?;
        let (Some(first), Some(last)) = (of_map(grid.lower), of_map(grid.upper)) else {
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
