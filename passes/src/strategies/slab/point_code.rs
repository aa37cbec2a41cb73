//! The code of a piece's points: rows in vectors where its function allows, cell by cell elsewhere.

use super::boxes::Cells;
use super::lanes;
use super::place::Place;
use super::reads;
use super::row_vectors::Rows;
use crate::kernel::boundary::Edges;
use crate::kernel::evaluate::{At, Distance, Rules};
use crate::kernel::scope::Scope;
use std::collections::BTreeMap;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{Op, Val};
use stencil_dialects::stencil::{self, Argument, Boundary, Piece};

/// What the points of a piece are computed from, and where their values go.
pub struct PointCode<'c, 'p> {
    /// The names that a function can use.
    pub scope: &'p Scope<'c, 'p>,
    /// The memory of each field's old values.
    pub inputs: &'p BTreeMap<&'c str, Place<'c>>,
    /// The memory of new values, in the order of a function's results; none for those that nobody
    /// needs.
    pub outputs: &'p [Option<Place<'c>>],
    /// Whether tiles go on beyond the grid as the grid repeated.
    pub wraps: bool,
    /// Lanes of a vector.
    pub lanes: i64,
    /// Registers for vectors.
    pub registers: usize,
}

/// The first cells of rows, by field and distance of the row.
pub type Starts<'c> = BTreeMap<(&'c str, Vec<i64>), Val<'c>>;

