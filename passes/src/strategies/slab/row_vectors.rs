//! The vectors of some rows: their loads, the shifts between them, and their stores.
//!
//! ```text
//! scf.for %at = first multiple of the lanes to the last one, iter_args(%before, %here) {
//!   %after = vector.load [%at + 16]
//!   %west = vector.shuffle %before, %here [15 ... 30]
//!   %east = vector.shuffle %here, %after [1 ... 16]
//!   vector.store [%at]
//!   scf.yield %here, %after
//! }
//! vectors at both ends, which begin and end with the row
//! ```
//! The vectors at the ends compute some cells again. Applies read other memory than they write, so
//! this gives the same values.

use super::lanes;
use super::point_code::{PointCode, Starts, along, moved};
use super::reads::{self, RowRead, Way};
use melior::ir::{Attribute, Type, ValueLike};
use std::collections::BTreeMap;
use stencil_dialects::attribute;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{Op, Val};
use stencil_dialects::stencil::{self, Argument};

/// Some rows of points with what they read.
pub struct Rows<'c, 'p> {
    /// The function of the points.
    pub function: Op<'c>,
    /// How they are computed.
    pub way: Way,
    /// The coordinates of the first, in all dimensions but the last.
    pub row: &'p [Val<'c>],
    /// How many there are.
    pub count: i64,
    /// Where the rows that they read begin.
    pub starts: &'p Starts<'c>,
}

/// The vectors of a row that is read, by their distance from the point, of those that are loaded.
type Loaded<'c> = BTreeMap<(&'c str, Vec<i64>), BTreeMap<i64, Val<'c>>>;

