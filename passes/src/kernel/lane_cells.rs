//! Checks of tiles at a rim. Whether a cell's row and column lie in a box is the same for all
//! planes, so a lane finds it before the loop. Whether a plane does is the same for all lanes, so
//! the loop has a branch.

use crate::kernel::boundary::repeated;
use crate::kernel::frame::Frame;
use melior::ir::AffineMap;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::{Grid, Program};
use stencil_dialects::tiled::Apply;

/// Coordinates of a lane's cells in every plane.
pub struct LaneCells<'c> {
    /// Rows; a single `None` in two dimensions, where a plane is a row.
    pub rows: Vec<Option<Val<'c>>>,
    /// Columns.
    pub columns: Vec<Val<'c>>,
}

impl<'c> LaneCells<'c> {
    /// The point of a plane in some row and column.
    pub fn point(plane: Val<'c>, row: Option<Val<'c>>, column: Val<'c>) -> Vec<Val<'c>> {
        [Some(plane), row, Some(column)].into_iter().flatten().collect()
    }

    /// Rows and columns of cells, row by row.
    pub fn each(&self) -> impl Iterator<Item = (Option<Val<'c>>, Val<'c>)> {
        self.rows.iter().flat_map(|row| self.columns.iter().map(|column| (*row, *column)))
    }
}

/// First and last coordinate of a box along one dimension.
pub type Ends<'c> = [Val<'c>; 2];

/// The ends of a box per dimension: plane, row where there is one, column.
fn ends<'c>(
    frame: &Frame<'c, '_>,
    builder: &Builder<'c>,
    (lower, upper): (AffineMap<'c>, AffineMap<'c>),
) -> Result<(Ends<'c>, Option<Ends<'c>>, Ends<'c>), Error> {
    let ends: Vec<Ends<'c>> = frame
        .scope
        .bounds(builder, lower)?
        .into_iter()
        .zip(frame.scope.bounds(builder, upper)?)
        .map(|(a, b)| [a, b])
        .collect();
    match ends.as_slice() {
        [planes, columns] => Ok((*planes, None, *columns)),
        [planes, rows, columns] => Ok((*planes, Some(*rows), *columns)),
        _ => Err(Error::internal("a box that has not two or three dimensions")),
    }
}

/// The cells of a lane that a box covers.
pub struct BoxCells<'c> {
    /// For each cell of the lane whether its row and column lie in the box.
    pub covered: Vec<Val<'c>>,
}

impl<'c> BoxCells<'c> {
    /// Those of the box between two maps, both ends inclusive.
    pub fn new(
        frame: &Frame<'c, '_>,
        builder: &Builder<'c>,
        bounds: (AffineMap<'c>, AffineMap<'c>),
        cells: &LaneCells<'c>,
    ) -> Result<Self, Error> {
        let (_, rows, columns) = ends(frame, builder, bounds)?;
        let inside = |(row, column): (Option<Val<'c>>, Val<'c>)| {
            let column = within(builder, column, columns)?;
            match row.zip(rows) {
                Some((row, rows)) => {
                    builder.binary("arith.andi", within(builder, row, rows)?, column)
                }
                None => Ok(column),
            }
        };
        Ok(Self { covered: cells.each().map(inside).collect::<Result<_, _>>()? })
    }
}

impl<'c> LaneCells<'c> {
    /// The same cells, with each cell outside of the grid replaced by the one inside that stands
    /// for it. The maps are the grid's bounds. Columns come in groups of `group`; a group lies all
    /// inside or all outside.
    pub fn inside(
        &self,
        frame: &Frame<'c, '_>,
        builder: &Builder<'c>,
        bounds: (AffineMap<'c>, AffineMap<'c>),
        beyond: Beyond,
        group: i64,
    ) -> Result<Self, Error> {
        let (_, rows, [first, last]) = ends(frame, builder, bounds)?;
        let row = |row: &Option<Val<'c>>| {
            row.zip(rows).map(|(row, rows)| beyond.inside(builder, row, rows, 1)).transpose()
        };
        let column = |(number, column): (i64, &Val<'c>)| {
            let start = builder.add_constant(*column, -(number % group))?;
            builder
                .add_constant(beyond.inside(builder, start, [first, last], group)?, number % group)
        };
        Ok(Self {
            rows: self.rows.iter().map(row).collect::<Result<_, _>>()?,
            columns: (0..).zip(&self.columns).map(column).collect::<Result<_, _>>()?,
        })
    }
}

/// Whether a plane lies in the box between two maps.
pub fn in_planes<'c>(
    frame: &Frame<'c, '_>,
    builder: &Builder<'c>,
    bounds: (AffineMap<'c>, AffineMap<'c>),
    plane: Val<'c>,
) -> Result<Val<'c>, Error> {
    let ([first, last], ..) = ends(frame, builder, bounds)?;
    let count = builder.add_constant(builder.binary("arith.subi", last, first)?, 1)?;
    let count = builder.binary("arith.maxsi", count, builder.index(0)?)?;
    builder.compare(Compare::Below, builder.binary("arith.subi", plane, first)?, count)
}

/// The condition that the grid has a cell; none where tiles exist only if it has one.
pub fn some<'c>(
    frame: &Frame<'c, '_>,
    builder: &Builder<'c>,
    grid: &Grid<'c>,
) -> Result<Option<Val<'c>>, Error> {
    if frame.scope.hull.has_points_of(grid) {
        return Ok(None);
    }
    let bounds = frame
        .scope
        .bounds(builder, grid.lower)?
        .into_iter()
        .zip(frame.scope.bounds(builder, grid.upper)?);
    let conditions = bounds.map(|(lower, upper)| builder.compare(Compare::Le, lower, upper));
    builder.all(&conditions.collect::<Result<Vec<_>, _>>()?)
}

/// The content of cells outside of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// The content of the nearest cell inside; nobody reads it.
    Nearest,
    /// The grid repeated.
    Repeated,
}

impl Beyond {
    /// The coordinate inside that stands for the first of `group`.
    pub fn inside<'c>(
        self,
        builder: &Builder<'c>,
        at: Val<'c>,
        [first, last]: Ends<'c>,
        group: i64,
    ) -> Result<Val<'c>, Error> {
        match self {
            Self::Nearest => {
                let last = builder.add_constant(last, 1 - group)?;
                builder.binary("arith.maxsi", builder.binary("arith.minsi", at, last)?, first)
            }
            Self::Repeated => repeated(builder, at, first, last),
        }
    }

    /// The grid beyond which an apply computes cells, as the grid repeated; none for other applies.
    /// All fields of such a kernel lie on the same points.
    pub fn repeated_grid<'c, 'p>(
        self,
        program: &'p Program<'c>,
        apply: &Apply<'c>,
    ) -> Result<Option<&'p Grid<'c>>, Error> {
        if self == Self::Nearest || !apply.reaches_beyond() {
            return Ok(None);
        }
        apply.outputs.first().map(|(field, _)| program.grid_of(field)).transpose()
    }

    /// The plane itself, or the one inside of the grid that stands for it.
    pub fn plane<'c>(
        self,
        frame: &Frame<'c, '_>,
        builder: &Builder<'c>,
        grid: &Grid<'c>,
        plane: Val<'c>,
    ) -> Result<Val<'c>, Error> {
        self.inside(builder, plane, ends(frame, builder, (grid.lower, grid.upper))?.0, 1)
    }
}

fn within<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    [first, last]: Ends<'c>,
) -> Result<Val<'c>, Error> {
    let after = builder.compare(Compare::Ge, value, first)?;
    builder.binary("arith.andi", after, builder.compare(Compare::Le, value, last)?)
}
