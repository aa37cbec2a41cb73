//! What a sweep stores in place of matrices: last rows of fields, and one value for each row of a
//! reduction's box.
//!
//! A lane keeps the best value of each of its rows, and where it stands. It looks for the place
//! only where the best one of some times is better than all before.

use super::code::{Points, Strips, Tile};
use super::windows;
use crate::kernel::evaluate::{At, Distance, Rules};
use crate::kernel::interior;
use crate::reduce::block::Operator;
use melior::ir::{AffineMap, Type, ValueLike};
use std::collections::BTreeMap;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::Combine;
use stencil_dialects::tiled::{Kernel, LastRows, RowValue};

/// What the kernel of a sweep leaves.
pub struct Leaving<'c> {
    /// Fields with rows in memory, and no other cells.
    pub last: BTreeMap<&'c str, Last<'c>>,
    /// Last rows of the grid that stay, of all fields of which some do.
    pub kept: i64,
    /// Values of rows.
    pub values: Vec<Values<'c>>,
}

/// The rows of a field.
pub struct Last<'c> {
    /// Which ones there are.
    pub rows: LastRows<'c>,
    /// Their buffer.
    pub buffer: Val<'c>,
}

/// The values of the rows of a box.
pub struct Values<'c> {
    row: RowValue<'c>,
    value: Val<'c>,
    place: Option<Val<'c>>,
}

impl<'c> Leaving<'c> {
    /// What a kernel leaves. Its buffers are no longer among those of the fields.
    pub fn of(
        kernel: &Kernel<'c>,
        targets: &mut BTreeMap<&'c str, Val<'c>>,
    ) -> Result<Self, Error> {
        let mut buffer = |field| {
            let buffer = targets.remove(field);
            buffer.ok_or_else(|| Error::internal(format!("no buffer of @{field} to write")))
        };
        let mut last = BTreeMap::new();
        for rows in &kernel.rows.last {
            let buffer = buffer(rows.rows)?;
            last.insert(rows.field, Last { rows: rows.clone(), buffer });
        }
        let mut values = Vec::new();
        for row in &kernel.rows.values {
            let (value, place) = (buffer(row.value)?, row.place.map(&mut buffer).transpose()?);
            values.push(Values { row: row.clone(), value, place });
        }
        let kept = kernel.rows.last.iter().map(|rows| rows.kept).max().unwrap_or(0);
        Ok(Self { last, kept, values })
    }
}

