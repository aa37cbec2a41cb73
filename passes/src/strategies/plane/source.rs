//! Loads of a field's cells, those outside its grid among them: such a cell is loaded as its
//! boundary rule has it, so that no read needs to follow the rule.
//!
//! A field without a rule gives any cell there, because no covered point reads it.

use crate::kernel::boundary::Edges;
use crate::kernel::frame::Frame;
use crate::kernel::lane_cells::{self, LaneCells};
use crate::kernel::lanes;
use melior::ir::Type;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::{Boundary, Field};

/// A field that a kernel loads.
pub struct Source<'c, 'p> {
    frame: &'p Frame<'c, 'p>,
    field: &'p Field<'c>,
    /// Its boundary rule, if a read may leave the grid.
    boundary: Option<Boundary<'c>>,
    /// Cells of a segment.
    width: i64,
    /// Cells of an access.
    vector: i64,
    /// The step within the launch.
    step: i64,
    /// The farthest read per dimension.
    reach: Vec<i64>,
    edges: Vec<Edges<'c>>,
    /// The condition that the grid has a cell, where it may have none.
    some: Option<Val<'c>>,
}

/// A segment of neighbouring cells of a row, for all planes.
pub struct Segment<'c> {
    /// Its cells.
    cells: LaneCells<'c>,
    /// The cells that are loaded in their place.
    inside: LaneCells<'c>,
    /// Whether its cells lie side by side in the grid, where a rule may send them elsewhere.
    straight: Option<Val<'c>>,
    /// For each cell whether its row or column lies outside, where a rule has a value.
    outside: Vec<Val<'c>>,
}

impl<'c, 'p> Source<'c, 'p> {
    /// The loads of a field at some step of the launch, for reads that reach so far.
    pub fn new(
        frame: &'p Frame<'c, 'p>,
        field: &str,
        (width, step): (i64, i64),
        reach: &[i64],
    ) -> Result<Self, Error> {
        let (scope, builder) = (&frame.scope, &frame.builder);
        let grid = scope.program.grid_of(field)?;
        let field = scope.program.field(field)?;
        let edges =
            (0..reach.len()).map(|dimension| Edges::of_grid(scope, builder, grid, dimension));
        Ok(Self {
            frame,
            field,
            // Reads of the point alone need no rule.
            boundary: field.boundary.filter(|_| reach.iter().any(|cells| *cells != 0)),
            width,
            vector: lanes::aligned_cells(scope, field.name, width)?,
            step,
            reach: reach.to_vec(),
            edges: edges.collect::<Result<_, _>>()?,
            some: lane_cells::some(frame, builder, grid)?,
        })
    }