impl<'c> PointCode<'c, '_> {
    /// The new values of a piece's points in a box.
    pub fn piece(
        &self,
        builder: &Builder<'c>,
        piece: &Piece<'c>,
        region: &Cells<'c>,
    ) -> Result<(), Error> {
        let all = Cells::of(builder, self.scope, (piece.lower, piece.upper))?;
        let all = all.within(builder, region)?;
        let core = match self.core(builder, piece, &all)? {
            None => all,
            Some(core) => {
                let core = core.within(builder, &all)?;
                all.each_outside(builder, &core, &mut |builder, cell| {
                    self.cell(builder, piece, cell)
                })?;
                core
            }
        };
        let function = stencil::function(self.scope.module, piece.function)?;
        let [first, end] = core.row()?;
        let single = |builder: &Builder<'c>| {
            core.each_row(builder, &mut |builder, row| {
                let starts = self.starts(builder, function, row, 1)?;
                builder.repeat((first, end, builder.index(1)?), |builder, at| {
                    self.single(builder, piece, row, at, &starts)
                })
            })
        };
        if self.lanes == 1 || !lanes::is_lanewise(function, self.lanes) {
            return single(builder);
        }
        let (way, _) = reads::way(self.scope.program, function, (self.lanes, self.registers))?;
        let vectors = |builder: &Builder<'c>| {
            core.each_rows(builder, way.rows, |builder, row, count| {
                let starts = &self.starts(builder, function, row, count)?;
                self.rows(builder, &Rows { function, way, row, count, starts }, [first, end])
            })?;
            Ok(Vec::new())
        };
        let cells = builder.binary("arith.subi", end, first)?;
        let enough = builder.compare(Compare::Ge, cells, builder.index(self.lanes)?)?;
        let single = |builder: &Builder<'c>| single(builder).map(|()| Vec::new());
        builder.choose(enough, &[], vectors, single).map(drop)
    }

    /// The box around whose points no read leaves the grid; none where no read ever does.
    fn core(
        &self,
        builder: &Builder<'c>,
        piece: &Piece<'c>,
        all: &Cells<'c>,
    ) -> Result<Option<Cells<'c>>, Error> {
        let (mut core, mut crossed) = (all.clone(), false);
        for argument in self.scope.program.arguments(piece.function)? {
            let Argument::Read { field, offset } = argument else { continue };
            let field = self.scope.program.field(field)?;
            match field.boundary {
                None => continue,
                Some(Boundary::Periodic) if self.wraps => continue,
                Some(_) => {}
            }
            let grid = self.scope.program.grid_of(field.name)?;
            let grid = Cells::of(builder, self.scope, (grid.lower, grid.upper))?;
            for (dimension, cells) in offset.iter().enumerate() {
                if !Edges::new(self.scope, builder, piece, field, dimension, *cells)?.crossed() {
                    continue;
                }
                crossed = true;
                let (Some([first, end]), Some([grid_first, grid_end])) =
                    (core.0.get_mut(dimension), grid.0.get(dimension))
                else {
                    return Err(Error::internal("an offset beyond the rank"));
                };
                let least = builder.add_constant(*grid_first, -cells)?;
                let most = builder.add_constant(*grid_end, -cells)?;
                *first = builder.binary("arith.maxsi", *first, least)?;
                *end = builder.binary("arith.minsi", *end, most)?;
            }
        }
        Ok(crossed.then_some(core))
    }

    /// The value of a field at distances from a cell.
    pub fn fetch(
        &self,
        builder: &Builder<'c>,
        field: &str,
        (cell, distances): (&[Val<'c>], &[Distance<'c>]),
    ) -> Result<Val<'c>, Error> {
        let place = self.input(field)?;
        let at = cell.iter().zip(distances).map(|(at, distance)| distance.from(builder, *at));
        let number = place.number(builder, &at.collect::<Result<Vec<_>, _>>()?)?;
        builder.load(place.flat(builder)?, &[number])
    }

    /// Stores new values at a cell.
    pub fn store(
        &self,
        builder: &Builder<'c>,
        values: &[Val<'c>],
        cell: &[Val<'c>],
    ) -> Result<(), Error> {
        for (value, place) in values.iter().zip(self.outputs) {
            if let Some(place) = place {
                let number = place.number(builder, cell)?;
                builder.store(*value, place.flat(builder)?, &[number])?;
            }
        }
        Ok(())
    }

    /// The memory of a field's old values.
    pub fn input(&self, field: &str) -> Result<&Place<'c>, Error> {
        let place = self.inputs.get(field);
        place.ok_or_else(|| Error::internal(format!("no cells of @{field}")))
    }

    /// A cell whose reads may leave the grid.
    fn cell(
        &self,
        builder: &Builder<'c>,
        piece: &Piece<'c>,
        cell: &[Val<'c>],
    ) -> Result<(), Error> {
        let fetch = |builder: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
            self.fetch(builder, field, (cell, distances))
        };
        let rules = if self.wraps { Rules::Wrapped } else { Rules::All };
        let at = At { point: cell, step: 0, rules, fetch: &fetch, current: None, partial: None };
        let values = self.scope.evaluate(builder, piece, &at)?;
        self.store(builder, &values, cell)
    }

    /// Where the rows begin that some rows of points read.
    fn starts(
        &self,
        builder: &Builder<'c>,
        function: Op<'c>,
        row: &[Val<'c>],
        rows: i64,
    ) -> Result<Starts<'c>, Error> {
        let mut starts = BTreeMap::new();
        for argument in stencil::arguments(function)? {
            let Argument::Read { field, offset } = argument else { continue };
            for beside in 0..rows {
                let away = reads::away(&offset, beside);
                let at = moved(builder, row, &away)?;
                if !starts.contains_key(&(field, away.clone())) {
                    starts.insert((field, away), self.input(field)?.row_start(builder, &at)?);
                }
            }
        }
        Ok(starts)
    }

    /// The values of one cell of a row, all of whose reads lie in the grid.
    fn single(
        &self,
        builder: &Builder<'c>,
        piece: &Piece<'c>,
        row: &[Val<'c>],
        at: Val<'c>,
        starts: &Starts<'c>,
    ) -> Result<(), Error> {
        let point = [row, &[at]].concat();
        let fetch = |builder: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
            let constant = |distance: &Distance| match distance {
                Distance::Constant(cells) => Ok(*cells),
                Distance::Mapped(..) => Err(Error::internal("a read that leaves the grid")),
            };
            let offset = distances.iter().map(constant).collect::<Result<Vec<_>, Error>>()?;
            let cells = offset.last().copied().unwrap_or(0);
            let read = (field, &*reads::away(&offset, 0));
            let number = self.cell_number(builder, read, (at, cells), starts)?;
            builder.load(self.input(field)?.flat(builder)?, &[number])
        };
        let rules = Rules::Unneeded;
        let at = At { point: &point, step: 0, rules, fetch: &fetch, current: None, partial: None };
        let values = self.scope.evaluate(builder, piece, &at)?;
        self.store(builder, &values, &point)
    }

    /// The number of a cell at a distance along a row that is read.
    pub fn cell_number(
        &self,
        builder: &Builder<'c>,
        (field, away): (&str, &[i64]),
        (at, cells): (Val<'c>, i64),
        starts: &Starts<'c>,
    ) -> Result<Val<'c>, Error> {
        let start = starts.iter().find(|((name, row), _)| *name == field && row == away);
        let (_, start) = start.ok_or_else(|| Error::internal("a row that nobody has found"))?;
        builder.add_constant(builder.add(*start, at)?, cells)
    }
}

/// The distance of a row beside another, in so many dimensions.
pub fn along(dimensions: usize, beside: i64) -> Vec<i64> {
    let mut away = vec![0; dimensions];
    if let Some(last) = away.last_mut() {
        *last = beside;
    }
    away
}

/// A row's coordinates, moved.
pub fn moved<'c>(
    builder: &Builder<'c>,
    row: &[Val<'c>],
    by: &[i64],
) -> Result<Vec<Val<'c>>, Error> {
    row.iter().zip(by).map(|(at, cells)| builder.add_constant(*at, *cells)).collect()
}