impl<'c> Strips<'c, '_> {
    /// Whether values of a tile stay in last rows; none where there are no such rows.
    pub fn has_last_rows(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
    ) -> Result<Option<Val<'c>>, Error> {
        if self.leaving.kept == 0 {
            return Ok(None);
        }
        let [rows, _] = self.extents;
        let first = builder.add_constant(rows, -self.leaving.kept - self.geometry.strip() + 1)?;
        builder.within(tile.row, (first, rows)).map(Some)
    }

    /// The types of what a lane carries from a time to the next.
    pub fn carried(&self) -> Result<Vec<Type<'c>>, Error> {
        let mut types = windows::types(&self.windows);
        for values in &self.leaving.values {
            for _ in 0..self.geometry.rows {
                types.push(self.operator(values)?.element);
                types.extend(values.place.map(|_| self.lane.r#type()));
            }
        }
        Ok(types)
    }

    /// What a lane carries before the first time of a tile row.
    pub fn initial(&self, builder: &Builder<'c>) -> Result<Vec<Val<'c>>, Error> {
        let mut initial = windows::zeros(&self.windows, builder)?;
        for values in &self.leaving.values {
            let neutral = self.operator(values)?.neutral(builder)?;
            let [_, [left, _]] = self.ends(builder, values.bounds())?;
            for _ in 0..self.geometry.rows {
                initial.push(neutral);
                // A row all of whose values are the neutral one has it in the first column.
                initial.extend(values.place.map(|_| left));
            }
        }
        Ok(initial)
    }

    fn operator(&self, values: &Values<'c>) -> Result<Operator<'c>, Error> {
        Ok(Operator::of(self.scope.program.field(values.row.value)?, values.row.combine))
    }

    /// Combines the values of some times with those of the times before, row by row.
    pub fn combine(
        &self,
        builder: &Builder<'c>,
        (tile, time): (Tile<'c>, Val<'c>),
        results: &[Vec<Vec<Val<'c>>>],
        (before, points): (Vec<Val<'c>>, Points<'c, '_>),
    ) -> Result<Vec<Val<'c>>, Error> {
        let mut before = before.into_iter();
        let mut all = Vec::new();
        for values in &self.leaving.values {
            let operator = self.operator(values)?;
            let mut rows = Vec::new();
            for row in 0..self.geometry.rows {
                let candidates =
                    self.candidates(builder, (tile, time), (row, results), (values, points))?;
                let own = before.by_ref().take(if values.place.is_some() { 2 } else { 1 });
                rows.push((own.collect::<Vec<_>>(), candidates));
            }
            all.extend(match values.place {
                None => combined(builder, &operator, &rows)?,
                Some(_) => with_places(builder, &operator, &rows)?,
            });
        }
        Ok(all)
    }

    /// The values of a row at some times, each with its column. Outside the box they are neutral.
    fn candidates(
        &self,
        builder: &Builder<'c>,
        (tile, time): (Tile<'c>, Val<'c>),
        (row, results): (i64, &[Vec<Vec<Val<'c>>>]),
        (values, points): (&Values<'c>, Points<'c, '_>),
    ) -> Result<Vec<[Val<'c>; 2]>, Error> {
        let (lower, upper) = values.bounds();
        let operator = self.operator(values)?;
        let main = self.apply.main.filter(|_| points.is_in_main());
        let known = main.is_some_and(|main| {
            let ends = [(main.lower, lower), (upper, main.upper)];
            let inside = |(one, other)| {
                let gap = interior::difference(one, other);
                gap.is_some_and(|gap| gap.iter().all(|cells| *cells >= 0))
            };
            ends.into_iter().all(inside)
        });
        let [first, second] = self.place(builder, tile, (self.lane, builder.index(row)?))?;
        let mut candidates = Vec::new();
        for (ago, rows) in (0..).zip(results) {
            let now = builder.add_constant(time, ago)?;
            let point = self.point_at(builder, [first, builder.add(second, now)?])?;
            let own = usize::try_from(row).ok().and_then(|row| rows.get(row));
            let fetch = |_: &Builder<'c>, field: &str, _: &[Distance<'c>]| {
                let place = self.apply.outputs.iter().position(|(name, _)| *name == field);
                let value = place.zip(own).and_then(|(place, own)| own.get(place).copied());
                value.ok_or_else(|| Error::internal("a reduction of another field"))
            };
            let at = At {
                point: &point,
                step: self.apply.step,
                rules: Rules::Unneeded,
                fetch: &fetch,
                current: None,
                partial: None,
            };
            let found = self.scope.evaluate(builder, &values.row.piece, &at)?;
            let (&[mut value], &[_, column]) = (found.as_slice(), point.as_slice()) else {
                return Err(Error::internal("a reduction of several values"));
            };
            if !known {
                let inside = self.scope.inside(builder, &point, lower, upper)?;
                value = builder.select(inside, value, operator.neutral(builder)?)?;
            }
            candidates.push([value, column]);
        }
        Ok(candidates)
    }

    /// Stores the values of a strip's rows.
    pub fn store_row_values(
        &self,
        builder: &Builder<'c>,
        tile: Tile<'c>,
        carried: &[Val<'c>],
    ) -> Result<(), Error> {
        let mut carried = carried.iter().skip(windows::types(&self.windows).len()).copied();
        for values in &self.leaving.values {
            let [[top, bottom], [left, right]] = self.ends(builder, values.bounds())?;
            for row in 0..self.geometry.rows {
                let place = self.place(builder, tile, (self.lane, builder.index(row)?))?;
                let row = builder.add(place[0], self.lower[0])?;
                let inside = builder.within(row, (top, builder.add_constant(bottom, 1)?))?;
                let value = carried.next().ok_or_else(|| Error::internal("no value of a row"))?;
                let column = values.place.and_then(|_| carried.next());
                builder.when(inside, |builder| {
                    let cell = self.scope.cell(builder, values.row.value, &[row, left])?;
                    builder.store(value, values.value, &cell)?;
                    let Some((place, column)) = values.place.zip(column) else { return Ok(()) };
                    let number = number(builder, [row, column], [top, left, right])?;
                    builder.store(number, place, &cell)
                })?;
            }
        }
        Ok(())
    }
}

impl<'c> Values<'c> {
    fn bounds(&self) -> (AffineMap<'c>, AffineMap<'c>) {
        (self.row.piece.lower, self.row.piece.upper)
    }
}

/// A row: what it has of the times before, then its values at some times with their columns.
type Row<'c> = (Vec<Val<'c>>, Vec<[Val<'c>; 2]>);

/// The values of rows, two times at once: a processor may take the best of three.
fn combined<'c>(
    builder: &Builder<'c>,
    operator: &Operator<'c>,
    rows: &[Row<'c>],
) -> Result<Vec<Val<'c>>, Error> {
    let mut all = Vec::new();
    for (before, candidates) in rows {
        let mut all_so_far = before.first().copied();
        for pair in candidates.chunks(2) {
            let pair: Vec<_> = pair.iter().map(|[value, _]| *value).collect();
            let best = best_of(builder, operator, &pair)?;
            if let Some((before, best)) = all_so_far.zip(best) {
                all_so_far = Some(operator.combine(builder, before, best)?);
            }
        }
        all.extend(all_so_far);
    }
    Ok(all)
}

/// The best value of several; `None` where there are none.
fn best_of<'c>(
    builder: &Builder<'c>,
    operator: &Operator<'c>,
    values: &[Val<'c>],
) -> Result<Option<Val<'c>>, Error> {
    let Some((first, rest)) = values.split_first() else { return Ok(None) };
    let combine = |best, value: &Val<'c>| operator.combine(builder, best, *value);
    rest.iter().try_fold(*first, combine).map(Some)
}

/// The values of rows and the columns in which they stand first. Times are looked at one by one
/// only where the best of them is better than all before.
fn with_places<'c>(
    builder: &Builder<'c>,
    operator: &Operator<'c>,
    rows: &[Row<'c>],
) -> Result<Vec<Val<'c>>, Error> {
    let less = if operator.unsigned { Compare::Below } else { Compare::Lt };
    let is_better = |builder: &Builder<'c>, one, other| match operator.combine {
        Combine::Max => builder.compare(less, other, one),
        _ => builder.compare(less, one, other),
    };
    let before: Vec<_> = rows.iter().flat_map(|(before, _)| before).copied().collect();
    let types: Vec<_> = before.iter().map(ValueLike::r#type).collect();
    let (mut looks, mut some) = (Vec::new(), None);
    for (before, candidates) in rows {
        let values: Vec<_> = candidates.iter().map(|[value, _]| *value).collect();
        let best = best_of(builder, operator, &values)?;
        let (Some(best), &[value, at]) = (best, before.as_slice()) else {
            return Err(Error::internal("a row without values or without a place"));
        };
        let better = is_better(builder, best, value)?;
        some = Some(match some {
            None => better,
            Some(some) => builder.binary("arith.ori", some, better)?,
        });
        looks.push((best, better, [value, at], candidates));
    }
    let Some(some) = some else { return Ok(before) };
    let found = |builder: &Builder<'c>| {
        let mut all = Vec::new();
        for (best, better, [value, at], candidates) in looks {
            // The first one that is equal: no instruction of the values themselves is needed again.
            let mut place = at;
            for [candidate, column] in candidates.iter().rev() {
                let is_best = builder.compare(Compare::Eq, *candidate, best)?;
                place = builder.select(is_best, *column, place)?;
            }
            all.push(builder.select(better, best, value)?);
            all.push(builder.select(better, place, at)?);
        }
        Ok(all)
    };
    builder.choose(some, &types, found, |_| Ok(before.clone()))
}

/// The number of a point of a box in row-major order; the largest number of a box without columns.
fn number<'c>(
    builder: &Builder<'c>,
    [row, column]: [Val<'c>; 2],
    [top, left, right]: [Val<'c>; 3],
) -> Result<Val<'c>, Error> {
    let wide = builder.integer_type(64);
    let gap = |to, from| {
        let cells = builder.binary("arith.subi", to, from)?;
        builder.value("arith.index_cast", &[cells], wide, &[])
    };
    let columns = builder.add_constant(gap(right, left)?, 1)?;
    let rows = builder.binary("arith.muli", gap(row, top)?, columns)?;
    let number = builder.add(rows, gap(column, left)?)?;
    let some = builder.compare(Compare::Gt, columns, builder.constant(wide, 0)?)?;
    builder.select(some, number, builder.constant(wide, i64::MAX)?)
}