impl<'c> PointCode<'c, '_> {
    /// The values of rows that have as many cells as a vector at least.
    pub fn rows(
        &self,
        builder: &Builder<'c>,
        rows: &Rows<'c, '_>,
        [first, end]: [Val<'c>; 2],
    ) -> Result<(), Error> {
        let all = reads::of_rows(self.scope.program, rows.function, rows.count)?;
        let shifts = |read: &RowRead| rows.way.shifts && read.can_shift(self.lanes);
        let shifted: Vec<_> = all.into_iter().filter(shifts).collect();
        let lanes = builder.index(self.lanes)?;
        let unit = builder.index(-self.lanes)?;
        let start = builder.add_constant(first, self.lanes - 1)?;
        let start = builder.binary("arith.andi", start, unit)?;
        // The vector behind the last one is loaded too, and has to lie in what is read.
        let behind = shifted.iter().map(|read| read.reach()[1]).filter(|upper| *upper > 0).min();
        let stop = builder.add_constant(end, behind.map_or(0, |upper| upper - self.lanes))?;
        let stop = builder.binary("arith.andi", stop, unit)?;
        let whole = builder.compare(Compare::Lt, start, stop)?;
        builder.when(whole, |builder| {
            let initial = self.initial(builder, rows, &shifted, start)?;
            let bounds = (start, stop, lanes);
            builder
                .carry(bounds, &initial, |builder, at, carried| {
                    self.middle(builder, rows, (&shifted, carried), at)
                })
                .map(drop)
        })?;
        let last = builder.binary("arith.subi", end, lanes)?;
        let (zero, two) = (builder.index(0)?, builder.index(2)?);
        builder.repeat((zero, two, builder.index(1)?), |builder, part| {
            // Where there is no middle, the second part is the row.
            let start = builder.select(whole, start, first)?;
            let stop = builder.select(whole, stop, first)?;
            let is_first = builder.compare(Compare::Eq, part, zero)?;
            let from = builder.select(is_first, first, stop)?;
            let to = builder.select(is_first, start, end)?;
            builder.repeat((from, to, lanes), |builder, at| {
                let at = builder.binary("arith.minsi", at, last)?;
                self.vector(builder, rows, &mut Loaded::new(), at)
            })
        })
    }

    /// What the first iteration takes over: the cells before it, and its own.
    fn initial(
        &self,
        builder: &Builder<'c>,
        rows: &Rows<'c, '_>,
        shifted: &[RowRead<'c>],
        start: Val<'c>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let mut initial = Vec::new();
        for read in shifted {
            let [lower, upper] = read.reach();
            if lower < 0 {
                // Those that are read begin a load, and go to the last lanes.
                let cells = self.load(builder, rows, (read.field, &read.away), (start, lower))?;
                let lanes = (0..self.lanes).map(|lane| (lane - lower).rem_euclid(self.lanes));
                initial.push(shuffle(builder, (cells, cells), lanes)?);
            }
            if upper > 0 {
                initial.push(self.load(builder, rows, (read.field, &read.away), (start, 0))?);
            }
        }
        Ok(initial)
    }

    /// An iteration between the ends; what the next one takes over.
    fn middle(
        &self,
        builder: &Builder<'c>,
        rows: &Rows<'c, '_>,
        (shifted, carried): (&[RowRead<'c>], &[Val<'c>]),
        at: Val<'c>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let (mut loaded, mut next, mut carried) = (Loaded::new(), Vec::new(), carried.iter());
        for read in shifted {
            let [lower, upper] = read.reach();
            let newest = if upper > 0 { self.lanes } else { 0 };
            let new = self.load(builder, rows, (read.field, &read.away), (at, newest))?;
            let older = [(lower < 0).then_some(-self.lanes), (upper > 0).then_some(0)];
            let mut lines: BTreeMap<i64, Val<'c>> =
                older.into_iter().flatten().zip(carried.by_ref().copied()).collect();
            lines.insert(newest, new);
            next.extend(lines.values().skip(1));
            for cells in read.uses.keys().filter(|cells| **cells != 0) {
                let from = if *cells < 0 { -self.lanes } else { 0 };
                let two = (lines.get(&from), lines.get(&(from + self.lanes)));
                let (Some(low), Some(high)) = two else {
                    return Err(Error::internal("a read without its lines"));
                };
                let lanes = cells - from..cells - from + self.lanes;
                let value = shuffle(builder, (*low, *high), lanes)?;
                loaded.entry((read.field, read.away.clone())).or_default().insert(*cells, value);
            }
            if let Some(here) = lines.get(&0) {
                loaded.entry((read.field, read.away.clone())).or_default().insert(0, *here);
            }
        }
        self.vector(builder, rows, &mut loaded, at)?;
        Ok(next)
    }

    /// The values of a vector of cells in each row; `loaded` has some of those that are read.
    fn vector(
        &self,
        builder: &Builder<'c>,
        rows: &Rows<'c, '_>,
        loaded: &mut Loaded<'c>,
        at: Val<'c>,
    ) -> Result<(), Error> {
        let mut results = Vec::new();
        for beside in 0..rows.count {
            let point =
                [moved(builder, rows.row, &along(rows.row.len(), beside))?, vec![at]].concat();
            let mut values = Vec::new();
            for argument in stencil::arguments(rows.function)? {
                values.push(match &argument {
                    Argument::Read { field, offset } => {
                        let cells = offset.last().copied().unwrap_or(0);
                        let row = (*field, reads::away(offset, beside));
                        let lines = loaded.entry(row.clone()).or_default();
                        match lines.get(&cells) {
                            Some(value) => *value,
                            None => {
                                let value =
                                    self.load(builder, rows, (row.0, &row.1), (at, cells))?;
                                *lines.entry(cells).or_insert(value)
                            }
                        }
                    }
                    Argument::Coordinate(dimension) if *dimension == rows.row.len() => {
                        self.numbers(builder, at)?
                    }
                    other => self.scope.outer(builder, other, &point, 0)?,
                });
            }
            let values = lanes::evaluate(builder, rows.function, &values, self.lanes)?;
            results.push((values, point));
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

    /// The cells of a row from some distance behind a point on.
    fn load(
        &self,
        builder: &Builder<'c>,
        rows: &Rows<'c, '_>,
        read: (&str, &[i64]),
        (at, cells): (Val<'c>, i64),
    ) -> Result<Val<'c>, Error> {
        let number = self.cell_number(builder, read, (at, cells), rows.starts)?;
        let element: Type<'c> = self.scope.program.field(read.0)?.element;
        let ty = lanes::vector_type(element, self.lanes)?;
        builder.value("vector.load", &[self.input(read.0)?.flat(builder)?, number], ty, &[])
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

/// Lanes of two vectors of one type, counted through both.
fn shuffle<'c>(
    builder: &Builder<'c>,
    (low, high): (Val<'c>, Val<'c>),
    lanes: impl Iterator<Item = i64>,
) -> Result<Val<'c>, Error> {
    let lanes: Vec<i64> = lanes.collect();
    let mask = attribute::integers(builder.context, &lanes);
    builder.value("vector.shuffle", &[low, high], low.r#type(), &[("mask", mask)])
}