    /// The type of a cell.
    pub fn element(&self) -> Type<'c> {
        self.field.element
    }

    /// The segment from a column on.
    pub fn segment(
        &self,
        builder: &Builder<'c>,
        row: Option<Val<'c>>,
        column: Val<'c>,
    ) -> Result<Segment<'c>, Error> {
        let columns = (0..self.width).map(|cell| builder.add_constant(column, cell));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let last = self.edges.len().saturating_sub(1);
        let middle = |row: Val<'c>| self.mapped(builder, 1, row, 1);
        let inner = row.map(middle).transpose()?;
        let access = usize::try_from(self.vector).unwrap_or(1).max(1);
        let mut inside = Vec::new();
        for (number, column) in columns.iter().enumerate() {
            if self.boundary.is_some() {
                inside.push(self.mapped(builder, last, *column, 1)?);
            } else {
                // Cells of an access lie all inside or all outside.
                let within = i64::try_from(number % access).unwrap_or(0);
                let first = builder.add_constant(*column, -within)?;
                let first = self.mapped(builder, last, first, self.vector)?;
                inside.push(builder.add_constant(first, within)?);
            }
        }
        let (mut straight, mut outside) = (None, Vec::new());
        if let (Some(edges), Some(first), Some(end)) =
            (self.edges.get(last), columns.first(), columns.last())
            && self.boundary.is_some()
        {
            let ends = [
                builder.compare(Compare::Ge, *first, edges.first())?,
                builder.compare(Compare::Le, *end, edges.last())?,
            ];
            straight = builder.all(&ends)?;
        }
        if let Some(Boundary::Value(_)) = self.boundary {
            let beside = row.map(|row| self.outside(builder, 1, row)).transpose()?;
            for column in &columns {
                let beyond = self.outside(builder, last, *column)?;
                outside.push(match beside {
                    Some(beside) => builder.binary("arith.ori", beside, beyond)?,
                    None => beyond,
                });
            }
        }
        Ok(Segment {
            cells: LaneCells { rows: vec![row], columns },
            inside: LaneCells { rows: vec![inner], columns: inside },
            straight,
            outside,
        })
    }

    /// A plane of a segment.
    pub fn load(
        &self,
        builder: &Builder<'c>,
        segment: &Segment<'c>,
        plane: Val<'c>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let inner = self.mapped(builder, 0, plane, 1)?;
        let types = vec![self.field.element; segment.cells.columns.len()];
        let cells = |builder: &Builder<'c>| self.nearest(builder, segment, inner);
        let nearest = match self.some {
            None => cells(builder)?,
            Some(some) => builder.choose(some, &types, cells, |builder| {
                types.iter().map(|ty| builder.zero(*ty)).collect()
            })?,
        };
        let Some(Boundary::Value(function)) = self.boundary else { return Ok(nearest) };
        let beyond = self.outside(builder, 0, plane)?;
        let mut outside = Vec::new();
        for cell in &segment.outside {
            outside.push(builder.binary("arith.ori", beyond, *cell)?);
        }
        let any = outside.iter().skip(1).try_fold(
            outside.first().copied().ok_or_else(|| Error::internal("a segment of no cells"))?,
            |any, cell| builder.binary("arith.ori", any, *cell),
        )?;
        let ruled = |builder: &Builder<'c>| {
            let mut values = Vec::new();
            for (((row, column), outside), near) in segment.cells.each().zip(&outside).zip(&nearest)
            {
                let point = LaneCells::point(plane, row, column);
                let scope = &self.frame.scope;
                let value = |builder: &Builder<'c>| {
                    Ok(vec![scope.beyond(builder, function, (&point, self.step), *near)?])
                };
                let types = [self.field.element];
                values.extend(builder.choose(*outside, &types, value, |_| Ok(vec![*near]))?);
            }
            Ok(values)
        };
        builder.choose(any, &types, ruled, |_| Ok(nearest.clone()))
    }

    /// The cells that stand for those of a segment, in a plane of the grid.
    fn nearest(
        &self,
        builder: &Builder<'c>,
        segment: &Segment<'c>,
        plane: Val<'c>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let (buffer, scope) = (self.frame.source(self.field.name)?, &self.frame.scope);
        let load = |builder: &Builder<'c>, vector: i64| {
            let mut cells = Vec::new();
            let step = usize::try_from(vector).unwrap_or(1).max(1);
            for (row, column) in segment.inside.each().step_by(step) {
                let point = LaneCells::point(plane, row, column);
                let at = scope.cell(builder, self.field.name, &point)?;
                cells.extend(lanes::load(builder, buffer, &at, vector, vector)?);
            }
            Ok(cells)
        };
        match segment.straight.filter(|_| self.vector > 1) {
            Some(straight) => {
                let types = vec![self.field.element; segment.cells.columns.len()];
                let whole = |builder: &Builder<'c>| load(builder, self.vector);
                builder.choose(straight, &types, whole, |builder| load(builder, 1))
            }
            None => load(builder, self.vector),
        }
    }

    /// The coordinate inside the grid that one stands for, the first of `length`.
    fn mapped(
        &self,
        builder: &Builder<'c>,
        dimension: usize,
        at: Val<'c>,
        length: i64,
    ) -> Result<Val<'c>, Error> {
        let (Some(edges), Some(reach)) = (self.edges.get(dimension), self.reach.get(dimension))
        else {
            return Err(Error::internal("a coordinate beyond the rank"));
        };
        match self.boundary {
            Some(Boundary::Periodic) => edges.repeated(builder, at),
            // Cells that no point reads may lie farther off than a read.
            Some(Boundary::Reflect) => edges.nearest(builder, edges.mirrored(builder, at, *reach)?),
            Some(Boundary::Nearest | Boundary::Value(_)) => edges.nearest(builder, at),
            None => edges.nearest_of(builder, at, length),
        }
    }

    /// Whether a coordinate lies outside the grid.
    fn outside(
        &self,
        builder: &Builder<'c>,
        dimension: usize,
        at: Val<'c>,
    ) -> Result<Val<'c>, Error> {
        let edges = self.edges.get(dimension);
        let edges = edges.ok_or_else(|| Error::internal("a coordinate beyond the rank"))?;
        let outside = edges.outside(builder, at)?;
        crate::kernel::boundary::any(builder, &outside)?
            .ok_or_else(|| Error::internal("edges that nothing crosses"))
    }
}
