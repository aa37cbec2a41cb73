//! The code of a piece's points: rows in vectors where its function allows, cell by cell elsewhere.
//!
//! A row of at least as many cells as a vector has lanes is computed in whole vectors: the last
//! one begins so far before the row's end that it ends with it, and computes some cells again.
//! Applies read other memory than they write, so this gives the same values.

use super::boxes::Cells;
use super::lanes;
use super::place::Place;
use crate::kernel::boundary::Edges;
use crate::kernel::evaluate::{At, Distance, Rules};
use crate::kernel::scope::Scope;
use melior::ir::{Attribute, Type};
use std::collections::BTreeMap;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{Op, Val};
use stencil_dialects::stencil::{self, Argument, Boundary, Piece};

/// Rows that are computed together: they share the rows between them.
pub const ROWS: i64 = 2;

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
}

/// The first cells of rows, by field and distance of the row.
type Starts<'c> = BTreeMap<(&'c str, Vec<i64>), Val<'c>>;

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
        let lanewise = lanes::is_lanewise(function) && self.lanes > 1;
        let together = if lanewise { ROWS } else { 1 };
        let [first, end] = core.row()?;
        core.each_rows(builder, together, |builder, row, rows| {
            let starts = self.starts(builder, function, row, rows)?;
            let single = |builder: &Builder<'c>| {
                builder.repeat((first, end, builder.index(1)?), |builder, at| {
                    self.single(builder, piece, (row, rows), at, &starts)
                })
            };
            if !lanewise {
                return single(builder);
            }
            let cells = builder.binary("arith.subi", end, first)?;
            let lanes = builder.index(self.lanes)?;
            let enough = builder.compare(Compare::Ge, cells, lanes)?;
            let vectors = |builder: &Builder<'c>| {
                let last = builder.binary("arith.subi", end, lanes)?;
                builder.repeat((first, end, lanes), |builder, at| {
                    let at = builder.binary("arith.minsi", at, last)?;
                    self.vector(builder, function, (row, rows), at, &starts)
                })?;
                Ok(Vec::new())
            };
            let single = |builder: &Builder<'c>| single(builder).map(|()| Vec::new());
            builder.choose(enough, &[], vectors, single).map(drop)
        })
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
                let away = away(&offset, beside);
                let at = moved(builder, row, &away)?;
                if !starts.contains_key(&(field, away.clone())) {
                    starts.insert((field, away), self.input(field)?.row_start(builder, &at)?);
                }
            }
        }
        Ok(starts)
    }

    /// The values of one cell in each of some rows.
    fn single(
        &self,
        builder: &Builder<'c>,
        piece: &Piece<'c>,
        (row, rows): (&[Val<'c>], i64),
        at: Val<'c>,
        starts: &Starts<'c>,
    ) -> Result<(), Error> {
        let mut results = Vec::new();
        for beside in 0..rows {
            let point = [moved(builder, row, &along(row.len(), beside))?, vec![at]].concat();
            let fetch = |builder: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
                let constant = |distance: &Distance| match distance {
                    Distance::Constant(cells) => Ok(*cells),
                    Distance::Mapped(..) => Err(Error::internal("a read that leaves the grid")),
                };
                let offset = distances.iter().map(constant).collect::<Result<Vec<_>, Error>>()?;
                let number = self.cell_number(builder, (field, &offset), beside, at, starts)?;
                builder.load(self.input(field)?.flat(builder)?, &[number])
            };
            let rules = Rules::Unneeded;
            let at =
                At { point: &point, step: 0, rules, fetch: &fetch, current: None, partial: None };
            results.push((self.scope.evaluate(builder, piece, &at)?, point));
        }
        results.iter().try_for_each(|(values, point)| self.store(builder, values, point))
    }

    /// The values of a vector of cells in each of some rows.
    fn vector(
        &self,
        builder: &Builder<'c>,
        function: Op<'c>,
        (row, rows): (&[Val<'c>], i64),
        at: Val<'c>,
        starts: &Starts<'c>,
    ) -> Result<(), Error> {
        let mut loaded: BTreeMap<(&str, Vec<i64>), Val<'c>> = BTreeMap::new();
        let mut results = Vec::new();
        for beside in 0..rows {
            let point = [moved(builder, row, &along(row.len(), beside))?, vec![at]].concat();
            let mut values = Vec::new();
            for argument in stencil::arguments(function)? {
                values.push(match &argument {
                    Argument::Read { field, offset } => {
                        let mut cell = away(offset, beside);
                        cell.extend(offset.last());
                        match loaded.get(&(*field, cell.clone())) {
                            Some(value) => *value,
                            None => {
                                let read = (*field, offset.as_slice());
                                let number = self.cell_number(builder, read, beside, at, starts)?;
                                let value = self.load(builder, field, number)?;
                                *loaded.entry((*field, cell)).or_insert(value)
                            }
                        }
                    }
                    Argument::Coordinate(dimension) if *dimension == row.len() => {
                        self.numbers(builder, at)?
                    }
                    other => self.scope.outer(builder, other, &point, 0)?,
                });
            }
            results.push((lanes::evaluate(builder, function, &values, self.lanes)?, point));
        }
        for (values, point) in &results {
            for (value, place) in values.iter().zip(self.outputs) {
                if let Some(place) = place {
                    let operands = [*value, place.flat(builder)?, place.number(builder, point)?];
                    builder.op("vector.store", &operands, &[], &[])?;
                }
            }
        }
        Ok(())
    }

    fn cell_number(
        &self,
        builder: &Builder<'c>,
        (field, offset): (&str, &[i64]),
        beside: i64,
        at: Val<'c>,
        starts: &Starts<'c>,
    ) -> Result<Val<'c>, Error> {
        let away = away(offset, beside);
        let start = starts.iter().find(|((name, row), _)| *name == field && *row == away);
        let (_, start) = start.ok_or_else(|| Error::internal("a row that nobody has found"))?;
        let number = builder.add(*start, at)?;
        builder.add_constant(number, offset.last().copied().unwrap_or(0))
    }

    fn load(&self, builder: &Builder<'c>, field: &str, number: Val<'c>) -> Result<Val<'c>, Error> {
        let element: Type<'c> = self.scope.program.field(field)?.element;
        let ty = lanes::vector_type(element, self.lanes)?;
        builder.value("vector.load", &[self.input(field)?.flat(builder)?, number], ty, &[])
    }

    /// The coordinates of a vector's cells along the row.
    fn numbers(&self, builder: &Builder<'c>, at: Val<'c>) -> Result<Val<'c>, Error> {
        let i64_type = builder.integer_type(64);
        let ty = lanes::vector_type(i64_type, self.lanes)?;
        let numbers: Vec<_> = (0..self.lanes).map(|lane| lane.to_string()).collect();
        let text = format!("dense<[{}]> : {ty}", numbers.join(", "));
        let numbers = Attribute::parse(builder.context, &text);
        let numbers = numbers.ok_or_else(|| Error::internal(format!("no attribute {text}")))?;
        let numbers = builder.value("arith.constant", &[], ty, &[("value", numbers)])?;
        let at = builder.value("arith.index_cast", &[at], i64_type, &[])?;
        builder.add(lanes::spread(builder, at, self.lanes)?, numbers)
    }
}

/// The distance of the row that is read at an offset from a row beside the first.
fn away(offset: &[i64], beside: i64) -> Vec<i64> {
    let mut away = offset.split_last().map(|(_, row)| row.to_vec()).unwrap_or_default();
    if let Some(last) = away.last_mut() {
        *last += beside;
    }
    away
}

/// The distance of a row beside another, in so many dimensions.
fn along(dimensions: usize, beside: i64) -> Vec<i64> {
    let mut away = vec![0; dimensions];
    if let Some(last) = away.last_mut() {
        *last = beside;
    }
    away
}

fn moved<'c>(builder: &Builder<'c>, row: &[Val<'c>], by: &[i64]) -> Result<Vec<Val<'c>>, Error> {
    row.iter().zip(by).map(|(at, cells)| builder.add_constant(*at, *cells)).collect()
}
